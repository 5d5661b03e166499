"""Calls from a backend to a running Playhall."""
