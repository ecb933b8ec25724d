"""What trainings cost: their work counted from recipes, and hours from how long others took."""
