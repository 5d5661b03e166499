"""The voice service: mints voice tokens, and never touches audio."""
