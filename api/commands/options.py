"""What several commands take: the server's address and token, a spec's file, `--json`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

# Here only for the reader: each command imports what it needs, when it needs it.
if TYPE_CHECKING:
    from api.asking.people import PeopleClient
    from api.client import Client
    from orchestrator.service.people import People
    from orchestrator.settings import Settings


def readable(file: Path | None) -> Path | None:
    """The file that an option names, if there is one; raises BadParameter where it does not exist."""
    if file is None:
        return None
    if str(file) != "-" and (file.is_dir() or not file.exists()):
        raise typer.BadParameter(f"there is no file {file}")
    return file


Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="METRICSWEEP_URL",
        help="Address of another server than that of the home folder.",
        metavar="URL",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="METRICSWEEP_TOKEN",
        help="Token of the server at --url; better set in the variable, since others can read command lines.",
        metavar="TOKEN",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
SweepId = Annotated[int, typer.Argument(min=1, metavar="ID", help="The sweep's number.")]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", callback=readable, help="A spec; - reads standard input.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a value of the spec, such as select.split=test; the value is YAML. May be given several times.",
        metavar="PATH=VALUE",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Take only the trials with one of these labels, such as dataset=cub200,sop. May be given several times.",
        metavar="AXIS=LABEL,...",
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="Leave out the trials with one of these labels, such as dataset=sop. May be given several times.",
        metavar="AXIS=LABEL,...",
        show_default=False,
    ),
]
Home = Annotated[
    Path,
    typer.Option(
        "--home",
        envvar="METRICSWEEP_HOME",
        file_okay=False,
        metavar="DIR",
        help="Folder of the database, results and logs, and of the server that serves them.",
    ),
]
HOME: Final = Path(".metricsweep")


def connect(url: str | None, token: str | None, home: Path) -> "Client":
    """A client of the server that the options name."""
    from api import discovery

    return discovery.connect(url, token, home)


@contextmanager
def managing(url: str | None, token: str | None, home: Path) -> "Iterator[People | PeopleClient]":
    """Users, projects and tokens: of the server that --url names, else of the database of the home on this machine."""
    if url:
        with connect(url, token, home) as client:
            yield client.people
        return
    from orchestrator.service.owner import owning

    with owning(settings(home=home)) as people:
        yield people


def read_spec(
    file: Path,
    changes: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
) -> bytes:
    """A spec's file, or standard input for `-`, with each `path=value` set and the subset of `axis=labels` taken."""
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    if not (changes or only or without):
        return body
    from orchestrator.service.offline import subset_of, with_values

    body = with_values(body, changes) if changes else body
    return subset_of(body, only or (), without or ()) if only or without else body


def settings(**given: Any) -> "Settings":
    """The settings of the environment, with those options that were given in their place."""
    from orchestrator.settings import Settings

    return Settings(**{name: value for name, value in given.items() if value is not None})
