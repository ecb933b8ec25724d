"""A part's source as data: its class, hyper-parameters, their types and ranges; nothing is imported."""

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from pydantic import Field, JsonValue

from workers.catalog.wording import listed, shown
from workers.contract import KINDS, PML, Frozen, Part

_MARKS: Final[Mapping[str, tuple[str, str, Callable[[float, float], bool]]]] = {
    "Gt": ("gt", "above", operator.gt),
    "Ge": ("ge", "at least", operator.ge),
    "Lt": ("lt", "below", operator.lt),
    "Le": ("le", "at most", operator.le),
}
"""The field of `Bounds`, the words, and the comparison for each class of annotated-types."""
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Div: operator.truediv,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}

LONGEST_TEXT: Final = 1_000
"""The maximal length of a hyper-parameter that is a text, such as a path."""
LONGEST_LIST: Final = 1_000
"""The maximal length of a hyper-parameter that is a list."""

_PLAIN: Final = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text",
    "ints": "a list of whole numbers", "floats": "a list of numbers", "strs": "a list of texts",
}  # fmt: skip
_LARGEST: Final = 1.7976931348623157e308  # of float64

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The names of parts, and so of their files."""

_SEVERAL: Final = {"int": "ints", "float": "floats", "str": "strs", "texts": "strs"}  # the list type of an item type
_METADATA: Final = ("label", "paper", "version", "formula")
_WRITTEN_OUT: Final = (*_METADATA, "added")  # they decide fingerprints, so none may be overlooked

_OF_A_MODULE: Final = (
    "dim", "classes", "images", "channels", "side", "batch", "epoch", "network", "root", "scratch",
)  # fmt: skip
OFFERED: Final[Mapping[str, Sequence[str]]] = {
    "task": ("model", "loss", "regularizer", "eta", "batches", "measures", "figures", "device", "seed"),
    "loss": _OF_A_MODULE,
    "regularizer": _OF_A_MODULE,
    "backbone": _OF_A_MODULE,
    "head": (*_OF_A_MODULE, "features"),
    "dataset": ("root", "scratch"),
    "sampler": ("labels", "generator"),
    "optimizer": ("groups",),
    "schedule": ("total", "unit"),
    "eta_schedule": ("eta", "total", "epoch", "unit"),
    "metric": (),
}
"""What the trainer offers a part of each kind: the arguments that may stand before the `*`."""


class Bounds(Frozen):
    """The allowed range of a numeric hyper-parameter; an end that is None is unlimited."""

    gt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    ge: float | None = Field(default=None, exclude_if=lambda value: value is None)
    lt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    le: float | None = Field(default=None, exclude_if=lambda value: value is None)

    def hold(self, value: float) -> bool:
        ends = [(holds, getattr(self, field)) for field, _, holds in _MARKS.values()]
        return all(end is None or holds(value, end) for holds, end in ends)

    @property
    def words(self) -> str:
        """The range in words for messages, such as `above 0, at most 1`; empty without limits."""
        ends = [(words, getattr(self, field)) for field, words, _ in _MARKS.values()]
        return ", ".join(f"{words} {_number(end)}" for words, end in ends if end is not None)


class Parameter(Frozen):
    """A hyper-parameter of a part: a keyword-only argument of its `__init__`."""

    name: str
    type: Literal["int", "float", "bool", "str", "literal", "ints", "floats", "strs", "part"]
    optional: bool = False
    required: bool = False
    default: JsonValue = None
    choices: list[JsonValue] | None = None
    """The allowed values; the allowed items of a list of texts, each at most once; or values besides whole numbers."""
    kind: str = Field(default="", exclude_if=lambda value: not value)
    """The kind of part, if the hyper-parameter is a part."""
    bounds: str = Field(default="", exclude_if=lambda value: not value)
    """The allowed range in words, such as `above 0, at most 1`; empty if there is no limit."""
    limits: Bounds = Field(default=Bounds(), exclude_if=lambda value: value == Bounds())
    """The allowed range of the number, or of each number of a list."""

    @property
    def expected(self) -> str:
        """The allowed values of the hyper-parameter, in words for messages."""
        words = {**_PLAIN, "literal": f"one of {listed(self.choices or [])}", "part": f"a {self.kind}"}[self.type]
        if self.choices and self.type in {"strs", "int"}:
            words = f"{'a list of some' if self.type == 'strs' else f'{words}, or one'} of {listed(self.choices)}"
        return f"{words}, or null" if self.optional else words

    def cast(self, value: Any) -> JsonValue:
        """Converts `value` to the hyper-parameter's type, so that equal meanings are equal; raises ValueError.

        Of a part only the form is checked; its hyper-parameters are checked against its own entry.
        """
        if value is None and self.optional:
            return None
        if self.type == "int" and isinstance(value, str) and value in (self.choices or ()):
            return value
        if self.type == "part":
            return self._cast_part(value)
        if self.type in {"ints", "floats", "strs"}:
            return [*self._cast_all(value)]
        if self.type == "str" and isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise ValueError(f"expected a text of at most {LONGEST_TEXT:,} characters, found {len(value):,}")
        return self._cast_one(self.type, value)

    def _cast_all(self, value: Any) -> Iterator[JsonValue]:
        if not isinstance(value, list | tuple):
            self._refuse(value)
        if len(value) > LONGEST_LIST:
            what = "texts" if self.type == "strs" else "numbers"
            raise ValueError(f"expected at most {LONGEST_LIST:,} {what}, found {len(value):,}")
        for place, item in enumerate(value):
            if isinstance(item, str) and len(item) > LONGEST_TEXT:
                raise ValueError(f"expected texts of at most {LONGEST_TEXT:,} characters, found {len(item):,}")
            if self.choices is not None and item in value[:place]:
                raise ValueError(f"expected each once, found {shown(item)} twice")
            yield self._cast_one("literal" if self.choices else self.type[:-1], item)

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
        if not isinstance(value, str | Mapping | Part):
            self._refuse(value)
        try:
            part = Part.model_validate(dict(value) if isinstance(value, Mapping) else value)
            return part.model_dump(mode="json")
        except ValueError:  # it is no part, or it is nested too deeply
            named = f"a {self.kind} by its name, or a mapping with `name` and its hyper-parameters"
            raise ValueError(f"expected {named}; found {shown(value)}") from None

    def _refuse(self, value: Any) -> NoReturn:
        hint = "; write it without quotes" if self.type in {"int", "float"} and _reads_as_number(value) else ""
        raise ValueError(f"expected {self.expected}, found {shown(value)}{hint}")


class Entry(Frozen):
    """The catalog's description of a part, read from its source."""

    kind: str
    name: str
    label: str
    paper: str | None = None
    version: int = 1
    doc: str = ""
    formula: str | None = Field(default=None, exclude_if=lambda value: value is None)  # the formula in LaTeX
    parameters: list[Parameter] = Field(default_factory=list)
    inputs: list[str] = Field(default_factory=list)
    optional_inputs: list[str] = Field(default_factory=list, exclude_if=lambda value: not value)
    """The `inputs` whose type is `X | None`."""
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    own: bool = False  # whether it comes from the folder of own parts
    code: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The hash of the source of an own part, including the modules of the folder that it uses."""

    @property
    def added(self) -> list[str]:
        """The hyper-parameters that were added without changing numbers; completed recipes omit them at their
        default.
        """
        return self.fact_names("added")

    def fact_names(self, fact: str) -> list[str]:
        """The names in a declared fact of the part, which is a list."""
        names = self.facts.get(fact)
        return [str(name) for name in names] if isinstance(names, list) else []

    def parameter(self, name: str) -> Parameter | None:
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def filled(self, options: Mapping[str, Any]) -> dict[str, JsonValue]:
        """The options of the part in the types of its hyper-parameters, completed with defaults.

        Raises ValueError for an invalid value, an unknown name, or a missing required hyper-parameter.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if strange := [name for name in options if name not in known]:
            raise ValueError(f"{self.kind} {self.name!r} has no hyper-parameter {listed(strange)}")
        values: dict[str, JsonValue] = {}
        for name, parameter in known.items():
            if name not in options and parameter.required:
                missing = [other for other in known if known[other].required and other not in options]
                raise ValueError(f"{self.kind} {self.name!r} needs the hyper-parameter {listed(missing)}")
            try:
                values[name] = parameter.cast(options[name]) if name in options else parameter.default
            except ValueError as error:
                raise ValueError(f"{self.kind} {self.name!r}: {name}: {error}") from error
        return values


def read(kind: str, path: Path, own: bool = False) -> Entry:
    """Reads the catalog entry of the part in the source file `path`; raises PartSourceError."""
    if not NAME.fullmatch(path.stem):
        raise PartSourceError(f"{path}: a part's file is named in lower case, such as proxy_anchor.py")
    try:
        module = ast.parse(path.read_bytes(), str(path))
        classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        part = _the_part(classes)
        chain = _ancestry(part, classes)
        literals: dict[str, JsonValue] = {}
        for node in reversed(chain):
            literals.update(_literals(node))
        parameters, inputs, optional = _signature(chain)
        _check_added(literals.get("added", []), parameters)
        _check_inputs(kind, inputs)
        return Entry(
            kind=kind,
            name=path.stem,
            label=_metadata(literals, "label", str, path.stem),
            paper=_metadata(literals, "paper", str, None),
            version=_metadata(literals, "version", int, 1),
            doc=ast.get_docstring(part) or "",
            formula=_metadata(literals, "formula", str, None),
            parameters=parameters,
            inputs=inputs,
            optional_inputs=optional,
            facts={name: value for name, value in sorted(literals.items()) if name not in _METADATA},
            own=own,
        )
    except SyntaxError as error:
        raise PartSourceError(f"{path}: line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise PartSourceError(f"{path}: {error}") from error


class PartSourceError(ValueError):
    """A source file does not define a part; the message names the file."""


def _the_part(classes: dict[str, ast.ClassDef]) -> ast.ClassDef:
    public = [node for name, node in classes.items() if not name.startswith("_")]
    if len(public) != 1:
        found = f"found {len(public)}: {', '.join(node.name for node in public)}" if public else "found none"
        raise ValueError(f"a part's file has exactly one public class; {found}")
    return public[0]


def _ancestry(part: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """The class and its bases in the same file, nearest first."""
    chain = [part]
    for node in chain:
        bases = [classes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
        chain.extend(base for base in bases if base not in chain)
    return chain


def _literals(node: ast.ClassDef) -> Iterator[tuple[str, JsonValue]]:
    """The public attributes of a class with literal values; a tuple becomes a list."""
    for statement in node.body:
        target: ast.expr
        match statement:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case _:
                continue
        if not isinstance(target, ast.Name) or target.id.startswith("_"):
            continue
        try:
            yield target.id, json.loads(json.dumps(ast.literal_eval(value), allow_nan=False))
        except (ValueError, TypeError) as error:
            if target.id in _WRITTEN_OUT:
                raise ValueError(f"`{target.id}` must be a literal value, without names or calls") from error


def _signature(chain: list[ast.ClassDef]) -> tuple[list[Parameter], list[str], list[str]]:
    """The hyper-parameters, the arguments before the `*`, and the optional ones of these, of the nearest `__init__`."""
    functions = (node for owner in chain for node in owner.body if isinstance(node, ast.FunctionDef))
    definition = next((node for node in functions if node.name == "__init__"), None)
    if definition is None:
        return [], [], []
    init = definition.args
    if init.vararg or init.kwarg:
        raise ValueError("`__init__` names each of its arguments; it has no *args and no **kwargs")
    asked = [*init.posonlyargs, *init.args][1:]
    optional = [argument.arg for argument in asked if _is_optional(argument.annotation)]
    pairs = zip(init.kwonlyargs, init.kw_defaults, strict=True)
    parameters = [_parameter(argument, default) for argument, default in pairs]
    return parameters, [argument.arg for argument in asked], optional


def _is_optional(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Constant(value=str(quoted)):
            return _is_optional(ast.parse(quoted, mode="eval").body)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return any(isinstance(side, ast.Constant) and side.value is None for side in (left, right))
    return False


def _parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    name = argument.arg
    if argument.annotation is None:
        raise ValueError(f"hyper-parameter `{name}` has no type")
    typed = _typed_part(argument.annotation) or _typed(name, argument.annotation)
    parameter = Parameter(name=name, required=default is None, **typed)
    if default is None:
        return parameter
    try:
        return parameter.model_copy(update={"default": parameter.cast(ast.literal_eval(default))})
    except ValueError as error:
        raise ValueError(f"the default of `{name}`, {ast.unparse(default)}: {error}") from error


def _typed_part(annotation: ast.expr) -> dict[str, Any] | None:
    """The fields `type`, `kind` and `optional` of a Parameter that is a part; None if it is not."""
    match annotation:
        case ast.BinOp(left=part, op=ast.BitOr(), right=ast.Constant(value=None)):
            return (found := _typed_part(part)) and {**found, "optional": True}
        case ast.Subscript(
            value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[ast.Name(id="Part"), ast.Constant(value=str(kind))])
        ) if kind in (*KINDS, *PML):
            return {"type": "part", "kind": kind}
    return None


def _typed(name: str, annotation: ast.expr) -> dict[str, Any]:
    """The fields `type`, `optional`, `choices`, `limits` and `bounds` of a Parameter."""
    match annotation:
        case ast.Name(id=("int" | "float" | "bool" | "str") as plain):
            return {"type": plain}
        case ast.Constant(value=str(quoted)):
            return _typed(name, ast.parse(quoted, mode="eval").body)
        case (
            ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None))
            | ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=inner)
        ):
            return {**_typed(name, inner), "optional": True}
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *marks])):
            return {**_typed(name, inner), **_ranged(name, inner, marks)}
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, ast.Constant(value=end)])) if (
            end is Ellipsis and (several := _SEVERAL.get(_item_type(name, item)))
        ):
            return {**_typed(name, item), "type": several}
        case ast.Subscript(value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=choices):
            value = ast.literal_eval(choices)
            values = list(value) if isinstance(value, tuple) else [value]
            given = [choice for choice in values if choice is not None]
            return {"type": "literal", "choices": given, "optional": None in values}
    known = "int, float, bool, str, Literal[...], tuple[int | float | str | Literal, ...] or one of these | None"
    held = 'Annotated[float, Ge(0)] for a number with a range, or Annotated[Part, "backbone"] for a part'
    raise ValueError(f"hyper-parameter `{name}` has type {ast.unparse(annotation)}; expected {known}, {held}")


def _ranged(name: str, inner: ast.expr, marks: list[ast.expr]) -> dict[str, Any]:
    try:
        found = _bounds_of(marks)
    except ValueError as error:
        raise ValueError(f"hyper-parameter `{name}`: {error}") from error
    if found.words and ast.unparse(inner) not in {"int", "float"}:
        right = "write it at the number itself: `Annotated[int, Ge(1)] | None`, `tuple[Annotated[int, Ge(1)], ...]`"
        raise ValueError(f"hyper-parameter `{name}`: {ast.unparse(inner)} is not a number, so it has no range; {right}")
    return {"limits": found, "bounds": found.words}


def _bounds_of(marks: Iterable[ast.expr]) -> Bounds:
    """The range in the metadata of an `Annotated`; strings there are comments. Raises ValueError for other metadata."""
    ends: dict[str, float] = {}
    for mark in marks:
        match mark:
            case ast.Constant(value=str()):
                continue
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[end], keywords=[]) if name in _MARKS:
                ends[_MARKS[name][0]] = _value(end)
            case _:
                known = ", ".join(_MARKS)
                raise ValueError(f"{ast.unparse(mark)} is not a range; expected {known} of a number, such as Ge(0)")
    return Bounds(**ends)


def _value(end: ast.expr) -> float:
    """A literal number, or a computation with literal numbers and `math.pi`."""
    match end:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Attribute(value=ast.Name(id="math"), attr="pi"):
            return math.pi
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return float(_OPERATORS[type(sign)](_value(left), _value(right)))
    raise ValueError(f"the end of a range must be a number, such as 0.5 or math.pi / 2; found {ast.unparse(end)}")


def _item_type(name: str, item: ast.expr) -> str:
    """The type of the items of a list; `texts` for a Literal of strings."""
    found = _typed(name, item)
    chosen = found["type"] == "literal" and not found["optional"]
    return "texts" if chosen and all(isinstance(choice, str) for choice in found["choices"]) else str(found["type"])


def _check_added(added: JsonValue, parameters: list[Parameter]) -> None:
    known = [parameter.name for parameter in parameters if not parameter.required]
    if not isinstance(added, list) or any(name not in known for name in added):
        wanted = (
            f"hyper-parameters with a default, {listed(known)}" if known else "hyper-parameters; none has a default"
        )
        raise ValueError(f"`added` must be a list of {wanted}; found {shown(added)}")


def _check_inputs(kind: str, inputs: list[str]) -> None:
    strange = [name for name in inputs if name not in OFFERED[kind]]
    if not strange:
        return
    names = ", ".join(f"`{name}`" for name in strange)
    what = "stand" if len(strange) > 1 else "stands"
    offered = f"offers a {kind} {listed(OFFERED[kind])}" if OFFERED[kind] else f"offers a {kind} nothing"
    right = f"def __init__(self, {''.join(f'{name}, ' for name in inputs if name not in strange)}*, {strange[0]}: ...)"
    raise ValueError(
        f"{names} {what} before the `*` of `__init__`, where a part asks the trainer, "
        f"which {offered}; a hyper-parameter stands behind the `*`: `{right}`"
    )


def _metadata(literals: dict[str, JsonValue], name: str, type_: type, default: Any) -> Any:
    value = literals.get(name)
    if value is None:
        return default
    if not isinstance(value, type_) or isinstance(value, bool):
        raise ValueError(f"`{name}` must be {'a text' if type_ is str else 'a whole number'}, found {shown(value)}")
    return value


def _number(end: float) -> str:
    if end and (halves := end / math.pi * 2) in {1.0, 2.0, 4.0}:
        return {1.0: "π/2", 2.0: "π", 4.0: "2π"}[halves]
    return f"{end:,.10g}"


def _reads_as_number(value: Any) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False
