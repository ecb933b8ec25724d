"""Fused seeds: several seeds of one recipe trained by one network whose channels lie side by side."""
