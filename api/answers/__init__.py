"""Answers: compressed, sent once where nothing changed, and shared by who asks the same at the same time."""
