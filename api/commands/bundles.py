"""`rebuild`, and the archive that it reads: a sweep's tables made again from its data, without a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import readable
from api.commands.terminal import FAILED, err, out
from orchestrator.host.disk import replace_file, replacing

if TYPE_CHECKING:
    from api.client import Client


def write_bundle(client: "Client", sweep: int, file: Path) -> None:
    """Write a sweep's archive to a file, which is there only once it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as into:
        client.bundle(sweep, into)
    err.print(f"wrote {file}")


def rebuild(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", callback=readable, help="A bundle.")],
    table: Annotated[str | None, typer.Option("--table", help="Only this table.", metavar="NAME")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="Only this format: latex, markdown, html, csv or json ...")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", file_okay=False, metavar="DIR", help="Write what was rebuilt here.")
    ] = None,
) -> None:
    """Check a bundle, make its tables again from its data, and compare: 0 where every byte is the same, else 1."""
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.bundles import rebuild as rebuilt

    report = rebuilt(file, table, file_format)
    out.print(f"bundle of sweep {report.head.id} ({report.head.name}, {report.head.state}), manifest {report.id}")
    out.print(f"{report.files} files as the manifest says")
    for remade in report.made:
        where = remade.rendering
        said = "identical" if remade.identical else f"DIFFERS: {remade.difference}"
        out.print(f"{where.table:16} {where.numbers:8} {where.format:15} {said}")
        if folder is not None:
            replace_file(folder / where.file, remade.content)
    if folder is not None:
        err.print(f"wrote {len(report.made)} files under {folder}")
    if report.identical:
        return
    for package, (before, now) in report.versions.items():
        out.print(f"made with {package} {before}, rebuilt with {now}")
    raise typer.Exit(FAILED)
