"""The migrations from each released schema to the next."""
