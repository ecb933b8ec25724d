"""The commands of `metricsweep`; `api.cli` puts them together."""
