"""The named entries of a block of a spec, its tables or its figures, and what these may name."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.plan.problems.place import DocumentPlace
from workers.catalog import Catalog, Problem, shown

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Nameable:
    """What tables and figures may name beside the axes of their spec."""

    datasets: Sequence[str]
    """All data sets that the sweep trains on."""
    catalog: Catalog
    published: Collection[str] | None = None
    """The printed tables that are known, perhaps with the labels of their lines; none: whoever reads cannot say."""


def entries(
    block: Literal["tables", "figures"], posted: Any, most: int, problems: list[Problem]
) -> Iterator[tuple[str, Any, DocumentPlace]]:
    """Each entry by its name, with its place; notes what is wrong with the block and with names."""
    if posted is None:
        return
    if not isinstance(posted, Mapping):
        problems.append(Problem(block, f"expected a mapping from names to {block}, found {shown(posted)}"))
        return
    if len(posted) > most:
        problems.append(Problem(block, f"there are {len(posted):,} {block}; at most {most} are allowed"))
        return
    for name, given in posted.items():
        place = DocumentPlace(f"{block}.{name}", problems)
        if not NAME.fullmatch(name):
            place.note("", "expected a name of 1 to 64 letters, digits, '-' and '_'")
        yield name, given, place
