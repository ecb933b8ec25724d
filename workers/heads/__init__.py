"""Heads: from features to embeddings; one file a head."""
