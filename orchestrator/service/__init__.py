"""Answers clients; joins plan, record and publish."""
