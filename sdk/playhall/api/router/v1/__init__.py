"""Generated from protos/playhall/api/router/v1; see there."""
