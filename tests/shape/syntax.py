"""What a module's syntax says, read once for all tests of the tree's shape: to keep the trees would take 300 MB."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Function:
    """Of a function: its lines, those of its body with its docstring, its parameters and the locals that it binds."""

    name: str
    lines: int
    body_lines: int
    arguments: tuple[str, ...]
    decorated: bool
    bound: frozenset[str]


@dataclass(frozen=True)
class Class:
    """Of a class: the classes that it is made of, without what they are generic in, and its public methods."""

    name: str
    bases: tuple[str, ...]
    methods: int
    top: bool


@dataclass(frozen=True)
class Syntax:
    """Of a module: its docstring, functions, classes, the packages whose files it reads, and its imports."""

    docstring: str | None
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    packages_read: frozenset[str]
    imports: tuple[ast.Import | ast.ImportFrom, ...]


@cache
def syntax(path: Path) -> Syntax:
    """Of one module."""
    tree = ast.parse(path.read_bytes())
    nodes = list(ast.walk(tree))
    top = set(map(id, tree.body))
    return Syntax(
        ast.get_docstring(tree),
        tuple(_function(one) for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)),
        tuple(_class(one, id(one) in top) for one in nodes if isinstance(one, ast.ClassDef)),
        frozenset(_packages_read(nodes)),
        tuple(one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)),
    )


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    arguments = tuple(one.arg for one in every if one.arg not in {"self", "cls"})
    end = node.end_lineno or 0
    return Function(
        node.name, end - node.lineno + 1, end - node.body[0].lineno + 1,
        arguments, bool(node.decorator_list), frozenset(_bound(node)),
    )  # fmt: skip


def _bound(node: ast.AST) -> set[str]:
    """The names that its statements bind: neither its parameters nor the variables of its comprehensions."""
    parts = list(ast.walk(node))
    targets = [part.target for part in parts if isinstance(part, ast.comprehension)]
    passing = {name for target in targets for name in ast.walk(target)}
    names = {part for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return {name.id for name in names - passing}


def _class(node: ast.ClassDef, top: bool) -> Class:
    bases = tuple(ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases)
    methods = sum(isinstance(one, ast.FunctionDef) and not one.name.startswith("_") for one in node.body)
    return Class(node.name, bases, methods, top)


def _packages_read(nodes: list[ast.AST]) -> Iterator[str]:
    """As they are written there."""
    calls = [one for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Name | ast.Attribute)]
    for call in calls:
        if call.args and ast.unparse(call.func) in {"files", "resources.files"}:
            yield ast.unparse(call.args[0])
