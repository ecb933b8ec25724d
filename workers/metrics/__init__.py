"""Metrics: what a task evaluates becomes a number; a fraction, never percent; NaN without a value."""
