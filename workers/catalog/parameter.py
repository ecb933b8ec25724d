"""A hyper-parameter of a part: which values it takes, and a value in its type."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NoReturn

from pydantic import Field, JsonValue

from workers.catalog.bounds import Bounds
from workers.catalog.wording import listed, shown
from workers.contract import Frozen, Part

LONGEST_TEXT: Final = 1_000
"""Characters of a hyper-parameter that is a text, such as a path."""
LONGEST_LIST: Final = 1_000
"""Numbers or texts of one that is a list."""

_PLAIN: Final = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text",
    "ints": "a list of whole numbers", "floats": "a list of numbers", "strs": "a list of texts",
}  # fmt: skip
_LARGEST: Final = 1.7976931348623157e308  # what is beyond it, or NaN, is not finite


class Parameter(Frozen):
    """One hyper-parameter: a keyword-only argument of a part."""

    name: str
    type: Literal["int", "float", "bool", "str", "literal", "ints", "floats", "strs", "part"]
    optional: bool = False
    required: bool = False
    default: JsonValue = None
    choices: list[JsonValue] | None = None
    """What it may be, or what a list of texts may have, each once."""
    kind: str = Field(default="", exclude_if=lambda value: not value)
    """Of a hyper-parameter that is itself a part: of which kind."""
    bounds: str = Field(default="", exclude_if=lambda value: not value)
    """Which numbers it may be, in words, such as `above 0, at most 1`; empty where any number is allowed."""
    limits: Bounds = Field(default=Bounds(), exclude_if=lambda value: value == Bounds())
    """The same as numbers; of a list, the range of each of its numbers."""

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        words = {**_PLAIN, "literal": f"one of {listed(self.choices or [])}", "part": f"a {self.kind}"}[self.type]
        words = f"a list of some of {listed(self.choices)}" if self.type == "strs" and self.choices else words
        return f"{words}, or null" if self.optional else words

    def cast(self, value: Any) -> JsonValue:
        """`value` in this type, so that equal meanings are equal; ValueError says what is wrong.

        Of a part this is no more than its form: what it says is for the part's own entry (inner_parts.py).
        """
        if value is None and self.optional:
            return None
        if self.type == "part":
            return self._cast_part(value)
        if self.type in {"ints", "floats", "strs"}:
            return [*self._cast_all(value)]
        if self.type == "str" and isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise ValueError(f"expected a text of at most {LONGEST_TEXT:,} characters, found {len(value):,}")
        return self._cast_one(self.type, value)

    def _cast_all(self, value: Any) -> Iterator[JsonValue]:
        """The values of a list; of a list of texts that are to be chosen from each is there once."""
        if not isinstance(value, list | tuple):
            self._refuse(value)
        if len(value) > LONGEST_LIST:
            what = "texts" if self.type == "strs" else "numbers"
            raise ValueError(f"expected at most {LONGEST_LIST:,} {what}, found {len(value):,}")
        for place, one in enumerate(value):
            if isinstance(one, str) and len(one) > LONGEST_TEXT:
                raise ValueError(f"expected texts of at most {LONGEST_TEXT:,} characters, found {len(one):,}")
            if self.choices is not None and one in value[:place]:
                raise ValueError(f"expected each once, found {shown(one)} twice")
            yield self._cast_one("literal" if self.choices else self.type[:-1], one)

    def _cast_one(self, type_: str, value: Any) -> JsonValue:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        cast: JsonValue = None
        if type_ == "literal":
            equal = [choice for choice in self.choices or [] if choice == value]
            cast = next((choice for choice in equal if isinstance(choice, bool) == isinstance(value, bool)), None)
        elif type_ == "int" and number and (isinstance(value, int) or value.is_integer()):
            cast = int(value)
        elif type_ == "float" and number and abs(value) <= _LARGEST:
            cast = float(value) + 0.0  # turns -0.0 into 0.0
        elif (type_ == "bool" and isinstance(value, bool)) or (type_ == "str" and isinstance(value, str)):
            cast = value
        if cast is None:
            self._refuse(value)
        if type_ in {"int", "float"} and number and not self.limits.hold(value):
            what = (
                f"{_PLAIN[type_]} {'of ' if self.bounds.startswith('at ') else ''}{self.bounds.replace(', ', ' and ')}"
            )
            raise ValueError(f"expected {what}{', or null' if self.optional else ''}; found {shown(value)}")
        return cast

    def _cast_part(self, value: Any) -> JsonValue:
        """A part as a mapping with its `name`."""
        if not isinstance(value, str | Mapping | Part):
            self._refuse(value)
        try:
            part = Part.model_validate(dict(value) if isinstance(value, Mapping) else value)
            return part.model_dump(mode="json")
        except ValueError:  # of pydantic's: no part, or nested without end
            named = f"a {self.kind} by its name, or a mapping with `name` and its hyper-parameters"
            raise ValueError(f"expected {named}; found {shown(value)}") from None

    def _refuse(self, value: Any) -> NoReturn:
        hint = "; write it without quotes" if self.type in {"int", "float"} and _reads_as_number(value) else ""
        raise ValueError(f"expected {self.expected}, found {shown(value)}{hint}")


def _reads_as_number(value: Any) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False
