"""Optimizers: one file an optimizer."""
