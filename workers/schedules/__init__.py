"""Schedules: the factor on the learning rate at each iteration; one file a schedule."""
