"""Slots as jobs of Slurm: keeps as many alive as the conductor has use for."""
