"""Generated from protos/playhall/api/voice; see there."""
