"""Trains one recipe: the loop and the session, optimization, checkpoints, folds, and what a run says of itself."""
