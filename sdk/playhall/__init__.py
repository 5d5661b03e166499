"""Playhall: multiplayer rooms, written in Python."""
