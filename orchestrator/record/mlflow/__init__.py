"""Mirrors results in MLflow: what its runs show, the outbox that feeds them, and the client."""
