"""What surrounds every request: checks, limits, headers, and turns for expensive ones."""
