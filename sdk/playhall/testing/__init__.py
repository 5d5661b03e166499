"""The test harness: rooms and clients in one process, under its own clock."""
