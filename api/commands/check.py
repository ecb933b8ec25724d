"""`check`: whether the numbers of a paper still agree with the records."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.options import HOME, Home, Token, Url, connect
from api.commands.terminal import FAILED, out
from api.failures import ApiError
from orchestrator.views.errors import NotFoundError

if TYPE_CHECKING:
    from api.client import Client
    from orchestrator.service.manuscripts import ManuscriptReport, Records, Whole
    from orchestrator.views.macros import MacroAddress, MacrosView


def check(
    paper: Annotated[Path, typer.Argument(metavar="PAPER.tex", help="The paper; what it takes in is read, too.")],
    bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", exists=True, dir_okay=False, metavar="FILE.zip", help="Against bundles, without a server."
        ),
    ] = None,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Find numbers of a paper that no longer agree with the database or a bundle: 0 where all do, else 1."""
    # Here and not above: it brings the libraries of tables, which the other commands do not wait for.
    from orchestrator.service.manuscripts import bundled
    from orchestrator.service.manuscripts import check as checked

    if bundles:
        report = checked(paper, *bundled(bundles))
    else:
        with connect(url, token, home) as client:
            report = checked(paper, _records(client), _whole(client))
    _tell(report)
    if not report.agrees:
        raise typer.Exit(FAILED)


def _records(client: "Client") -> "Records":
    def today(of: "MacroAddress") -> "MacrosView":
        try:
            return client.evidence.macros(of.sweep, of.table, of.prefix)
        except ApiError as error:
            if error.status == 404:
                raise NotFoundError(str(error)) from error
            raise

    return today


def _whole(client: "Client") -> "Whole":
    def today(sweep: int, table: str) -> str:
        try:
            return client.table(sweep, table, "latex").content.decode()
        except ApiError as error:
            if error.status == 404:
                raise NotFoundError(str(error)) from error
            raise

    return today


def _tell(report: "ManuscriptReport") -> None:
    for wrong in report.disagreements:
        name = f" \\{wrong.name}" if wrong.name else ""
        used = f"printed at {', '.join(wrong.used)}" if wrong.used else "which the paper does not print"
        out.print(f"{wrong.where}:{name}: {wrong.said}; {used}")
    stale = sum(bool(one.used) for one in report.disagreements)
    for file in report.outside:
        out.print(f"{file}: not read, since it lies outside of the paper's folder")
    if report.tables:
        out.print(f"{report.tables} table{'s' * (report.tables != 1)} taken in whole")
    if report.tables and not report.files:
        out.print("all agree" if not stale else f"{stale} do not agree")
        return
    out.print(
        f"{report.used} of {report.numbers} numbers in {report.files} file{'s' * (report.files != 1)} are printed: "
        + ("all agree" if not stale else f"{stale} do not agree")
    )
    sys.stdout.flush()
