"""Mutants: small faults put into the product one at a time, to see which tests notice them."""
