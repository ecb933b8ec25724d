"""Verdicts on whether one cell is better than another, valid after several looks at the results."""
