"""What trainings cost: work counted from recipes, hours and time left from measured trainings."""
