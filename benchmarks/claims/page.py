"""docs/claims.md: what the twins show, with the figures of the seeds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.claims.assertion import Assertion
from benchmarks.claims.claim import Claim, Taken, Unseen

PAGE: Final = Path(__file__).parents[2] / "docs" / "claims.md"
BEGIN: Final = "<!-- claims: begin -->"
END: Final = "<!-- claims: end -->"
_HEAD: Final = "| twin | claim | metric | of | against | effect [95 %] | bound | margin | held |"
_RULE: Final = "|---|---|---|--:|--:|--:|--:|--:|---|"

Found = Sequence[Assertion | Unseen]


def table(found: Mapping[str, Found]) -> str:
    """A row for each claim of each twin, the weakest of its pairs where there are several; then what is not seen."""
    lines = [_HEAD, _RULE]
    lines += [row(twin, one) for twin, ones in found.items() for one in ones if isinstance(one, Assertion)]
    lines += ["", "What digits do not show:", "", "| twin | the paper's claim | why not here |", "|---|---|---|"]
    lines += [
        f"| `{twin}` | {one.unseen} | {one.why} |"
        for twin, ones in found.items()
        for one in ones
        if isinstance(one, Unseen)
    ]
    return "\n".join(lines)


def row(twin: str, found: Assertion) -> str:
    """One claim: its weakest pair."""
    claim, weak = found.claim, found.weakest
    sign = "" if claim.ratio is not None else "+"
    unit = "×" if claim.ratio is not None else ""
    effect = f"{unit}{weak.mean:{sign}.3g}"
    if weak.errors is not None:
        effect += f" [{weak.low:{sign}.3g}, {weak.high:{sign}.3g}]"
    margin = "" if weak.errors is None else f"{weak.errors:.1f} SE"
    cells = (
        f"`{twin}`", claim.says, f"`{_metric(claim)}`", f"{weak.of:.4g}", f"{weak.against:.4g}", effect,
        f"{claim.bound.side} {unit}{claim.bound.value:g}", margin, "yes" if found.held else "**no**",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _metric(claim: Claim) -> str:
    return claim.metric if claim.at is None else f"{claim.metric} at {claim.at}"


def put(page: str, content: str) -> str:
    """The page with `content` between its marks; raises ValueError where it lacks them."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise ValueError(f"{PAGE} lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{after}"


def spelt(taken: Taken) -> str:
    """Labels as one would say them."""
    return ", ".join(f"{axis} {' or '.join(labels)}" for axis, labels in taken.items())


def lines(found: Mapping[str, Found]) -> Iterator[str]:
    """For a terminal: one line for each claim."""
    for twin, ones in found.items():
        for one in ones:
            if isinstance(one, Assertion):
                weak = one.weakest
                said = "held" if one.held else "DOES NOT HOLD"
                sides = f"{spelt(one.claim.of)} {weak.of:.4g}, {spelt(one.claim.against)} {weak.against:.4g}"
                yield f"{twin}: {said}: {one.claim.says} ({sides}: {weak.mean:.3g}, claimed {one.claim.bound})"
