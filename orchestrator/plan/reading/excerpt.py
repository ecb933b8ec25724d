"""Writes `--only dataset=cub200,sop` and `--without` into the text of a spec; comments and order stay."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.plan.reading.document import parse
from orchestrator.plan.reading.edit import placed
from orchestrator.plan.reading.reader import read
from orchestrator.plan.reading.subset import KEYS, read_labels
from orchestrator.plan.reading.when import match
from orchestrator.spec.axis import ROLES, labels_of
from orchestrator.spec.label import label_of as spelt
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem


def excerpt(text: bytes, only: Sequence[str], without: Sequence[str]) -> bytes:
    """`text` with each `axis=label,label` set in its `only` or added to its `without`.

    Several of one axis add up, and take the place of an `only` of that axis that stands in the text. Raises
    InvalidSpecError for a text that is no YAML, and for axes and labels that the spec does not have; TooLargeError.
    """
    document = parse(text)
    if not isinstance(document, Mapping):
        return text  # which the check refuses
    spec = read({key: value for key, value in document.items() if key not in KEYS}, []).spec  # the check tells why not
    for key, given in zip(KEYS, (only, without), strict=True):
        for axis, labels in _asked(key, given, spec).items():
            posted = document.get(key)
            block = posted if isinstance(posted, Mapping) else {}
            together = [*_listed(block[axis]), *labels] if key == "without" and axis in block else labels
            text = placed(text, [key, axis], together) if block else placed(text, [key], {axis: together})
            document = parse(text)
    return text


def _asked(key: str, given: Sequence[str], spec: Spec) -> dict[str, list[Any]]:
    """The labels of each axis that options name, numbers as such."""
    known = {name: labels_of(axis) for role in ROLES for name, axis in spec.axes(role).items()}
    by_axis: dict[str, list[Any]] = {}
    for option in given:
        axis, sign, labels = (part.strip() for part in option.partition("="))
        place = f"--{key} {option}"
        if not sign or not axis:
            raise InvalidSpecError([Problem(place, "expected AXIS=LABEL,LABEL, such as dataset=cub200,cars196")])
        problems: list[Problem] = []
        right = read_labels({axis: list(_split(labels, known.get(axis, ())))}, key, known, spec.recipe, problems)
        if problems:
            raise InvalidSpecError([Problem(place, one.message) for one in problems])
        by_axis[axis] = list(dict.fromkeys([*by_axis.get(axis, []), *map(_plain, right[axis])]))
    return by_axis


def _split(given: str, labels: Collection[str]) -> Iterator[str]:
    """What stands between commas, the longest label first, since labels may hold commas."""
    parts = given.split(",")
    while parts:
        taken, label = next(
            ((end, one) for end in range(len(parts), 0, -1) if (one := ",".join(parts[:end]).strip()) in labels),
            (1, parts[0].strip()),
        )
        yield label if label in labels else _equal(label, labels)
        parts = parts[taken:]


def _equal(given: str, labels: Collection[str]) -> str:
    """The label that is the same number in another spelling, such as 1e-3 and 0.001."""
    try:
        return match(float(given), labels) or given
    except ValueError:
        return given


def _plain(label: str) -> Any:
    """A label as one would write it: a number without quotes."""
    try:
        value = json.loads(label)
    except ValueError:
        return label
    return value if isinstance(value, int | float) and spelt(value) == label else label


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
