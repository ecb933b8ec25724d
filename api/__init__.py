"""The REST API, the pages, the Python client and the command line."""

import os
import sys

if sys.argv[:1] == ["-m"]:  # `python -m` is importing a module of this package
    # Python searches the current folder first, which may contain a `secrets.py`.
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(__path__[0]):  # noqa: PTH120  pathlib may lie there
        del sys.path[0]
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that it starts
