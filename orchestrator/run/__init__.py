"""Executes trainings: search proposes them, an engine runs them."""
