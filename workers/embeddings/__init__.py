"""What losses, regularizers, metrics and figures share of a batch of embeddings; plain functions of tensors."""
