"""The room host: runs rooms, and keeps nothing durable and no shared secret."""
