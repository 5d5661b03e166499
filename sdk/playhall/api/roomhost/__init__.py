"""Generated from protos/playhall/api/roomhost; see there."""
