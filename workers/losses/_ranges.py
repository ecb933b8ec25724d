"""Ranges of the hyper-parameters of losses, with one wording for what is out of range."""

import math


def above_zero(loss: str, **values: float) -> None:
    """Raise ValueError where one of `values` is not a finite number above 0."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{loss}: {name} must be a finite number above 0, found {value!r}")


def at_least_zero(loss: str, **values: float) -> None:
    """Raise ValueError where one of `values` is not a finite number of at least 0."""
    for name, value in values.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{loss}: {name} must be a finite number of at least 0, found {value!r}")


def at_least(loss: str, least: int, **values: int) -> None:
    """Raise ValueError where one of `values` is below `least`."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{loss}: {name} must be at least {least}, found {value!r}")
