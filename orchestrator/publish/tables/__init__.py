"""A table from trial results: layout, selection of what is shown, numbers, words around them."""
