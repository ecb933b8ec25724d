"""`verdicts`: whether the cells of a table are better than their baselines."""

from typing import Annotated

import typer

from api.commands.options import HOME, Home, Json, SweepId, Token, Url, connect
from api.commands.terminal import out, print_json, print_rows


def verdicts(
    number: SweepId,
    name: Annotated[str | None, typer.Argument(help="The table's name in the spec; by default its first.")] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
    home: Home = HOME,
) -> None:
    """Say of each cell whether it is better than its baseline, or how many more seeds would tell."""
    with connect(url, token, home) as client:
        judged = client.verdicts(number, name)
    if as_json:
        print_json(judged)
        return
    rows = [
        {
            "cell": " / ".join(one.labels.values()) or "the only cell",
            "metric": one.metric,
            "difference": "" if one.difference is None else f"{one.difference:+.4f}",
            "seeds": str(one.pairs),
            "verdict": one.said,
        }
        for one in judged.comparisons
    ]
    if rows:
        print_rows(rows, numbers=("difference", "seeds"))
    out.print(judged.said)
