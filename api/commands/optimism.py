"""`optimism`: how optimistic it is to show the best of several candidates."""

from api.commands.options import HOME, Home, Json, SweepId, Token, Url, connect
from api.commands.terminal import out, print_json, print_rows


def optimism(number: SweepId, as_json: Json = False, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Say by how much the best candidate of each cell looks better than it is, and what fewer would have found."""
    with connect(url, token, home) as client:
        told = client.evidence.optimism(number)
    if as_json:
        print_json(told)
        return
    rows = []
    for cell in told.cells:
        curve = cell.expected
        rows.append(
            {
                "cell": " / ".join(cell.labels.values()) or "the only cell",
                "candidates": str(cell.candidates),
                "runs": str(cell.runs),
                "best": "" if cell.best is None else f"{cell.best:.4f}",
                "optimism": cell.reason if cell.optimism is None else f"{cell.optimism:+.4f}",
                "expected best of 1, half, all": ", ".join(
                    f"{curve[at]:.4f}" for at in dict.fromkeys((0, (len(curve) - 1) // 2, len(curve) - 1)) if curve
                ),
            }
        )
    print_rows(rows, numbers=("candidates", "runs", "best"))
    out.print(told.said)
