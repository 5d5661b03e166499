"""Generated from protos/playhall/api/statestore; see there."""
