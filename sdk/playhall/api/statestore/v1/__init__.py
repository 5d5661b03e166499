"""Generated from protos/playhall/api/statestore/v1; see there."""
