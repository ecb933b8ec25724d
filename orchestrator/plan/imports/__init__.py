"""Reads other people's numbers out of files, as rows that a table imports."""
