"""The formats a table is written in, one file each; the file name is the format's name."""
