"""Figures of sweeps and trainings: from outcomes, curves and data files to Vega-Lite, and to files for print."""
