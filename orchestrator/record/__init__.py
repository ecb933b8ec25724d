"""Keeps what happened: the database is the truth, MLflow mirrors it."""
