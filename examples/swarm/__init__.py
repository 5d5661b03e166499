"""Swarm: five thousand fish in a dark sea, and lights that gather them."""
