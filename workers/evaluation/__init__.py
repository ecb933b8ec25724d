"""What metrics share: the ranking of neighbours, with its ties, and clusterings."""
