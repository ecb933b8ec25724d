"""Optuna behind our own words: samplers that propose candidates, and pruners that stop them."""
