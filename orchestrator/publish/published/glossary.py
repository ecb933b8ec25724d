"""The papers' names and ours: axes, labels and metrics under one name, so that they can be compared."""

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from orchestrator.views.planned import Labels


class Glossary:
    """How one paper calls things; names compare without regard to case and blanks."""

    def __init__(self, paper: str) -> None:
        shared = _aliases()
        own = shared.get(paper, {})
        self._axes = _keyed(shared["axis"] | own.get("axis", {}))
        self._metrics = _keyed(shared["metric"] | own.get("metric", {}))
        labels, ours = shared["label"], own.get("label", {})
        self._labels = {axis: _keyed(labels.get(axis, {}) | ours.get(axis, {})) for axis in labels.keys() | ours.keys()}
        self._equal = [(self._plain(one["labels"]), self._plain(one["means"])) for one in shared["equal"]]

    def axis(self, name: str) -> str:
        """Our name of an axis."""
        return self._axes.get(_key(name), name)

    def metric(self, name: str) -> str:
        """Our name of a metric."""
        return self._metrics.get(_key(name), name)

    def label(self, axis: str, label: str) -> str:
        """Our name of a label on one of our axes, in one spelling; equal numbers get one too."""
        return _number(_key(self._labels.get(axis, {}).get(_key(label), label)))

    def ours(self, labels: Labels) -> dict[str, str]:
        """Labels under our names, those of equal trainings alike; "" where an axis does not apply."""
        found = self._plain(labels)
        for given, means in self._equal:
            if all(found.get(axis) == label for axis, label in given.items()):
                found |= means
        return found

    def _plain(self, labels: Labels) -> dict[str, str]:
        renamed = ((self.axis(name), label) for name, label in labels.items())
        return {axis: self.label(axis, label) for axis, label in renamed}


@cache
def glossary(paper: str) -> Glossary:
    """How a paper calls things."""
    return Glossary(paper)


@cache
def _aliases() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("aliases.toml").read_text(encoding="utf-8"))


def _keyed(names: Mapping[str, str]) -> dict[str, str]:
    return {_key(name): ours for name, ours in names.items()}


def _key(name: str) -> str:
    return "".join(name.casefold().split())


def _number(label: str) -> str:
    """`label`, or one spelling of the number that it is."""
    try:
        value = float(label)
    except ValueError:
        return label
    return repr(value) if math.isfinite(value) else label
