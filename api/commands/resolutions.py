"""`resolve` and `resolution`: have a table's comparisons decided, and see what became of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from api.commands.budget import Hours, Seeds, above_zero
from api.commands.options import HOME, Home, Json, SweepId, Token, Url, connect
from api.commands.requests import follow
from api.commands.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    from orchestrator.views.resolutions import ResolutionRound, ResolutionView


def resolve(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")] = None,
    hours: Hours = None,
    seeds: Seeds = None,
    within: Annotated[
        float | None,
        typer.Option(callback=above_zero, help="What is known to so much, in the unit of the column, is decided too."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the first round would train.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Train further seeds of those cells alone whose comparisons are open, in rounds, as far as the budget goes."""
    from orchestrator.views.resolutions import ResolutionBudget

    budget = ResolutionBudget(hours=hours, seeds=seeds, within=within)
    with connect(url, token, home) as client:
        if dry_run:
            _print(client.resolutions.plan(number, budget, name), as_json)
            return
        asked = client.resolutions.ask(number, budget, name)
        sweep = asked.sweep
        out.print(f"sweep {sweep.id} {sweep.name}: asked to be resolved; `metricsweep resolution {sweep.id}` says how")
        follow(client, asked.request)


def resolution(
    number: SweepId,
    halt: Annotated[bool, typer.Option("--halt", help="Ask that no further round follow.")] = False,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Show what became of a resolution: verdicts before, rounds, verdicts after, trials saved; or end it."""
    with connect(url, token, home) as client:
        if halt:
            asked = client.resolutions.halt(number)
            out.print(f"sweep {number} {asked.sweep.name}: asked that no further round follow")
            follow(client, asked.request)
            return
        _print(client.resolutions.get(number), as_json)


def _print(found: "ResolutionView", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "cell": _cell(before.labels),
            "metric": before.metric,
            "before": before.said,
            **({"after": after.said if after else ""} if found.after else {}),
        }
        for before, after in found.changed()
    ]
    if rows:
        print_rows(rows)
    for trained in found.rounds:
        out.print(_round(trained))
    for left in found.rounds[-1].left_out if found.rounds else []:
        out.print(f"left out: {_cell(left.labels)}, {left.metric}: {left.why}")
    out.print(f"{found.state}: {found.said} (budget: {found.budget.said})")
    if found.state == "ended":
        rounds = f"{len(found.rounds)} round{'s' * (len(found.rounds) != 1)}"
        out.print(
            f"{found.trials} trials in {rounds}, {found.hours_spent:.3g} hours on one slot; "
            f"{found.saved} trials less than with as many seeds for every compared cell"
        )


def _round(one: "ResolutionRound") -> str:
    cells = "; ".join(f"{_cell(cell.labels)}: seeds {', '.join(map(str, cell.seeds))}" for cell in one.cells)
    hours = "" if one.hours is None else f", about {one.hours:.2g} hours on one slot"
    return f"round {one.number}: {one.trials} trials{hours}: {cells}"


def _cell(labels: Mapping[str, str]) -> str:
    return " / ".join(labels.values()) or "the only cell"
