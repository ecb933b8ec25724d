"""Turns outcomes into tables and figures, computed on read."""
