"""A part's source is read as Python would run it, and refused with the name of the file where it has another form."""

from pathlib import Path

import pytest

from workers.catalog.source import Entry, Parameter, PartSourceError, read

SOURCE = '''
"""Module."""
from typing import Literal
import torch

MARGIN = 3

class _Base:
    order = "free"
    side = 1

    def __init__(self, dim: int, classes: int, *, margin: float = 1, at: tuple[int, ...] = (3, 5),
                 weights: tuple[float, ...] = (1, .5), mining: Literal["all", "hard"] = "all", cap: int | None = None,
                 power: "None | float" = -1.5, squared: bool = True, note: str = "x", k: Literal[1, 2, None] = 2,
                 eta: float) -> None:
        pass

class Part(_Base):
    """What it does.

    And why.
    """

    label = "The part"
    paper = "SEC eq. 2"
    version = 2
    side: int = 28
    classes = {"train": 6, "test": 4}
    layout = ("class_blocks",)
    derived = MARGIN * 2
    weight: torch.Tensor
    _private = 1
'''


def written(folder: Path, source: str, name: str = "part.py") -> Path:
    path = folder / name
    path.write_text(source)
    return path


def part(body: str) -> str:
    return f"class Part:\n    {body}\n"


def init(arguments: str) -> str:
    return part(f"def __init__(self, {arguments}): pass")


def test_everything_that_a_source_says(tmp_path: Path) -> None:
    assert read("loss", written(tmp_path, SOURCE), own=True) == Entry(
        kind="loss",
        name="part",
        label="The part",
        paper="SEC eq. 2",
        version=2,
        doc="What it does.\n\nAnd why.",
        asks=["dim", "classes"],
        facts={"classes": {"train": 6, "test": 4}, "layout": ["class_blocks"], "order": "free", "side": 28},
        own=True,
        parameters=[
            Parameter(name="margin", type="float", default=1.0),
            Parameter(name="at", type="ints", default=[3, 5]),
            Parameter(name="weights", type="floats", default=[1.0, 0.5]),
            Parameter(name="mining", type="literal", choices=["all", "hard"], default="all"),
            Parameter(name="cap", type="int", optional=True),
            Parameter(name="power", type="float", optional=True, default=-1.5),
            Parameter(name="squared", type="bool", default=True),
            Parameter(name="note", type="str", default="x"),
            Parameter(name="k", type="literal", choices=[1, 2], optional=True, default=2),
            Parameter(name="eta", type="float", required=True),
        ],
    )


def test_a_part_may_say_nothing(tmp_path: Path) -> None:
    assert read("loss", written(tmp_path, part("pass"))) == Entry(kind="loss", name="part", label="part")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "exactly one public class; found none"),
        ("class A: pass\nclass B: pass", "found 2: A, B"),
        ("class A:\n  def", "line 2: "),
        (init("*, a=1"), "hyper-parameter `a` has no type"),
        (init("*, a: list = 1"), "hyper-parameter `a` has type list; expected int, float"),
        (init("*, a: list[int] = 1"), "has type list[int]; expected"),
        (init("*, a: int | str = 1"), "has type int | str; expected"),
        (init("*, a: int = 1.5"), "the default of `a`, 1.5: expected a whole number, found 1.5"),
        (init("*, a: int = True"), "the default of `a`, True: expected a whole number, found true"),
        (init("*, a: float = math.pi"), "the default of `a`, math.pi: "),
        (init("*, a: int = None"), "the default of `a`, None: "),
        (init("*, a: Literal['x', 'y'] = 'z'"), "expected one of 'x', 'y', found 'z'"),
        (init("**options"), "no *args and no **kwargs"),
        (init("*sizes"), "no *args and no **kwargs"),
        (part("label = NAME"), "`label` must be written out"),
        (part("label = 3"), "`label` must be a text, found 3"),
        (part("version = '1'"), "`version` must be a whole number, found '1'"),
        (part("version = True"), "`version` must be a whole number, found true"),
        (part("added = LATER"), "`added` must be written out"),
        (part("added = 'unit'"), "`added` must be a list of hyper-parameters; none has a default; found 'unit'"),
        (part("added = ('a',)\n    def __init__(self, *, a: int, b: int = 1): pass"), "with a default, 'b'; found"),
    ],
)
def test_another_form_is_refused_by_the_name_of_its_file(tmp_path: Path, source: str, message: str) -> None:
    path = written(tmp_path, source)
    with pytest.raises(PartSourceError) as caught:
        read("loss", path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_the_file_name_is_a_name(tmp_path: Path) -> None:
    for name in ("ProxyAnchor.py", "3d.py", "proxy-anchor.py", "é.py"):
        with pytest.raises(PartSourceError, match="lower case"):
            read("loss", written(tmp_path, part("pass"), name))
