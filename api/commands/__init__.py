"""The commands of `metricsweep`, one module a noun; `api.cli` puts them together."""
