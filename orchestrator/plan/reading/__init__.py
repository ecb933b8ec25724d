"""Reads what was posted: the document with its places, and each of its nodes into the spec."""
