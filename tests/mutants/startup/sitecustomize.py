"""Python imports this at the start of every process whose path has this folder: it records what the tests reach."""

import os

if os.environ.get("MUTANTS_REACHED"):
    from tests.mutants import reached

    reached.recorder()
