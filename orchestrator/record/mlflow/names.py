"""What MLflow calls parameters and metrics: its own alphabet, and names short enough for a column's head."""

import posixpath
import re
from typing import Final

_MAX_KEY: Final = 250  # characters
_USUAL: Final = {"best", "test"}
"""What a result key says of nearly every number that somebody looks at, and a name leaves out."""


def single(key: str) -> str:
    """A number of a result: `best/test/recall@1` is `recall@1`, `last/validation/map@r` is `map@r validation last`.

    No slash is left in it: MLflow draws what has one first, and that is the curves.
    """
    checkpoint, _, rest = key.partition("/")
    split, _, metric = rest.partition("/")
    if not metric:
        return key.replace("/", " ")
    return " ".join([metric.replace("/", " "), *(word for word in (split, checkpoint) if word not in _USUAL)])


def importance(key: str) -> tuple[bool, bool]:
    """By what result keys are sorted, since MLflow lists metrics as they come: the best on test before all others."""
    checkpoint, _, rest = key.partition("/")
    return checkpoint != "best", rest.partition("/")[0] != "test"


def spread(key: str) -> str:
    """The standard deviation of a number over the repeats."""
    return f"{single(key)} std"


def accepted(name: str) -> str:
    """`name` as MLflow accepts keys: `test/recall@1` becomes `test/recall_at_1`."""
    clean = re.sub(r"[^/\w.\- :]", "_", name.replace("@", "_at_"))
    clean = posixpath.normpath(clean).lstrip("/")
    while clean.startswith("../"):
        clean = clean[3:]
    return (clean if clean not in {"", ".", ".."} else "_")[:_MAX_KEY]
