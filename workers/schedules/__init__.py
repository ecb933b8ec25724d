"""Schedules: callables that give the factor on the learning rate at iteration `step`, from 0; one file a schedule."""
