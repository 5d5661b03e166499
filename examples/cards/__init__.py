"""The cards example: a hidden deck, private hands, calls, turns, and bots that fill seats."""
