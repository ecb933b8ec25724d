"""`drift`: what changed between two tables, or in one over time."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.commands.bundles import write_bundle
from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.tables import emit
from api.commands.terminal import WRONG, err

if TYPE_CHECKING:
    from orchestrator.views.files import Rendered

_SIDE: Final = "A sweep (7), it at a time (7@2026-11-20T12:00, UTC), or a bundle (out.zip)."


def drift(
    before: Annotated[str, typer.Argument(help=_SIDE, metavar="BEFORE")],
    after: Annotated[str, typer.Argument(help="The same.", metavar="AFTER")],
    table: Annotated[
        str | None, typer.Option("--table", help="A table of both; by default the first.", metavar="NAME")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="text or json; by default as the file ends, or text.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--out", dir_okay=False, help="Write it to this file.")] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say which cells of a table changed, by what, and whether by more than noise."""
    wanted = file_format or ("json" if file and file.suffix == ".json" else "text")
    files = [_bundle(side) for side in (before, after)]
    if not any(files):
        with connect(url, token, home) as client:
            rendered = client.evidence.drift(before, after, table, wanted)
    else:
        with TemporaryDirectory() as folder:
            packed = [one or _packed(side, Path(folder), (url, token, home))
                      for one, side in zip(files, (before, after), strict=True)]  # fmt: skip
            rendered = _between(packed[0], packed[1], table, wanted)
    emit(rendered.content, wanted, file)


def _bundle(side: str) -> Path | None:
    """The file that a side names; none where it is a sweep."""
    if not side.endswith(".zip"):
        return None
    if not (path := Path(side)).is_file():
        raise typer.BadParameter(f"there is no file {side}")
    return path


def _packed(side: str, folder: Path, where: tuple[str | None, str | None, Path]) -> Path:
    """A sweep as a bundle, so that it can stand beside one."""
    if not side.isdigit():
        err.print(f"metricsweep: beside a bundle stands another one or a sweep as it is now, not {side}")
        raise typer.Exit(WRONG)
    file = folder / f"sweep-{side}.zip"
    with connect(*where) as client:
        write_bundle(client, int(side), file)
    return file


def _between(before: Path, after: Path, table: str | None, file_format: str) -> "Rendered":
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.drifts import between_bundles

    return between_bundles(before, after, table, file_format)
