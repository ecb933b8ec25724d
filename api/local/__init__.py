"""The whole service on one machine: its processes, their home folder, and how commands find it."""
