"""What the API tells those who watch it: gauges, latencies, traces."""
