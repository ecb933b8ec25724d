"""The name that was probably meant by a wrong one."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from orchestrator.plan.problems import effort

_NEAR: Final = 0.6  # of the characters that two names have in common, as difflib counts them
_LONGEST: Final = 100  # characters of a name that is compared


def near(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant; None where nothing is near, or where a check has compared enough."""
    if len(name) > _LONGEST:
        return None
    matcher = SequenceMatcher(None, "", name)
    found: tuple[float, str] | None = None
    for one in known:
        if not effort.affords(len(one) + len(name)):
            break
        matcher.set_seq1(one)
        if matcher.real_quick_ratio() < _NEAR or matcher.quick_ratio() < _NEAR:
            continue
        if not effort.affords(len(one) * len(name)):
            break
        if (ratio := matcher.ratio()) >= _NEAR:
            found = max(found or (0.0, ""), (ratio, one))
    return found[1] if found else None
