"""Makes tables, figures and files from the results of trials, whenever they are asked for."""
