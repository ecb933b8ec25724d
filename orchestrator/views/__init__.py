"""The words between the rooms, and what clients see: plain data that every verb may import, and that imports none."""
