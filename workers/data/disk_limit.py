"""How many bytes something may take on a machine's disk, as an environment variable says it in gigabytes."""

import math
import os
from collections.abc import Callable
from typing import Final

GB: Final = 10**9


def disk_limit(setting: str, usual: float, range_: str, within: Callable[[float], bool]) -> float:
    """The bytes that `setting` allows, `usual` gigabytes where it says nothing.

    Raises ValueError where it is no number that is `within` its range, which `range_` says in words.
    """
    said = os.environ.get(setting) or str(usual)
    try:
        found = float(said)
    except ValueError:
        found = math.nan
    if not within(found):
        raise ValueError(f"{setting}: expected a number of gigabytes {range_}, found {said[:40]!r}")
    return found * GB
