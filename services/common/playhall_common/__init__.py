"""What every service shares: settings, logs, metrics, ids, errors, who calls, and the life of a gRPC server.

It knows no service. Its modules are imported one by one; importing the package imports none.
"""
