"""Metrics: callables that turn an `Evaluation` into a number; fractions, never percent."""
