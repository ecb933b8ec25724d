"""A sweep as one archive: its tables and figures, the data that they are made of, and how to make them again."""
