"""What a room's author writes with."""
