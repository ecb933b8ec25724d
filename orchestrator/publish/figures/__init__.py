"""Figures of sweeps and trainings: from results, curves and data files to Vega-Lite, and to files for print."""
