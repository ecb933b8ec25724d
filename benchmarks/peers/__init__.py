"""What people use in place of the service, each a program of its own: `python -m benchmarks.peers.NAME RECIPES FOLDER`.

RECIPES is a file with a recipe as JSON on each line; FOLDER gets a folder with `result.json` for each.
"""
