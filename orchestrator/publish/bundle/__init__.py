"""Bundles: a sweep as one archive with its tables, its figures and the data behind them."""
