"""Which values a hyper-parameter takes, in words, read from what its part's `__init__` refuses."""

import ast
from collections.abc import Iterator
from typing import Final

_CALLS: Final = {"above_zero": "above 0", "at_least_zero": "at least 0"}
"""What the functions of workers/losses/_ranges.py ask of their keyword arguments."""
_LOWER: Final = {ast.Lt: "above", ast.LtE: "at least"}
_UPPER: Final = {ast.Lt: "below", ast.LtE: "at most"}


def stated(part: ast.FunctionDef) -> dict[str, str]:
    """By the name of a hyper-parameter, such as `above 0, at most 1`; those of which nothing is refused are left out.

    What is understood: `if not low <= x < high`, the same in a loop over a literal mapping of names,
    `if not math.isfinite(x)`, and the calls of `_CALLS` and `at_least`.
    """
    known: dict[str, str] = {}
    for statement in _statements(part):
        match statement:
            case ast.Expr(ast.Call(func=ast.Name(id=name), keywords=given)) if name in _CALLS:
                known |= {one.arg: _CALLS[name] for one in given if one.arg}
            case ast.Expr(ast.Call(ast.Name(id="at_least"), [_, ast.Constant(value=int(least))], given)):
                known |= {one.arg: f"at least {least}" for one in given if one.arg}
            case ast.If(test=test):
                known |= dict(_of(test))
            case ast.For(target=ast.Tuple(elts=[_, ast.Name()]), iter=ast.Call(func=ast.Attribute() as items)):
                if isinstance(items.value, ast.Dict):
                    names = [value.id for value in items.value.values if isinstance(value, ast.Name)]
                    tests = [one.test for one in statement.body if isinstance(one, ast.If)]
                    known |= {name: said for test in tests for _, said in _of(test) for name in names}
    return {name: said for name, said in known.items() if name in {one.arg for one in part.args.kwonlyargs}}


def _statements(part: ast.FunctionDef) -> Iterator[ast.AST]:
    """Those of a function and within them; nothing is refused within an expression, and most of a source is these."""
    found: list[ast.AST] = [*part.body]
    for statement in found:
        yield statement
        for block in ("body", "handlers", "cases", "orelse", "finalbody"):
            inner = getattr(statement, block, ())
            found += inner if isinstance(inner, list) else ()  # the body of a conditional expression is none


def _of(test: ast.expr) -> Iterator[tuple[str, str]]:
    """The names of which a condition refuses values, with those that are left."""
    for node in ast.walk(test):
        match node:
            case ast.UnaryOp(
                op=ast.Not(), operand=ast.Compare(left=low, ops=[first, *rest], comparators=[ast.Name(id=name), *high])
            ) if {type(first), *map(type, rest)} <= _LOWER.keys():
                lower = f"{_LOWER[type(first)]} {_number(low)}"
                upper = f"{_UPPER[type(rest[0])]} {_number(high[0])}" if rest and not _infinite(high[0]) else ""
                yield name, ", ".join(filter(None, [lower, upper]))
            case ast.UnaryOp(
                op=ast.Not(), operand=ast.Call(func=ast.Attribute(attr="isfinite"), args=[ast.Name(id=name)])
            ):
                yield name, "any finite number"


def _number(value: ast.expr) -> str:
    return ast.unparse(value).replace("math.pi", "π").replace(" / ", "/")


def _infinite(value: ast.expr) -> bool:
    return ast.unparse(value) == "math.inf"
