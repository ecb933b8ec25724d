"""Image data on this machine: found, fetched, listed, decoded, augmented, and brought into a backbone's form."""
