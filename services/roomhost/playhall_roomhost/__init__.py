"""The room host: where room code runs.

A supervisor for each pod (`python -m playhall_roomhost`) keeps room host processes
(`playhall_roomhost.process`), one or more for each build, and each runs many rooms. It owns nothing
durable, and no shared secret: a process acts at the state store with a token of its project. Which process
runs which room is for routers to choose, and who may write a room for the state store.
"""
