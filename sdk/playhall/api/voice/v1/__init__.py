"""Generated from protos/playhall/api/voice/v1; see there."""
