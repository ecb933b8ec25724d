"""docs/claims.md: what the twins show, with the figures of the seeds.

Twins that train the same find the same, so that a row may stand for several of them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.claims.assertion import Assertion
from benchmarks.claims.claim import Claim, Taken, Unseen, claims_of

PAGE: Final = Path(__file__).parents[2] / "docs" / "claims.md"
BEGIN: Final = "<!-- claims: begin -->"
END: Final = "<!-- claims: end -->"
NEW: Final = f"# Claims\n\n{BEGIN}\n{END}\n"
"""The page of a paper that has none yet."""
_HEAD: Final = "| twin | claim | metric | effect [95 %] | bound | margin |"
_RULE: Final = "|---|---|---|--:|--:|--:|"

Found = Sequence[Assertion | Unseen]


def table(found: Mapping[str, Found], page: str, unseen: str) -> str:
    """A row for each finding, the weakest pair of its claim where there are several; then `unseen`.

    Rows of twins that are not in `found` stay as they are on the `page`.
    """
    claimed = []
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines():
        if left := [twin for twin in twins_of(line) if twin not in found]:
            claimed.append(_named(line, left))
    for twin, entries in found.items():
        claimed += [row(twin, entry) for entry in entries if isinstance(entry, Assertion)]
    rows, claims = _distinct(claimed), sum(len(twins_of(line)) for line in claimed)
    count = (
        f"{claims} claims, which are {len(rows)} distinct findings: where twins train the same, a row names them all."
    )
    return "\n".join([count, "", _HEAD, _RULE, *rows, "", unseen])


def unseen(files: Mapping[str, Path], page: Path = PAGE) -> str:
    """The twins with claims that they do not show, whose files give the reasons, linked from the page."""
    claims = {name: claims_of(file.read_text(encoding="utf-8")) for name, file in files.items()}
    names = [twin for twin, entries in claims.items() if any(isinstance(entry, Unseen) for entry in entries)]
    if not names:
        return "The twins show every claim."
    links = ", ".join(f"[{twin}]({os.path.relpath(files[twin], page.parent)})" for twin in names)
    return f"Claims that the twins do not show stand with the reasons under `unseen` in {links}."


def _distinct(rows: Iterable[str]) -> list[str]:
    """The rows by twin, where several show the same numbers one with the twins of all and the strictest bound."""
    found: dict[tuple[str, ...], list[str]] = {}
    for line in rows:
        found.setdefault(tuple(_cells(line)[2:4]), []).append(line)
    merged = []
    for same in found.values():
        strictest = min(same, key=_bound)
        merged.append(_named(strictest, sorted({twin for line in same for twin in twins_of(line)})))
    return sorted(merged, key=twins_of)


def _bound(line: str) -> float:
    """The bound of a row, the smaller the stricter."""
    side, _, value = _cells(line)[4].partition(" ")
    return float(value.removeprefix("×")) * (1 if side == "below" else -1)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def twins_of(line: str) -> list[str]:
    """The twins that a row is of; none where it is no row of a twin."""
    return [name.strip("`") for name in _cells(line)[0].split(", ")] if line.startswith("| `") else []


def _named(line: str, twins: Sequence[str]) -> str:
    """The row with these twins in place of its own."""
    rest = line.partition(" | ")[2]
    return f"| {', '.join(f'`{twin}`' for twin in twins)} | {rest}"


def row(twin: str, found: Assertion) -> str:
    """One claim: its weakest pair."""
    claim, weak = found.claim, found.weakest
    sign = "" if claim.ratio is not None else "+"
    unit = "×" if claim.ratio is not None else ""
    effect = f"{unit}{weak.mean:{sign}.3g}"
    if weak.errors is not None:
        effect += f" [{weak.low:{sign}.3g}, {weak.high:{sign}.3g}]"
    margin = "" if weak.errors is None else f"{weak.errors:.1f}"
    bound = f"{claim.bound.side} {unit}{claim.bound.value:g}"
    cells = (f"`{twin}`", claim.says, f"`{_metric(claim)}`", effect, bound, margin if found.held else "**no**")
    return f"| {' | '.join(cells)} |"


def _metric(claim: Claim) -> str:
    return claim.metric if claim.at is None else f"{claim.metric} at {claim.at}"


def has_seeds(page: str, seeds: Sequence[int]) -> bool:
    """Whether the rows of the page are of these seeds."""
    return f"trainings with the seeds {seeds[0]} to {seeds[-1]}," in page


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
