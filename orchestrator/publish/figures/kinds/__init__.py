"""The kinds of figures, one file each with a function `draw`; the file name is the name in a spec."""
