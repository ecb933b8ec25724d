"""The range of a number, as a part's source states it: `Annotated[float, Ge(0), Lt(1)]`."""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pydantic import Field

from workers.contract import Frozen

_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "Gt": ("gt", "above"),
    "Ge": ("ge", "at least"),
    "Lt": ("lt", "below"),
    "Le": ("le", "at most"),
}
"""The classes of annotated-types, with the field of `Bounds` and the words for each."""
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Div: operator.truediv,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


class Bounds(Frozen):
    """The ends of a range; None where it is open."""

    gt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    ge: float | None = Field(default=None, exclude_if=lambda value: value is None)
    lt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    le: float | None = Field(default=None, exclude_if=lambda value: value is None)

    def hold(self, value: float) -> bool:
        """Whether a number lies in the range."""
        return (
            (self.gt is None or value > self.gt)
            and (self.ge is None or value >= self.ge)
            and (self.lt is None or value < self.lt)
            and (self.le is None or value <= self.le)
        )

    @property
    def words(self) -> str:
        """The range in words, such as `above 0, at most 1`; empty where any number is allowed."""
        ends = [(words, getattr(self, field)) for field, words in _MARKS.values()]
        return ", ".join(f"{words} {_number(end)}" for words, end in ends if end is not None)


def read(marks: Iterable[ast.expr]) -> Bounds:
    """The range that the metadata of an `Annotated` states; texts among it are comments.

    Raises ValueError for metadata that is neither, so that a misspelt mark is not overlooked.
    """
    ends: dict[str, float] = {}
    for mark in marks:
        match mark:
            case ast.Constant(value=str()):
                continue
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[end], keywords=[]) if name in _MARKS:
                ends[_MARKS[name][0]] = _value(end)
            case _:
                known = ", ".join(_MARKS)
                raise ValueError(f"{ast.unparse(mark)} is no range; expected {known} of a number, such as Ge(0)")
    return Bounds(**ends)


def _value(end: ast.expr) -> float:
    """A number that is written out, or computed of such and `math.pi`."""
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


def _number(end: float) -> str:
    if end and (halves := end / math.pi * 2) in {1.0, 2.0, 4.0}:
        return {1.0: "π/2", 2.0: "π", 4.0: "2π"}[halves]
    return f"{end:,.10g}"
