"""`backup` and `restore`: a home's database and storage into a folder, and a home of that."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from api.commands.options import HOME, Home, settings
from api.commands.terminal import err, out

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The backup's own folder.")]
TELL_SECONDS = 2.0


def backup(folder: Folder, home: Home = HOME) -> None:
    """Copy the database of one moment and the storage into a new folder, with hashes; the service may run."""
    from orchestrator.service.backups import back_up

    made = back_up(settings(home=home), folder.absolute(), _teller("copied"))
    out.print(f"{len(made.files)} files, {sum(one.size for one in made.files)} bytes in {folder}")


def restore(folder: Folder, home: Home = HOME) -> None:
    """Make a new home of a backup; refused where the home holds anything, or a file is not what it was."""
    from orchestrator.service.backups import restore as put_back

    made = put_back(folder.absolute(), settings(home=home), _teller("restored"))
    out.print(f"{len(made.files)} files of {made.made:%Y-%m-%d %H:%M} UTC in {home}")


def _teller(what: str) -> Callable[[str], None]:
    """Says every two seconds how far it is."""
    count, said = 0, time.monotonic()

    def tell(name: str) -> None:
        nonlocal count, said
        count += 1
        if time.monotonic() - said > TELL_SECONDS:
            said = time.monotonic()
            err.print(f"{what} {count} files, now {name}")

    return tell
