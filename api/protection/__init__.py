"""What stands between a request and the routes: limits on connections, heads, bodies, time and work."""
