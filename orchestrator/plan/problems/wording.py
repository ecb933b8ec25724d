"""How messages show values, suggest the name that was meant, and say what pydantic found."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.plan.problems.findings import MOST_TOLD
from orchestrator.plan.problems.near_names import near
from orchestrator.views.errors import Problem

_LONGEST: Final = 80  # characters of a value in a message
_MANY: Final = 500  # names among which a near miss is looked for
_FEW: Final = 30  # names that a message lists


def brief(told: str, most: int = _LONGEST) -> str:
    """A text of which no more than `most` characters stand in a message."""
    return told if len(told) <= most else f"{told[: most - 3]}..."


def shown(value: Any) -> str:
    """A value as a message shows it: a text in quotes, the rest as JSON, never long, however huge it is."""
    if isinstance(value, str):
        return brief(f"'{value[:_LONGEST]}'" if len(value) <= _LONGEST else f"'{value[:_LONGEST]}")
    return brief(json.dumps(_outline(value, [_LONGEST]), default=str, ensure_ascii=False))


def _outline(value: Any, room: list[int]) -> Any:
    """As much of a value as can be seen: every item of it takes at least one character of the `room`."""
    room[0] -= 1
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, Mapping):
        seen = itertools.takewhile(lambda _: room[0] > 0, value.items())
        return {str(key)[:_LONGEST]: _outline(inner, room) for key, inner in seen}
    if isinstance(value, list | tuple):
        return [_outline(inner, room) for inner in itertools.takewhile(lambda _: room[0] > 0, value)]
    return value


def listed(values: Iterable[Any]) -> str:
    """Values as a message lists them, the first of many: `'a', 'b'`."""
    several = list(values)
    more = f" and {len(several) - _FEW:,} more" if len(several) > _FEW else ""
    return ", ".join(shown(value) for value in several[:_FEW]) + more


def flow(labels: Iterable[str]) -> str:
    """Labels as YAML, ready to copy: `l2`, or `[l2, sec]`."""
    quoted = [label if re.fullmatch(r"[A-Za-z0-9_.@+-]+", label) else json.dumps(label) for label in labels]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


def meant(name: str, known: Iterable[str]) -> str:
    """What would be right instead of `name`: the near miss, else all that is known."""
    names = list(itertools.islice(known, _MANY))
    if close := near(name, names):
        return f"did you mean '{close}'?"
    more = ", ..." if len(names) > _FEW else ""
    return f"expected one of {', '.join(map(shown, names[:_FEW]))}{more}" if names else "there is none"


def sentences(error: ValidationError, source: str, model: type[BaseModel]) -> Iterator[Problem]:
    """What pydantic found wrong with the block at `source`, one problem a field."""
    said: set[str] = set()
    for details in itertools.islice(error.errors(include_url=False), MOST_TOLD):
        field = str(details["loc"][0]) if details["loc"] else ""
        path = ".".join(part for part in (source, field) if part)
        if path not in said:  # the members of a union each complain
            said.add(path)
            yield Problem(path, _sentence(details, field, model))


_SAID: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "string_type": "expected a text, found {found}",
    "int_type": "expected a whole number, found {found}",
    "int_from_float": "expected a whole number, found {found}",
    "float_type": "expected a number, found {found}",
    "bool_type": "expected true or false, found {found}",
    "list_type": "expected a list, found {found}",
    "dict_type": "expected a mapping, found {found}",
    "model_type": "expected a mapping, found {found}",
    "literal_error": "expected {expected}, found {found}",
    "greater_than": "expected more than {gt:,}, found {found}",
    "greater_than_equal": "expected at least {ge:,}, found {found}",
    "less_than_equal": "expected at most {le:,}, found {found}",
    "too_long": "expected at most {max_length:,} entries",
    "string_too_long": "expected at most {max_length:,} characters",
    "string_too_short": "expected at least one character",
    "value_error": "{error}",
}


def _sentence(details: ErrorDetails, field: str, model: type[BaseModel]) -> str:
    if details["type"] == "extra_forbidden":
        return f"there is no key {shown(field)} here; {meant(field, model.model_fields)}"
    if len(details["loc"]) > 1 and field in _UNIONS:
        return f"expected {_UNIONS[field]}"
    said = _SAID.get(details["type"], f"{details['msg']}, found {{found}}")
    return said.format(found=shown(details["input"]), **details.get("ctx", {}))


_UNIONS: Final[Mapping[str, str]] = {
    "gpus": "a share of a GPU such as 0.5, a whole number of GPUs, or 'auto'",
    "bold": "'none' or a list of axes",
    "rows": "a list of axes",
    "columns": "a list of axes",
    "panels": "a list of mappings from a column axis to a list of its labels",
    "labels": "a mapping from an axis to a mapping from its labels to texts",
    "titles": "a mapping from an axis to a text, or to null for no headings",
    "selections": "a list of 'validation' and 'test'",
    "std": "true, false or a mapping with `decimals` and `unit`",
}
"""What fields of several or of nested forms want, since pydantic speaks of each form by itself."""
