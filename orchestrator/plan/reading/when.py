"""`when`: under which labels of other axes something applies."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from orchestrator.plan.problems import effort
from orchestrator.spec.label import label_of, number_of
from orchestrator.spec.when import When
from workers.catalog import Problem, listed, meant, shown

Known = Mapping[str, Collection[str] | None]
"""The labels of the axes that a `when` may name; None for an axis with problems of its own."""

_FEW: Final = 1000  # labels that are compared as numbers too, which takes one look at each


def read_when(posted: Any, source: str, known: Known, problems: list[Problem]) -> When:
    """A posted `when` written out; notes what is wrong, and gives what never applies where that is not readable."""
    if not isinstance(posted, Mapping) or not posted:
        example = "expected a mapping from an axis to one or several of its labels, such as {regularizer: [l2, sec]}"
        problems.append(Problem(source, f"{example}; found {shown(posted)}"))
        return {"": []}
    return {axis: _labels(axis, wanted, source, known, problems) for axis, wanted in posted.items()}


def _labels(axis: str, wanted: Any, source: str, known: Known, problems: list[Problem]) -> list[str]:
    if axis not in known:
        right = meant(axis, known) if known else "there is none"
        problems.append(Problem(source, f"no axis {shown(axis)} is applied before this; {right}"))
        return []
    values = wanted if isinstance(wanted, list) else [wanted]
    if not values or any(value is None or isinstance(value, list | Mapping) for value in values):
        problems.append(Problem(f"{source}.{axis}", f"expected a label or a list of labels, found {shown(wanted)}"))
        return []
    labels = known[axis]
    if labels is None:
        return [label_of(value) for value in values]
    matches = {label_of(value): match(value, labels) for value in values}
    if strange := [label for label, match in matches.items() if match is None]:
        right = meant(strange[0], labels)
        problems.append(Problem(f"{source}.{axis}", f"axis '{axis}' has no alternative {listed(strange)}; {right}"))
    return [match for match in matches.values() if match is not None]


def match(value: Any, labels: Collection[str]) -> str | None:
    """The label that a value means: the same text, or an equal number in another spelling."""
    if label_of(value) in labels:
        return label_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or len(labels) > _FEW:
        return None
    effort.spend(len(labels))
    return next((label for label in labels if number_of(label) == value), None)
