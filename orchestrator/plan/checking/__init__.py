"""Says everything that is wrong with a spec at once, with bounded work."""
