"""The data behind the figures of the papers: which a recipe may ask for, and what they hold."""
