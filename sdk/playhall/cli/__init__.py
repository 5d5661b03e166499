"""The `playhall` command."""
