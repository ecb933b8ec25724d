"""MLflow's server as one process: `python -m orchestrator.record.mlflow.server` with the options of `mlflow server`.

`mlflow server` imports all of MLflow twice, in a parent that then only waits and in the uvicorn that it starts: six
seconds of a processor and 200 MB. Here uvicorn runs in the parent's place.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import uvicorn.main  # before MLflow, which protects its application where it sees uvicorn, as in the usual child


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
    uvicorn.main.main(list(command[3:]), prog_name="uvicorn")
    raise AssertionError("click ends the process")


if __name__ == "__main__":
    main(sys.argv[1:])
