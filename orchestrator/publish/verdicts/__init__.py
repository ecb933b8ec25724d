"""Whether one cell is better than another, and how sure that is after several looks."""
