"""The `playhall` command; `app.py` is its front."""
