"""`when`: the labels of other axes under which something applies."""

from collections.abc import Collection, Mapping

When = dict[str, list[str]]
"""The labels of other axes under which something applies; it applies everywhere when empty."""


def applies(when: Mapping[str, Collection[str]], labels: Mapping[str, str]) -> bool:
    """Whether a point with these labels is one of those that `when` names."""
    return all(labels.get(axis) in wanted for axis, wanted in when.items())


def exclusive(one: When, other: When) -> bool:
    """Whether no point can satisfy both."""
    return any(axis in other and not set(wanted) & set(other[axis]) for axis, wanted in one.items())
