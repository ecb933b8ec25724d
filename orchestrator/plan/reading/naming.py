"""Checks what tables and figures print in place of labels and titles."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from orchestrator.plan.problems import effort
from orchestrator.plan.problems.place import DocumentPlace
from orchestrator.spec.axis import labels_of
from orchestrator.spec.label import label_of, number_of
from orchestrator.spec.recipe import held
from orchestrator.spec.spec import Spec
from orchestrator.spec.table import PLACE, TableSpec
from workers.catalog import meant, shown


class Naming:
    """Reads `labels` and `titles` of one table, noting what is wrong with them."""

    def __init__(self, place: DocumentPlace, spec: Spec) -> None:
        self._note, self._spec = place.note, spec

    def labels(self, posted: Any) -> Any:
        """The posted `labels` with each label spelt as its axis does; what has another form stays as it is."""
        if not isinstance(posted, Mapping):
            return posted
        return {axis: self._of_axis(axis, texts) for axis, texts in posted.items()}

    def _of_axis(self, axis: str, texts: Any) -> Any:
        if not isinstance(texts, Mapping):
            return texts
        known = self._known_labels(axis)
        by_label: dict[str, Any] = {}
        for label, printed in texts.items():
            right = label if known is None else _spelt(label, known)
            if right is None:
                self._note(
                    f"labels.{axis}", f"axis '{axis}' has no alternative {shown(label)}; {meant(label, known or ())}"
                )
            elif isinstance(printed, Mapping | list) or printed is None:
                self._note(f"labels.{axis}.{label}", f"expected a text, found {shown(printed)}")
            else:
                by_label[right] = label_of(printed)
        return by_label

    def _known_labels(self, axis: str) -> Collection[str] | None:
        """The labels of an axis, and "" for where it does not apply; none where any may occur."""
        for axes in (self._spec.compare, self._spec.tune):
            if axis in axes:
                return ["", *labels_of(axes[axis])]
        value = held(axis, self._spec.recipe)
        return None if value is None else ["", value]

    def check(self, table: TableSpec, unreadable: Collection[str]) -> None:
        """Notes axes that the table does not show, and templates that no cell could fill."""
        axes = list(dict.fromkeys((*table.rows, *table.columns, *self._spec.compare, *self._spec.tune)))
        for field, given in (("labels", table.labels), ("titles", table.titles)):
            self._check_axes(field, given, axes)
        paths = {path for texts in table.labels.values() for one in texts.values() for path in PLACE.findall(one)}
        for path in sorted(paths):
            known = path in axes or held(path, self._spec.recipe) is not None
            if not known and path.partition(".")[0] not in unreadable:
                self._note("labels", f"no cell has a label for '{{{path}}}'; {meant(path, axes)}")

    def _check_axes(self, field: str, given: Iterable[str], axes: Sequence[str]) -> None:
        for axis in given:
            if axis not in axes:
                self._note(f"{field}.{axis}", f"'{axis}' is no axis of this table; {meant(axis, axes)}")


def _spelt(label: str, known: Collection[str]) -> str | None:
    """The label that is meant: the same text, or an equal number in another spelling."""
    if label in known:
        return label
    value = number_of(label)
    effort.spend(len(known))
    return None if value is None else next((one for one in known if number_of(one) == value), None)
