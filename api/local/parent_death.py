"""Becomes a command that ends with its parent: `python -I -S parent_death.py <parent pid> <command>...`.

A process of its own, because the same call between fork and exec is not safe in a program with threads. Linux only:
elsewhere, and where the parent's machine goes with it, what an earlier `serve` left is ended by the next one.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; kept through exec, not inherited by children


def main(arguments: list[str]) -> None:
    """Ask for SIGTERM at the parent's death, then become the command; does not return."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606  the command is our supervisor's


if __name__ == "__main__":
    main(sys.argv[1:])
