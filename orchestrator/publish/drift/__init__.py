"""How a table differs from another one, or from itself at another time."""
