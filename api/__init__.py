"""HTTP and the command line: what a client asks of the service, and how it is answered."""

import os
import sys

if sys.argv[:1] == ["-m"]:  # `python -m` of a module below, while Python looks for it
    # It searches the current folder first, where anybody may have left a `secrets.py`.
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(__path__[0]):  # noqa: PTH120  pathlib may lie there
        del sys.path[0]
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that it starts
