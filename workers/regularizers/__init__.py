"""Regularizers: modules that turn raw embeddings into a scalar, which the trainer weighs by their `eta`."""
