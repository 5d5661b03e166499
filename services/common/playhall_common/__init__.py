"""What every service shares: configuration, logs, metrics, and the life of a gRPC server."""
