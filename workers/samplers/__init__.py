"""Samplers: which images stand in a batch; one file a sampler."""
