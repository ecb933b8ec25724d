"""What several commands take: the server's address and token, a spec's file, `--json`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from api.client import Client
from orchestrator.settings import Settings


def _readable(file: Path) -> Path:
    if str(file) != "-" and (file.is_dir() or not file.exists()):
        raise typer.BadParameter(f"there is no file {file}")
    return file


Url = Annotated[
    str,
    typer.Option("--url", envvar="METRICSWEEP_URL", help="Address of the server.", metavar="URL"),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="METRICSWEEP_TOKEN",
        help="Token of the server; better set in the variable, since others can read command lines.",
        metavar="TOKEN",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
SweepId = Annotated[int, typer.Argument(min=1, metavar="ID", help="The sweep's number.")]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", callback=_readable, help="A spec; - reads standard input.")]
Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        file_okay=False,
        metavar="DIR",
        help="Folder of the database, results and logs. [default: .metricsweep]",
    ),
]

DEFAULT_URL = "http://127.0.0.1:8787"


def connect(url: str, token: str | None) -> Client:
    """A client of the server that the options name."""
    return Client(url, token)


def read_spec(file: Path) -> bytes:
    """The bytes of a spec's file, or of standard input for `-`."""
    return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()


def settings(**given: Any) -> Settings:
    """The settings of the environment, with those options that were given in their place."""
    return Settings(**{name: value for name, value in given.items() if value is not None})
