"""Slots that join by files alone: whatever starts them, such as Slurm, and wherever the conductor runs."""
