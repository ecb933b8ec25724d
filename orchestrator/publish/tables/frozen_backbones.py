"""Which cells have a backbone that is never trained, in the words of a caption: their numbers are of head and loss."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.publish.published.held import held_recipe
from orchestrator.publish.tables.facts import TableFacts, few, listed
from orchestrator.views.planned import Cell


def words(facts: TableFacts) -> str:
    """Which cells have a frozen backbone, and of which network the features are; "" where none has one."""
    spec = facts.outcomes.spec
    if not any(_network(backbone, facts) for backbone in _backbones(spec)):
        return ""
    found = {cell.index: _network(_of_cell(facts, cell), facts) for cell in facts.outcomes.cells}
    networks = [*dict.fromkeys(name for name in found.values() if name)]
    if not networks:
        return ""
    of = f"frozen: head and loss are trained on features of {listed(networks)}"
    if all(found.values()):
        return f"The backbone is {of}."
    return f"In {few([facts.cell_name(cell) for cell, name in found.items() if name])} the backbone is {of}."


def _network(backbone: Any, facts: TableFacts) -> str:
    """The network whose features a backbone takes, in print; "" where it takes images."""
    if not isinstance(backbone, Mapping):
        return ""
    entry = facts.names.parts.get("backbone", str(backbone.get("name")))
    if entry is None or entry.facts.get("reads") != "features":
        return ""
    of = backbone.get("of")
    if of is None:  # the sweeps of a comparison hold several, which its caption says
        return ""
    name = str(of.get("name") if isinstance(of, Mapping) else of)
    within = facts.names.parts.get("backbone", name)
    return within.label if within else name


def _backbones(spec: Mapping[str, Any]) -> Iterator[Any]:
    """All backbones that stand in a spec."""
    yield (spec.get("recipe") or {}).get("backbone")
    for role in ("compare", "tune"):
        for groups in (spec.get(role) or {}).values():
            yield from (choice["patch"].get("backbone") for group in groups for choice in group["choices"])
    yield from (rule["patch"].get("backbone") for rule in spec.get("rules") or ())


def _of_cell(facts: TableFacts, cell: Cell) -> Any:
    """The backbone of the candidate that a cell shows, or of the cell before anything is tuned where it shows none."""
    summary = facts.summaries.get(cell.index)
    return held_recipe(facts.outcomes.spec, cell.labels, summary.labels if summary else None).get("backbone")
