"""Generated from protos/playhall/api/data; see there."""
