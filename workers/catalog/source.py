"""Reads the catalog from the sources of the parts, by ast: nothing is imported."""

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue, PrivateAttr

from workers.catalog import own_code
from workers.catalog.inventory import MARKS, Bounds, Catalog, Entry, Parameter
from workers.catalog.wording import listed, near, shown
from workers.contract import FOLDERS, KINDS, PML

_BUILT_IN: Final = Path(__file__).parents[1]
_PML: Final = Path(__file__).with_name("pml.json")  # which .ci/pml_catalog.py writes
PRINTED: Final = (".toml", ".csv")
"""The endings of the files of printed tables."""
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Div: operator.truediv,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}

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


def read(kind: str, path: Path, own: bool = False) -> Entry:
    """Reads the catalog entry of the part in the source file `path`; raises PartSourceError."""
    if not NAME.fullmatch(path.stem):
        raise PartSourceError(f"{path}: a part's file is named in lower case, such as proxy_anchor.py")
    try:
        module = ast.parse(path.read_bytes(), str(path))
        classes = _classes(module)
        part = _the_part(classes)
        chain = _ancestry(part, _shared(module, path) | classes)
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


def _classes(module: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}


def _shared(module: ast.Module, path: Path) -> dict[str, ast.ClassDef]:
    """The classes of the folder's module `_shared`, if a part imports it."""
    imported = {node.module for node in module.body if isinstance(node, ast.ImportFrom) and node.module}
    file = path.with_name("_shared.py")
    if not any(name.endswith("_shared") for name in imported) or not file.is_file():
        return {}
    return _classes(ast.parse(file.read_bytes(), str(file)))


def _the_part(classes: dict[str, ast.ClassDef]) -> ast.ClassDef:
    public = [node for name, node in classes.items() if not name.startswith("_")]
    if len(public) != 1:
        found = f"found {len(public)}: {', '.join(node.name for node in public)}" if public else "found none"
        raise ValueError(f"a part's file has exactly one public class; {found}")
    return public[0]


def _ancestry(part: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """The class and those of its bases that are known, nearest first."""
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
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[end], keywords=[]) if name in MARKS:
                ends[MARKS[name][0]] = _value(end)
            case _:
                known = ", ".join(MARKS)
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


def load(parts: Path | None = None) -> Catalog:
    """Loads the catalog of the built-in parts and the own parts in the folder `parts`; raises PartSourceError."""
    if parts is not None:
        _check_folders(parts)
    files = [(kind, *file) for kind in KINDS for file in part_files(kind, parts).values()]
    stamped = tuple((kind, path, own, path.stat().st_mtime_ns) for kind, path, own in files)
    stamp = own_code.stamp(parts) + own_code.stamp(parts / "published", PRINTED) if parts else ()
    return _catalog(stamped, parts, stamp)


@lru_cache(maxsize=8)
def _catalog(files: tuple[tuple[str, Path, bool, int], ...], parts: Path | None, _stamp: own_code.Stamp) -> Catalog:
    """Cached until a file changes: a part's file, or any module or printed table in the folder of own parts."""
    entries = [_entry(kind, path, parts if own else None) for kind, path, own, _ in files]
    return Catalog(entries=[*entries, *pml_entries()], published=_printed(parts / "published") if parts else {})


def _printed(folder: Path) -> dict[str, str]:
    """The text of each file of printed tables; raises PartSourceError for text that is not UTF-8."""
    texts = {}
    for path in sorted(path for ending in PRINTED for path in folder.glob(f"*{ending}")):
        try:
            texts[path.name] = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise PartSourceError(f"{path}: expected text in UTF-8: {error}") from error
    return texts


@lru_cache
def pml_entries() -> tuple[Entry, ...]:
    """The classes of pytorch-metric-learning that recipes may name, of the release that this version is made for."""
    return tuple(map(Entry.model_validate, json.loads(_PML.read_bytes())["entries"]))


def _entry(kind: str, path: Path, parts: Path | None) -> Entry:
    """The entry of a part; for an own part, in the folder `parts`, it has the hash of its source."""
    entry = read(kind, path, parts is not None)
    if parts is None:
        return entry
    try:
        code = own_code.digest(own_code.sources(path, parts))
    except SyntaxError as error:
        raise PartSourceError(f"{error.filename}: line {error.lineno}: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise PartSourceError(f"{path}: {error}") from error
    return entry.model_copy(update={"code": code})


def part_files(kind: str, parts: Path | None = None) -> Mapping[str, tuple[Path, bool]]:
    """The source file of each part of a kind by name, and whether it is one of the user's own parts."""
    found = {path.stem: (path, False) for path in _sources(_BUILT_IN / FOLDERS[kind])}
    if parts is None:
        return found
    if not parts.is_dir():
        raise PartSourceError(f"{parts}: the folder of own parts does not exist")
    for path in _sources(parts / FOLDERS[kind]):
        if path.stem in found:
            raise PartSourceError(f"{path}: a built-in {kind} is named {path.stem!r} already; rename this file")
        found[path.stem] = (path, True)
    return dict(sorted(found.items()))


def _check_folders(parts: Path) -> None:
    """Raise PartSourceError for a folder of parts whose name is not that of any kind's folder."""
    if (
        parts.name in FOLDERS.values()
        and _sources(parts)
        and not any((parts / folder).is_dir() for folder in FOLDERS.values())
    ):
        raise PartSourceError(
            f"{parts}: the folder of own parts holds folders such as {parts.name}/; name the one above, {parts.parent}"
        )
    for folder in sorted(parts.iterdir()) if parts.is_dir() else ():
        if folder.name in FOLDERS.values() or not folder.is_dir() or not NAME.fullmatch(folder.name.casefold()):
            continue
        right = FOLDERS.get(folder.name.casefold()) or near(folder.name, FOLDERS.values())
        kind = next((kind for kind, name in FOLDERS.items() if name == right), None)
        if right and kind and any(_is_part(kind, path) for path in _sources(folder)):
            raise PartSourceError(
                f"{folder}: no kind of part has a folder of this name; did you mean {right!r}? Rename it; a folder "
                "without parts may have any name that begins with _"
            )


def _is_part(kind: str, path: Path) -> bool:
    """Whether a file defines a part, and is not just a module that parts import."""
    try:
        return not path.stem.startswith(("test_", "conftest")) and bool(read(kind, path, own=True))
    except PartSourceError as error:
        return "before the `*`" in str(error)


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))


class LiveCatalog(Catalog):
    """The catalog of a long-running process: after `refresh`, every holder sees the changed own parts."""

    _parts: Path | None = PrivateAttr()
    _now: Catalog = PrivateAttr()
    _check: Callable[[Catalog], object] = PrivateAttr()
    _changes: int = PrivateAttr(default=0)

    @classmethod
    def at(cls, parts: Path | None, check: Callable[[Catalog], object] = lambda _: None) -> "LiveCatalog":
        """Makes a live catalog of the built-in parts and the own parts in the folder `parts`.

        `check` may refuse what was read. Both raise PartSourceError.
        """
        check(now := load(parts))
        made = cls(entries=now.entries, published=now.published)
        made._parts, made._now, made._check = parts, now, check
        return made

    def refresh(self) -> None:
        """Read again own parts that were added, edited or removed.

        Raises PartSourceError if a part cannot be read; then nothing changes.
        """
        if self._parts is not None and (now := load(self._parts)) is not self._now:
            self._check(now)
            self.__dict__ |= {"entries": now.entries, "published": now.published}
            self._now = now
            self._changes += 1

    @property
    def changes(self) -> int:
        """The number of changes of the catalog so far, so that its holders know when to recompute."""
        return self._changes

    @property
    def folder(self) -> Path | None:
        return self._parts

    @property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return self._now._by_name
