"""Trains one recipe: session, loop, optimization, checkpoints, folds, results."""
