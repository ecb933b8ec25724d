"""Schedules of eta: the weight of the regularizer at each iteration; one file a schedule."""
