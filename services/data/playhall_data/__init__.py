"""The data service: owns the SQL database, and knows nothing of live rooms.

Projects, settings, keys, builds, the room registry and the shard map. Every change is durable before it is
answered.
"""
