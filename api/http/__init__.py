"""Middleware around every request, and the limit on expensive requests."""
