"""What the fields of a posted spec are made of: labels, conditions, bounds, and the words for what is wrong."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from workers.catalog import MOST_REPORTED, brief, listed, near, sentence, shown, suggestion
from workers.contract import Frozen

T = TypeVar("T")

UNION: Final = "\0"
"""Begins the names of the members of unions in the location of an error; no key of a document holds it."""


def label_of(value: Any) -> str:
    """Converts a value of a spec to the label of an alternative: 0.001 -> 0.001, 1e-5 -> 1e-05, true -> true."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number_of(label: str) -> float | None:
    """Parses the label of an alternative as a number; None if it is not a number."""
    try:
        return float(label)
    except ValueError:
        return None


def finite(label: str) -> float | None:
    """Parses the label of an alternative as a finite number; None if it is not such a number."""
    value = number_of(label)
    return value if value is not None and math.isfinite(value) else None


def flow(labels: Iterable[str]) -> str:
    """Writes labels as YAML that can be pasted into a spec: `l2`, or `[l2, sec]`."""
    quoted = [label if re.fullmatch(r"[A-Za-z0-9_.@+-]+", label) else json.dumps(label) for label in labels]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


@dataclass(frozen=True, slots=True)
class Reading:
    """The pydantic validation context of a posted document; a stored spec is validated without it."""

    lenient: bool = False
    """Whether a part that cannot be read becomes `UNREADABLE` instead of an error, so that the rest can be checked."""


class _Unreadable:
    """Stands for a part of a document that has problems of form."""


UNREADABLE: Final[Any] = _Unreadable()


def is_lenient(info: ValidationInfo) -> bool:
    """Whether the validation keeps going past unreadable parts of the document, to check the rest."""
    return isinstance(info.context, Reading) and info.context.lenient


def _leniently(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return validate(value)
    except ValidationError:
        if is_lenient(info):
            return UNREADABLE
        raise


Lenient = Annotated[T, WrapValidator(_leniently)]
"""A part of a document without which the rest can still be checked."""


def with_corrected_keys(posted: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The entries of a posted mapping under its `known` keys; a misspelt key is corrected if the right key is
    absent.
    """
    renamed = {key: near(key, known) for key in posted if key not in known}
    kept = {key: value for key, value in posted.items() if key in known}
    return kept | {right: posted[key] for key, right in renamed.items() if right is not None and right not in kept}


# Errors


def refuse(message: str, value: Any = None, *loc: str | int) -> ValidationError:
    """Makes the error of one problem for a validator to raise; `loc` is the place within the validated value."""
    return ValidationError.from_exception_data("spec", [_line(message, loc, value)])


def _line(message: str, loc: tuple[str | int, ...], value: Any) -> InitErrorDetails:
    return InitErrorDetails(
        type=PydanticCustomError("sentence", "{message}", {"message": message}), loc=loc, input=value
    )


def expected(what: str) -> WrapValidator:
    """A validator that replaces all errors of a field by one message: `expected <what>, found <value>`."""

    def check(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise refuse(f"expected {what}, found {shown(value)}", value) from None

    return WrapValidator(check)


def at_most(count: int, noun: str) -> BeforeValidator:
    """A validator that refuses a list or mapping of more than `count` items before its items are validated."""

    def check(value: Any) -> Any:
        if isinstance(value, list | Mapping) and len(value) > count:
            raise refuse(f"there are {len(value):,} {noun}; at most {count:,} are allowed", value)
        return value

    return BeforeValidator(check)


def some(noun: str) -> BeforeValidator:
    """A validator that refuses a value that is not a list, and an empty list in a posted document."""

    def check(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, list) or (not value and info.context is not None):
            raise refuse(f"expected a list of at least one {noun}, found {shown(value)}", value)
        return value

    return BeforeValidator(check)


class Posted(Frozen):
    """A mapping of a posted spec, as base class: refuses unknown keys with a suggestion; every error is a sentence."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    if_missing: ClassVar[Mapping[str, str]] = {}
    """What to say where a required field is missing, instead of `is missing`."""
    nouns: ClassVar[Mapping[str, str]] = {}
    """What a field names from a fixed list; a wrong name gets a suggestion."""

    @classmethod
    def unknown(cls, key: str) -> str:
        """The message for a key that this mapping of the spec does not have."""
        return f"there is no key {shown(key)} here; {suggestion(key, cls.model_fields)}"

    @model_validator(mode="wrap")
    @classmethod
    def _in_sentences(cls, value: Any, validate: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:
        if is_lenient(info) and isinstance(value, Mapping):
            value = with_corrected_keys(value, cls.model_fields)
        try:
            return validate(value)
        except ValidationError as error:
            lines = islice(error.errors(include_url=False), MOST_REPORTED)
            raise ValidationError.from_exception_data(
                cls.__name__, [_line(cls._sentence(line), line["loc"], line["input"]) for line in lines]
            ) from None

    @classmethod
    def _sentence(cls, error: ErrorDetails) -> str:
        if len(error["loc"]) == 1 and error["type"] == "extra_forbidden":
            return cls.unknown(str(error["loc"][0]))
        if len(error["loc"]) == 1 and error["type"] == "missing":
            return cls.if_missing.get(str(error["loc"][0]), "is missing")
        if len(error["loc"]) == 1 and error["type"] == "literal_error" and error["loc"][0] in cls.nouns:
            field, found = str(error["loc"][0]), error["input"]
            right = suggestion(str(found), get_args(cls.model_fields[field].annotation))
            return f"there is no {cls.nouns[field]} {shown(found)}; {right}"
        if not error["loc"] and error["type"] == "model_type":
            found = error["input"]
            needed = ", ".join(f"`{name}`" for name, field in cls.model_fields.items() if field.is_required())
            return f"expected a mapping{needed and f' with {needed}'}, found {shown(found)}"
        return error["msg"] if error["type"] == "sentence" else sentence(error)


# Fields


def _or_null(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return [] if value is None else validate(value)


OR_NULL: Final = WrapValidator(_or_null)
"""Takes null for an empty list."""


def _plain_or_mapping(value: Any) -> str:
    return f"{UNION}mapping" if isinstance(value, Mapping | BaseModel) else f"{UNION}plain"


PLAIN_OR_MAPPING: Final = Discriminator(_plain_or_mapping)
"""Tells the members `plain` and `mapping` of a union apart."""

_Scalar = str | float | bool


def _is_scalar(value: Any) -> bool:
    """Whether a value can be a label or a printed text: a text, a number or a boolean."""
    return isinstance(value, str | int | float)


def _text(value: Any) -> str:
    if not _is_scalar(value):
        raise refuse(f"expected a text, found {shown(value)}", value)
    return label_of(value)


def _labels(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not values or not all(map(_is_scalar, values)):
        raise refuse(f"expected a label or a list of labels, found {shown(value)}", value)
    return list(map(label_of, values))


def _one_label(value: Any) -> str:
    labels = _labels(value)
    if len(labels) > 1:
        raise refuse(f"expected one label, found {listed(labels)}", value)
    return str(labels[0])


_CONDITION: Final = (
    "expected a mapping from an axis to one or several of its labels, such as {regularizer: [l2, sec]}; found "
)
NO_CONDITION: Final = f"{_CONDITION}nothing"


def _condition(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, Mapping) or (not value and info.context is not None):
        raise refuse(f"{_CONDITION}{shown(value)}", value)
    return value


def printable(longest: int, what: str = "") -> AfterValidator:
    """A validator that refuses a text that is blank, has several lines, or has more than `longest` characters."""

    def check(value: str) -> str:
        if value.strip() and value.isprintable() and len(value) <= longest:
            return value
        raise refuse(f"expected {what}1 to {longest} printable characters, found {shown(value)}", value)

    return AfterValidator(check)


def spelt(is_right: Callable[[str], bool], message: str) -> AfterValidator:
    """A validator that refuses a name if `is_right` is false; lenient validation keeps it, to check what it names."""

    def check(value: str, info: ValidationInfo) -> str:
        if is_lenient(info) or is_right(value):
            return value
        raise refuse(message, value)

    return AfterValidator(check)


Text = Annotated[str, Field(max_length=200)]
"""A short text, or the name of an axis."""
SCALAR: Final = BeforeValidator(_text, json_schema_input_type=_Scalar)
"""Takes a number or a boolean for the text that spells it."""
Printed = Annotated[str, Field(max_length=200), SCALAR]
"""A short text in print; a number may be posted for it."""
Label = Annotated[str, BeforeValidator(_one_label, json_schema_input_type=_Scalar)]
"""One label of an axis; a number, a boolean or a list of one label may be posted for it."""
_SeveralScalars = Annotated[list[_Scalar], Field(min_length=1)]
Labels = Annotated[list[str], BeforeValidator(_labels, json_schema_input_type=_Scalar | _SeveralScalars)]
When = Annotated[dict[str, Labels], BeforeValidator(_condition), Field(json_schema_extra={"minProperties": 1})]
"""The labels of other axes under which something applies; posted it names at least one axis."""
OneEach = Annotated[dict[str, Label], BeforeValidator(_condition), Field(json_schema_extra={"minProperties": 1})]
"""One label of each axis that is named, which tells a cell from others."""


# Forms of an axis


_MOST_GROUPS: Final = 1_000


def _kind_of_alternative(value: Any) -> str:
    labelled = isinstance(value, Mapping) and ("patch" in value or "label" in value)
    # A part with a label is taken for a value, since the message names the axis.
    return f"{UNION}labelled" if labelled and not ("name" in value and "patch" not in value) else f"{UNION}value"


def _is_group(value: Any) -> bool:
    """Whether an item of an axis is a group of alternatives or a range."""
    keys = ("values", "when", "low", "high")
    return isinstance(value, Mapping) and "name" not in value and any(key in value for key in keys)


def count_alternatives(posted: Any) -> int:
    """Counts the alternatives of a posted axis before it is validated; malformed items count as one."""
    if isinstance(posted, Mapping):
        posted = posted.get("values")
    if not isinstance(posted, list):
        return 1
    return sum(count_alternatives(item) if _is_group(item) else 1 for item in posted)


def _kind_of_group(value: Any) -> str | None:
    if isinstance(value, Mapping) and ("low" in value or "high" in value):
        return f"{UNION}range"
    return f"{UNION}group" if isinstance(value, Mapping) else None


def _kind_of_axis(value: Any) -> str | None:
    if isinstance(value, list):
        return f"{UNION}groups" if any(map(_is_group, value)) else f"{UNION}alternatives"
    return _kind_of_group(value)


def _axis(value: Any) -> Any:
    if value == []:
        raise refuse("the list is empty; an axis needs at least one alternative", value)
    if not isinstance(value, list | Mapping):
        bare = brief(value) if isinstance(value, str) else shown(value)
        raise refuse(f"expected a list of alternatives, such as [{bare}]", value)
    if isinstance(value, list) and len(value) > _MOST_GROUPS and any(map(_is_group, value)):
        raise refuse(f"the axis has {len(value):,} groups; at most {_MOST_GROUPS:,} are allowed", value)
    return value


def _among_groups(value: Any) -> Any:
    if not _is_group(value):
        raise refuse("an alternative stands next to groups; move it into the `values` of a group", value)
    return value


KIND_OF_ALTERNATIVE: Final = Discriminator(_kind_of_alternative)
"""Tells the members `labelled` and `value` of a union apart."""
KIND_OF_GROUP: Final = Discriminator(_kind_of_group)
"""Tells the members `group` and `range` of a union apart."""
KIND_OF_AXIS: Final = Discriminator(_kind_of_axis)
"""Tells the forms of an axis apart: `alternatives`, `groups`, `group` and `range`."""
AMONG_GROUPS: Final = BeforeValidator(_among_groups)
"""Refuses an alternative in a list of groups."""
NO_EMPTY_AXIS: Final = BeforeValidator(_axis)
"""Refuses what is no axis, an empty list, and too many groups."""
