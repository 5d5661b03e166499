"""Generated from protos/playhall/api/router; see there."""
