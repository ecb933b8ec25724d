"""Data sets: one file a data set."""
