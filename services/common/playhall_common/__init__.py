"""What every service shares: settings, logs, metrics, ids, errors, who calls, and the life of a gRPC server.

It knows no service. Its modules are imported one by one; importing the package imports none.
"""

import os

# gRPC's core writes lines of its own to stderr, no JSON, whenever a peer goes. It reads this once, at import.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
