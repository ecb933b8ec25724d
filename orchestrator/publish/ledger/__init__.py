"""What own runs say of the papers' numbers."""
