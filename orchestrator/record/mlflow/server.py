"""MLflow's server as one process: `python -m orchestrator.record.mlflow.server` with the options of `mlflow server`.

`mlflow server` imports all of MLflow twice, in a parent that then only waits and in the uvicorn that it starts: six
seconds of a processor and 200 MB. Here uvicorn runs in the parent's place. It opens no port: it listens on the socket
that whoever starts it holds and names by LISTEN_FD, where what is asked before it is there waits, or on one that
`--uvicorn-opts "--uds ..."` names.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import uvicorn.main  # before MLflow, which protects its application where it sees uvicorn, as in the usual child

SOCKET: Final = "LISTEN_FD"
"""The variable that holds the number of the file descriptor of a listening socket."""


def main(options: Sequence[str]) -> None:
    """Serve until SIGTERM; ends this process."""
    import mlflow.server
    from mlflow.cli import cli

    # Where a later MLflow starts its server by another name, it has two processes again, and works.
    mlflow.server._exec_cmd = _served_here
    cli(["server", *options], prog_name="mlflow")


def _served_here(command: Sequence[str], *, extra_env: Mapping[str, str], **_: object) -> NoReturn:
    """What MLflow would have a process of its own do: `python -m uvicorn ...` in this environment."""
    os.environ.update(extra_env)
    assert list(command[1:3]) == ["-m", "uvicorn"], command
    handed = os.environ.get(SOCKET, "")
    if not handed.isdigit() and "--uds" not in command:
        raise SystemExit(f"neither {SOCKET} nor --uds names a socket, and MLflow asks nobody who they are")
    # By default uvicorn looks for modules in the current folder first.
    place = ["--app-dir", str(Path(uvicorn.__file__).parents[1])]
    uvicorn.main.main([*command[3:], *place, *(["--fd", handed] if handed else [])], prog_name="uvicorn")
    raise AssertionError("click ends the process")


if __name__ == "__main__":
    main(sys.argv[1:])
