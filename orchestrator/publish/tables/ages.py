"""Numbers of older versions: which cells have them, beside those of today or alone, and the words that say so."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestrator.publish.tables.facts import few, listed
from orchestrator.publish.tables.table_data import Age
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import SweepOutcomes
from workers.catalog import Catalog, Change, changes, parse_metric

WORDS: Final[Mapping[Age, str]] = {"older": "numbers of older versions", "mixed": "numbers of several versions"}


@dataclass(frozen=True)
class Ages:
    """Of the cells of a sweep, or of several in one table."""

    cells: Mapping[int, Age] = field(default_factory=dict)  # those whose numbers are all of today's versions have none
    changed: tuple[str, ...] = ()  # what has other numbers today, such as `metric 'map' (version 1, now 2)`
    whole: bool = False  # whether every cell that has numbers has older ones alone

    def said(self, name: Callable[[int], str]) -> str:
        """One sentence, with the cells by `name`; "" where all is of today."""
        if not self.cells:
            return ""
        what = listed(self.changed)
        if self.whole:
            return f"Numbers of older versions: {what}."
        found = {age: [name(cell) for cell, one in self.cells.items() if one == age] for age in WORDS}
        where = "; ".join(f"{WORDS[age]} in {few(names)}" for age, names in found.items() if names)
        return f"Versions are MIXED, since numbers changed in {what}: {where}."


def ages(outcomes: SweepOutcomes, keys: Collection[str], catalog: Catalog) -> Ages:
    """What is said of results that are shown, or selected by, under some keys such as `best/test/recall@1`."""
    shown = {f"metric {parse_metric(key.rpartition('/')[2])[0]!r}" for key in keys}
    known: dict[str, tuple[Change, ...]] = {}
    outdated: defaultdict[int, set[bool]] = defaultdict(set)
    for trial in outcomes.trials:
        if trial.state is TrialState.FINISHED:
            if trial.stamp not in known:
                its = changes(trial.stamp, catalog)
                known[trial.stamp] = tuple(
                    one for one in its if one.what in shown or not one.what.startswith("metric ")
                )
            outdated[trial.cell].add(bool(known[trial.stamp]))
    if not any(known.values()):
        return Ages()
    aged: dict[int, Age] = {
        cell: "mixed" if False in old else "older" for cell, old in sorted(outdated.items()) if True in old
    }
    changed = tuple(sorted({str(one) for some in known.values() for one in some}))
    return Ages(aged, changed, all(aged.get(cell) == "older" for cell in outdated))
