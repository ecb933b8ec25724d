"""Event streams: what changed, told to whoever listens."""
