"""Generated from protos/playhall/api/roomhost/v1; see there."""
