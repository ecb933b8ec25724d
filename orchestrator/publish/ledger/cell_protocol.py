"""In what the runs of a cell differ from what a paper did, as far as it says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.published import Number
from orchestrator.publish.published.held import held_recipe
from orchestrator.publish.published.protocol import PaperProtocol
from orchestrator.publish.select import selection
from orchestrator.publish.tables.table_data import Column
from orchestrator.spec.label import label_of
from orchestrator.views.ledger import ProtocolDifference
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Cell
from workers.contract import Recipe

_SPLITS: Final = {
    "test": "the test split",
    "validation": "the validation split",
    "last": "the last weights, candidates by the test split",
}
_ALL_CLASSES: Final = "none: trained on all training images"


@dataclass(frozen=True, slots=True)
class CellProtocol:
    """What a cell of a sweep did, beside what the paper says."""

    outcomes: SweepOutcomes
    cell: Cell
    paper: PaperProtocol

    def data_set(self) -> str:
        """The name of the data set that it trains on."""
        return _label(self._at("dataset"))

    def tests_on(self, name: str) -> bool:
        """Whether it is a data set of that name that is tested: its own, or a test set beside that."""
        found = self._at("dataset")
        tests = found.get("tests", ()) if isinstance(found, Mapping) else ()
        return name in {_label(found), *tests}

    def differences(self, column: Column, number: Number, runs: int) -> list[ProtocolDifference]:
        """What differs of one number of the cell, and what the paper leaves open."""
        return [ProtocolDifference(what=what, paper=paper, here=here)
                for what, paper, here in self._found(column, number, runs)]  # fmt: skip

    def _found(self, column: Column, number: Number, runs: int) -> Iterator[tuple[str, str, str]]:
        if number.source:
            yield "protocol", f"that of {number.source}, which is not known here", "that of the sweep"
            return
        if self.paper.runs:
            yield "runs", self.paper.runs, f"mean of {runs}" if runs != 1 else "1"
        held = self._at("validation")
        if _label(held) != self.paper.validation:
            yield "validation", _ALL_CLASSES if self.paper.validation == "none" else self.paper.validation, _whole(held)
        split = column.selection or selection(self.outcomes.spec).split
        if split != self.paper.select:
            inferred = f"{_SPLITS[self.paper.select]} (inferred)" if self.paper.select in _SPLITS else self.paper.select
            yield "selection", inferred, f"by {_SPLITS.get(split, split)}"
        for path, expected in self.paper.recipe.items():
            if (here := _label(self._at(path))) != expected:
                yield path, expected, here
        stem = column.name.rpartition(":")[2]
        if number.metric in self.paper.metric and stem != (wanted := self.paper.metric[number.metric]):
            yield "clustering", wanted, stem

    def _at(self, path: str) -> Any:
        recipe = held_recipe(self.outcomes.spec, self.cell.labels)
        if path in recipe:
            return recipe[path]
        default = Recipe.model_fields[path].default
        return default.model_dump(mode="json") if hasattr(default, "model_dump") else default


def _label(value: Any) -> str:
    name = value.get("name") if isinstance(value, Mapping) else value
    return "" if name is None else label_of(name)


def _whole(value: Any) -> str:
    """A part with its hyper-parameters: `class_holdout (folds 4, fold 0)`."""
    if not isinstance(value, Mapping):
        return _label(value)
    more = ", ".join(f"{key} {label_of(one)}" for key, one in value.items() if key != "name" and one is not None)
    return f"{_label(value)} ({more})" if more else _label(value)
