"""The machine below us: private folders and files, identity, logs, text fit for a terminal, and the storage."""
