"""What was probably meant by a name that nothing has."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """`, did you mean 'triplet'?`, for the middle of a sentence; empty where nothing is near."""
    folded = {one.casefold(): one for one in known}
    near = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=3)]
    return f", did you mean {' or '.join(map(repr, near))}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`no loss named 'tripplet', did you mean 'triplet'?`, or what there is where nothing is near."""
    names = list(known)
    there = f"; there are {', '.join(names)}" if names else ""
    return f"no {what} named {name!r}{nearest(name, names) or there}"
