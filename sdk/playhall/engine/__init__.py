"""The sans-I/O core: no sockets, no clock, no randomness."""
