"""MLflow as a mirror: what its runs show, the outbox that feeds it, and the client that speaks to it."""
