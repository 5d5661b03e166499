"""Dots: everyone is a dot, and sees the others move."""
