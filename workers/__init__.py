"""Turns one recipe into one result; knows nothing of sweeps, tables, databases, Ray or HTTP."""
