"""Losses: modules from raw embeddings [b, d] and labels [b] to a scalar; each normalizes embeddings itself."""
