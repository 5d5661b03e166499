"""Generated from protos/playhall/api; see there."""
