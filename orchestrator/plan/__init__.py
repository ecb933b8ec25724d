"""Turns a posted spec into cells, candidates and trials, or says everything that is wrong with it."""
