"""MLflow behind our own gate: which of its requests pass, and how they are passed on."""
