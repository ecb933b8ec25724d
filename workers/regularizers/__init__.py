"""Regularizers: modules whose `forward` turns raw embeddings [b, d] into a scalar, which the trainer weights by eta."""
