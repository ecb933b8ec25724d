"""The machine: private files, disks, identity, logs, traces and the storage."""
