"""The router: owns client connections, tokens and limits, holding connections while a room wakes, and where a
room runs.

It never keeps game state, never decodes what players send to rooms, and never decides that an owner is dead:
the shard does.
"""
