"""The API's process with few file descriptors and little patience, so that a test sees its limits in seconds."""

import resource
import sys

from api.__main__ import main
from api.protection.connections import ConnectionPatience

FILES = 256
"""Of these the API keeps 160 for files and 128 for connections that arrive: it allows its least, 16 connections."""
SHORT = ConnectionPatience(head=1.0, body=1.5, idle=2.0, stalled=1.5, look=0.2)

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    patient = sys.argv[1:] == ["patient"]
    sys.exit(main(ConnectionPatience() if patient else SHORT))
