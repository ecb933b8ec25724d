"""Runs a command that ends with its parent: `python -I -S parent_death.py <parent pid> <command>...`.

A process of its own, since the same call between fork and exec is not safe in a program with threads. On other systems
than Linux, the next `serve` ends the processes that an earlier one left.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; kept through exec, not inherited by children


def main(arguments: list[str]) -> None:
    """Request SIGTERM at the parent's death, then run the command in this process; does not return."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  the command is our supervisor's


if __name__ == "__main__":
    main(sys.argv[1:])
