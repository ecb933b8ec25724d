"""What the quick twins of sweeps/quick show of the papers' claims: read from their files, trained and asserted."""
