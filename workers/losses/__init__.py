"""Losses: modules that turn raw embeddings and labels into a scalar; each normalizes for itself."""
