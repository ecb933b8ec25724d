"""Backbones: from images to features; one file a backbone."""
