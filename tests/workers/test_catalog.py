"""The catalog is what the parts are, and a source of another form is refused with the name of its file."""

import inspect
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from workers import registry
from workers.catalog import Need, load, metric_problem
from workers.catalog.inventory import Entry, Parameter, given
from workers.catalog.source import PartSourceError, read
from workers.contract import FOLDERS, KINDS, Pins

WORKERS = Path(registry.__file__).parent
ENTRIES = load().entries


def test_a_need_for_other_content_is_another_need() -> None:
    need = Need(files=("birds.npz",))
    keys = [need.key, *(need.holding(Pins(content=content)).key for content in ("sha256:1", "sha256:2"))]
    assert len(set(keys)) == 3


def test_every_kind_has_parts_and_every_file_is_one() -> None:
    for kind in KINDS:
        files = {path.stem for path in (WORKERS / FOLDERS[kind]).glob("[!_]*.py")}
        assert set(load().names(kind)) == files != set()


def test_every_entry_is_what_inspect_finds() -> None:
    """How types are read, tests below show."""
    wrong = []
    for entry in (entry for kind in KINDS for entry in load().of(kind)):
        part = registry.find(entry.kind, entry.name)
        inputs, options = _inspected(part)
        facts = {"label": entry.label, "paper": entry.paper, "version": entry.version, **entry.facts}
        facts |= {"formula": entry.formula} if entry.formula else {}
        for found, expected in (
            (entry.doc, inspect.cleandoc(part.__doc__ or "")),
            (entry.inputs, inputs),
            ({one.name: ... if one.required else one.default for one in entry.parameters}, options),
            (facts, {"label": entry.name, "paper": None, "version": 1, **_literals(part)}),
        ):
            if found != expected:
                wrong.append((entry.kind, entry.name, found, expected))
        source = (WORKERS / FOLDERS[entry.kind] / f"{entry.name}.py").read_text()
        if not entry.doc or 'label = "' not in source:
            wrong.append((entry.kind, entry.name, "without docstring or label", ""))
    assert wrong == []


def _inspected(part: type) -> tuple[list[str], dict[str, Any]]:
    """What a part asks for and the defaults of its hyper-parameters, as Python sees them."""
    owner = next(base for base in part.__mro__ if "__init__" in vars(base))
    if owner not in _own(part):
        assert not owner.__module__.startswith("workers."), "an __init__ stands in the part's file or in _shared"
        return [], {}
    arguments = list(inspect.signature(owner.__init__).parameters.values())[1:]
    inputs = [argument.name for argument in arguments if argument.kind is argument.POSITIONAL_OR_KEYWORD]
    named = {one.name: ... if one.default is one.empty else one.default for one in arguments if one.name not in inputs}
    return inputs, {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}


def _own(part: type) -> list[type]:
    """The class and its bases in the same file, or in the folder's `_shared`."""
    shared = f"{part.__module__.rpartition('.')[0]}._shared"
    return [base for base in part.__mro__ if base.__module__ in {part.__module__, shared}]


def _literals(part: type) -> dict[str, Any]:
    """The public attributes with plain values of a class and its bases."""
    found: dict[str, Any] = {}
    for owner in reversed(_own(part)):
        for name, value in vars(owner).items():
            if not name.startswith("_") and isinstance(value, str | int | float | tuple | list | dict | None):
                found[name] = json.loads(json.dumps(value))
    return found


def test_metrics_read_what_tasks_give_and_data_sets_name_metrics_that_exist() -> None:
    known = load()
    needs: dict[Any, set[Any]] = {
        "embeddings": {"neighbours", "clusters", "clusters_sec", "embeddings"},
        "features": {"probe", None},
        "layers": {"probe"},
    }
    for entry in known.of("metric"):
        assert entry.facts["better"] in {"higher", "lower", "none"}
        reads = entry.facts.get("reads", "embeddings")
        assert reads in {one for task in known.of("task") for one in given(task)}
        assert entry.facts.get("needs") in needs.get(reads, {None})
    for entry in known.of("dataset"):
        metrics = known.metrics(entry.name)
        assert len(metrics) == len(set(metrics)) > 0
        assert [metric_problem(name, known) for name in metrics] == [None] * len(metrics)


def test_a_researchers_own_parts_are_added(tmp_path: Path) -> None:
    (tmp_path / "losses").mkdir()
    (tmp_path / "losses" / "_helper.py").write_text("nothing here")
    for label in ("Mine", "Edited"):
        (tmp_path / "losses" / "mine.py").write_text(f"class Mine:\n    label = '{label}'\n")
        entry = load(tmp_path).get("loss", "mine")
        assert entry is not None
        assert (entry.label, entry.own) == (label, True)
    assert len(load(tmp_path).entries) == len(ENTRIES) + 1
    assert load().get("loss", "mine") is None


# Hyper-parameters with a symbol of their own in the papers; the others are explained in words.
SYMBOLS = {"alpha": r"\\alpha", "beta": r"\\beta", "delta": r"\\delta", "rho": r"\\rho", "nu": r"\\nu",
           "temperature": "T", "margin": r"(?<![a-zA-Z])m"}  # fmt: skip


def test_every_formula_becomes_mathml_and_names_its_hyper_parameters() -> None:
    pytest.importorskip("latex2mathml", reason="only workers are installed here")
    from dashboards.catalog import mathml

    for entry in [*load().of("loss"), *load().of("regularizer")]:
        if entry.name == "pml":  # whose formula is that of `of`
            continue
        assert entry.formula, entry.name
        tree = ElementTree.fromstring(mathml(entry.formula))
        assert tree.tag.endswith("math")
        assert "\\" not in "".join(tree.itertext()), "an unknown command is drawn as it is written"
        assert not [node for node in tree.iter() if node.tag.endswith("merror")]
        expected = {one.name: SYMBOLS[one.name] for one in entry.parameters if one.name in SYMBOLS}
        missed = [name for name, sign in expected.items() if not re.search(rf"{sign}(?![a-zA-Z])", entry.formula)]
        assert missed == [], entry.name


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
        inputs=["dim", "classes"],
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


def test_a_base_class_of_the_folder_is_read_as_if_it_stood_in_the_part(tmp_path: Path) -> None:
    alone = read("loss", written(tmp_path, SOURCE))
    head, base, rest = SOURCE.partition("class _Base")[0], *SOURCE.partition("class _Base")[2].split("class Part")
    written(tmp_path, f"{head}class Base{base}", "_shared.py")
    imported = f"{head}from ._shared import Base\n\nclass Part{rest}".replace("(_Base)", "(Base)")
    assert read("loss", written(tmp_path, imported)) == alone
    assert read("loss", written(tmp_path, imported.replace("from ._shared", "from ._other"))).parameters == []


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
        (part("label = NAME"), "`label` must be a literal value"),
        (part("label = 3"), "`label` must be a text, found 3"),
        (part("version = '1'"), "`version` must be a whole number, found '1'"),
        (part("version = True"), "`version` must be a whole number, found true"),
        (part("added = LATER"), "`added` must be a literal value"),
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
