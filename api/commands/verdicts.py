"""`verdicts`: whether the cells of a table are better than their baselines."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from api.commands.options import HOME, Home, Json, SweepId, Token, Url, connect
from api.commands.terminal import out, print_json, print_rows

if TYPE_CHECKING:
    from orchestrator.views.verdicts import CellVerdictView


def verdicts(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")] = None,
    covers: Annotated[
        Literal["seeds", "queries", "both"] | None,
        typer.Option(
            help="What they cover: other seeds, other test queries of these trainings, or both; by default as the "
            "table's spec says."
        ),
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say of each cell whether it is better than its baseline, or how many more seeds would tell."""
    with connect(url, token, home) as client:
        judged = client.verdicts(number, name, covers)
    if as_json:
        print_json(judged)
        return
    rows = [
        {
            "cell": " / ".join(one.labels.values()) or "the only cell",
            "metric": one.metric,
            "difference": "" if one.difference is None else f"{one.difference:+.4f}",
            "seeds": str(one.pairs),
        }
        | ({} if judged.covers == "seeds" else _errors(one))
        | {
            "verdict": one.said,
        }
        for one in judged.comparisons
    ]
    if rows:
        print_rows(rows, numbers=("difference", "seeds", "by seeds", "by queries"))
    out.print(judged.said)


def _errors(one: "CellVerdictView") -> dict[str, str]:
    """The standard errors of the difference by what it may come from."""
    known = {"by seeds": one.error_seeds, "by queries": one.error_queries}
    return {name: f"±{error:.4f}" if error is not None else "" for name, error in known.items()}
