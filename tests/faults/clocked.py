"""`python -m tests.faults.clocked`: the orchestrator's process with another clock than the machine's.

METRICSWEEP_CLOCK names a file with the seconds by which SQLite's `julianday('now')` and Python's `time.time` differ
from the true time; it may be changed while the process runs. The monotonic clock stays, as after `date --set`.
Debian's faketime would do for any program, but its `clock_nanosleep` fails within Python's `time.sleep`.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orchestrator.__main__ import main

FILE = Path(os.environ["METRICSWEEP_CLOCK"])
TRUE_TIME = time.time
EPOCH = 2440587.5
"""The Julian day of 1970."""


def shifted() -> float:
    """Seconds since 1970 by this process's clock."""
    return TRUE_TIME() + float(FILE.read_text())


def shift(connection: Any, record: Any) -> None:
    """Have a new connection tell the time by our clock; it asks for nothing but now."""
    connection.create_function("julianday", 1, lambda now: EPOCH + shifted() / 86_400)


if __name__ == "__main__":
    time.time = shifted
    sa.event.listen(sa.Engine, "connect", shift)
    sys.exit(main())
