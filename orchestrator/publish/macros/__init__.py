"""A table as macros of LaTeX, and the papers that use them."""
