"""Schedules of eta: callables that give the regularizer's weight at iteration `step`, from 0; one file a schedule."""
