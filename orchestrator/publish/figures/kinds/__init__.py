"""The kinds of figures, one file each; the file name is the name in a spec."""
