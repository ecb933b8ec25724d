"""A table from outcomes: layout, selection of what is shown, numbers, words around them."""
