"""The data service: owns the SQL database, and knows nothing of live rooms."""
