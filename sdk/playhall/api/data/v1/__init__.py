"""Generated from protos/playhall/api/data/v1; see there."""
