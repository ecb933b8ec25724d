"""A mutant: a function of the product, a piece of its text, and the text that takes its place."""

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    "orchestrator/plan",
    "orchestrator/publish",
    "orchestrator/record",
    "orchestrator/run",
    "orchestrator/conduct",
    "api",
    "workers",
)
"""Drawn mutants are spread evenly over these folders."""

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.FloorDiv: ast.Mult,
}
_HARMLESS: Final = ("_log.", "log.", "logger.", "warnings.", "cast(")
"""Calls that begin like this are not dropped: no test depends on them."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """Replaces `old`, which occurs once in the text of `function` (`package.module:Class.method`), by `new`."""

    function: str
    kind: str
    old: str
    new: str

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.function} [{self.kind}]"


class LostError(Exception):
    """The code that a mutant changes is no longer in the tree; the mutant must be rewritten."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its place in a file."""

    path: Path
    name: str
    text: str
    offset: int  # of `text` in the file, in characters


def functions(root: Path, folder: str) -> Iterator[Function]:
    """Every function and method in a folder of the checkout `root`, in the order of files and lines."""
    for path in sorted((root / folder).rglob("*.py")):
        if "versions" not in path.parts and "static" not in path.parts:
            yield from functions_of(root, path)


def functions_of(root: Path, path: Path) -> Iterator[Function]:
    """Every function and method of a file; what is defined inside a function belongs to it."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    module = ".".join(path.relative_to(root).with_suffix("").parts)

    def within(body: list[ast.stmt], prefix: str) -> Iterator[Function]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                start, end = starts[node.lineno - 1], starts[node.end_lineno]
                yield Function(path, f"{module}:{prefix}{node.name}", source[start:end], start)

    yield from within(ast.parse(source).body, "")


def locate(root: Path, mutant: Mutant) -> Function:
    """The function that a mutant changes, also where it has moved to another module; raises LostError."""
    module, _, name = mutant.function.partition(":")
    path = root / Path(*module.split(".")).with_suffix(".py")
    if path.exists():
        for function in functions_of(root, path):
            if function.name == mutant.function and function.text.count(mutant.old) == 1:
                return function
    last = name.rpartition(".")[2]
    every = [
        function for folder in ("api", "dashboards", "orchestrator", "workers") for function in functions(root, folder)
    ]
    holders = [function for function in every if function.text.count(mutant.old) == 1]
    for found in ([one for one in holders if one.name.rpartition(":")[2].rpartition(".")[2] == last], holders):
        if len(found) == 1:
            return found[0]
    raise LostError(f"{mutant.name}: no function, or several, has the text {mutant.old!r}")


def apply(root: Path, mutant: Mutant) -> tuple[Path, str]:
    """Write a mutant into the checkout `root`; returns the file and its text before."""
    function = locate(root, mutant)
    before = function.path.read_text(encoding="utf-8")
    text = function.text.replace(mutant.old, mutant.new)
    after = before[: function.offset] + text + before[function.offset + len(function.text) :]
    compile(after, str(function.path), "exec")
    function.path.write_text(after, encoding="utf-8")
    return function.path, before


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """`count` mutants, spread evenly over the packages, at most two a function; one seed, the same mutants."""
    drawn: list[Mutant] = []
    for number, folder in enumerate(PACKAGES):
        share = count * (number + 1) // len(PACKAGES) - count * number // len(PACKAGES)
        possible = [mutant for function in functions(root, folder) for mutant in mutants_of(function)]
        random.Random(f"{seed} {folder}").shuffle(possible)
        taken: dict[str, int] = {}
        for mutant in possible:
            if sum(taken.values()) == share:
                break
            if taken.get(mutant.function, 0) < 2:
                taken[mutant.function] = taken.get(mutant.function, 0) + 1
                drawn.append(mutant)
    return drawn


def mutants_of(function: Function) -> Iterator[Mutant]:
    """Every mutant of a function whose text is unambiguous in it."""
    indent = len(function.text) - len(function.text.lstrip())
    source = "\n".join(line[indent:] for line in function.text.splitlines()) + "\n"
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a text of several lines that begins left of the function
        return
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or isinstance(
            statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            continue
        for part, kind, changed in _changes(statement):
            old = ast.get_source_segment(source, part)
            if old is None or "\n" in old or function.text.count(old) != 1 or len(old) < 6:
                continue
            yield Mutant(function.name, kind, old, changed)


def _changes(statement: ast.stmt) -> Iterator[tuple[ast.AST, str, str]]:
    """A statement's part to be replaced, the kind of the change, and its new text."""
    leaving = (ast.Raise, ast.Return, ast.Continue)
    if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], leaving):
        yield statement.test, "dropped guard", f"False and ({ast.unparse(statement.test)})"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if not ast.unparse(statement).startswith(_HARMLESS):
            yield statement, "dropped call", "pass"
        return
    if isinstance(statement, ast.Raise | ast.Import | ast.ImportFrom | ast.AnnAssign):
        return
    for part in _expressions(statement):
        for kind, changed in _mutated(part):
            yield part, kind, changed


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, not those of statements within it."""
    todo = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
    while todo:
        part = todo.pop()
        yield part
        todo += [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]


def _mutated(part: ast.expr) -> Iterator[tuple[str, str]]:
    changed = copy.deepcopy(part)
    if isinstance(changed, ast.Compare) and len(changed.ops) == 1 and type(changed.ops[0]) in _COMPARED:
        changed.ops = [_COMPARED[type(changed.ops[0])]()]
        yield "comparison", ast.unparse(changed)
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield "and for or", f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.IfExp):
        changed.body, changed.orelse = changed.orelse, changed.body
        yield "swapped branches", f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield "dropped not", f"({ast.unparse(changed.operand)})"
    elif isinstance(changed, ast.BinOp) and type(changed.op) in _COMPUTED and not _is_text(changed):
        changed.op = _COMPUTED[type(changed.op)]()
        yield "arithmetic", f"({ast.unparse(changed)})"
    elif (
        isinstance(changed, ast.Subscript) and isinstance(changed.slice, ast.Slice) and changed.slice.upper is not None
    ):
        changed.slice.upper = ast.BinOp(changed.slice.upper, ast.Add(), ast.Constant(1))
        yield "off by one", ast.unparse(changed)


def _is_text(part: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str)
        for side in (part.left, part.right)
    )
