"""The catalog is what the parts are: equal to what `inspect` finds, current in its file, and free of torch."""

import inspect
import json
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest

from tests.workers.specimens import CATALOG, RECIPE
from workers import registry
from workers.catalog import (
    Entry,
    PartSourceError,
    complete,
    load,
    metric_entry,
    metric_problem,
    parse_metric,
)
from workers.catalog.inventory import given
from workers.contract import FOLDERS, KINDS, Part, Recipe

WORKERS = Path(registry.__file__).parent
ENTRIES = load().entries


def test_every_kind_has_parts_and_every_file_is_one() -> None:
    for kind in KINDS:
        files = {path.stem for path in (WORKERS / FOLDERS[kind]).glob("[!_]*.py")}
        assert set(load().names(kind)) == files != set()


def test_every_entry_is_what_inspect_finds() -> None:
    wrong = []
    for entry in ENTRIES:
        part = registry.find(entry.kind, entry.name)
        asks, parameters = _inspected(part)
        said = {"label": entry.label, "paper": entry.paper, "version": entry.version, **entry.facts}
        said |= {"formula": entry.formula} if entry.formula else {}
        for found, expected in (
            (entry.doc, inspect.cleandoc(part.__doc__ or "")),
            (entry.asks, asks),
            ([parameter.model_dump(exclude={"bounds", "limits"}) for parameter in entry.parameters], parameters),
            (said, {"label": entry.name, "paper": None, "version": 1, **_literals(part)}),
            ([one.cast(one.default) for one in entry.parameters if not one.required],
             [one.default for one in entry.parameters if not one.required]),
        ):  # fmt: skip
            if found != expected:
                wrong.append((entry.kind, entry.name, found, expected))
        source = (WORKERS / FOLDERS[entry.kind] / f"{entry.name}.py").read_text()
        if not entry.doc or 'label = "' not in source:
            wrong.append((entry.kind, entry.name, "without docstring or label", ""))
    assert wrong == []


def _inspected(part: type) -> tuple[list[str], list[dict[str, Any]]]:
    """What a part asks for and its hyper-parameters, as Python sees them."""
    owner = next(base for base in part.__mro__ if "__init__" in vars(base))
    if owner.__module__ != part.__module__:
        assert not owner.__module__.startswith("workers."), "an __init__ stands in the part's own file"
        assert list(inspect.signature(part).parameters) in ([], ["args", "kwargs"])
        return [], []
    hints = typing.get_type_hints(owner.__init__, include_extras=True)
    arguments = list(inspect.signature(owner.__init__).parameters.values())[1:]
    named = [argument for argument in arguments if argument.kind is argument.KEYWORD_ONLY]
    asks = [argument.name for argument in arguments if argument.kind is argument.POSITIONAL_OR_KEYWORD]
    assert len(asks) + len(named) == len(arguments)
    return asks, [_as_parameter(argument, hints[argument.name]) for argument in named]


def _as_parameter(argument: inspect.Parameter, hint: Any) -> dict[str, Any]:
    optional = typing.get_origin(hint) in (types.UnionType, typing.Union)
    if optional:
        (hint,) = set(typing.get_args(hint)) - {types.NoneType}
    hint = _without_range(hint)
    if typing.get_origin(hint) is tuple and len(typing.get_args(hint)) == 2:
        hint = tuple[_without_range(typing.get_args(hint)[0]), ...]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    kind: dict[str, str] = {}
    if origin is typing.Annotated:  # a part within this one
        assert arguments[0] is Part
        type_, choices, kind = "part", None, {"kind": arguments[1]}
    elif origin is typing.Literal:
        type_, choices = "literal", list(arguments)
    elif origin is tuple:
        assert arguments[1:] == (...,)
        chosen = list(typing.get_args(arguments[0]))  # of a list of texts that are to be chosen from
        type_, choices = ("strs", chosen) if chosen else (f"{arguments[0].__name__}s", None)
    else:
        type_, choices = hint.__name__, None
    required = argument.default is argument.empty
    default = None if required else argument.default
    return {
        "name": argument.name,
        "type": type_,
        "optional": optional,
        "required": required,
        "default": list(default) if isinstance(default, tuple) else default,
        "choices": choices,
        **kind,
    }


def _without_range(hint: Any) -> Any:
    ranged = typing.get_origin(hint) is typing.Annotated and typing.get_args(hint)[0] is not Part
    return typing.get_args(hint)[0] if ranged else hint


def _literals(part: type) -> dict[str, Any]:
    """The public attributes with plain values of a class and its bases in the same file."""
    found: dict[str, Any] = {}
    for owner in reversed([base for base in part.__mro__ if base.__module__ == part.__module__]):
        for name, value in vars(owner).items():
            if not name.startswith("_") and isinstance(value, str | int | float | tuple | list | dict | None):
                found[name] = json.loads(json.dumps(value))
    return found


class TestFacts:
    """What the trainer, the checks and the tables rely on."""

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in ENTRIES if entry.kind == kind]

    def test_losses(self) -> None:
        layouts = {entry.facts["layout"] for entry in self.of("sampler")}
        for entry in self.of("loss"):
            assert entry.facts["order"] in {"free", "within_class", "positional", "paired"}
            accepted = entry.facts.get("layout", [])
            assert isinstance(accepted, list)
            assert set(accepted) <= layouts
            assert accepted or entry.facts["order"] != "positional"

    def test_regularizers_samplers_and_heads(self) -> None:
        for entry in self.of("regularizer"):
            assert entry.facts.get("norms") in {True, None}
            assert not entry.asks
            assert (entry.parameter("eta") is not None) == (entry.name != "none")
        for entry in self.of("sampler"):
            draws = entry.facts.get("draws")
            assert draws is None or entry.parameter(str(draws))
        assert {entry.facts["output"] for entry in self.of("head")} <= {"raw", "unit"}

    def test_metrics(self) -> None:
        for entry in self.of("metric"):
            assert entry.facts["better"] in {"higher", "lower", "none"}
            reads = entry.facts.get("reads", "embeddings")
            assert reads in {one for task in self.of("task") for one in given(task)}
            needs = {
                "embeddings": {"neighbours", "clusters", "clusters_sec", "embeddings"},
                "features": {"probe", None},
                "layers": {"probe"},
            }
            assert entry.facts.get("needs") in needs.get(str(reads), {None})

    def test_datasets(self) -> None:
        for entry in self.of("dataset"):
            own = entry.name in {"image_folder", "packed"}  # whatever the user puts there
            assert own or isinstance(entry.facts["channels"], int)
            assert own or isinstance(entry.facts["side"], int)
            for fact in ("classes", "images"):
                counts = entry.facts.get(fact)
                assert own == (counts is None)
                # Of a test set of faces pairs are counted, not classes and images.
                faces = entry.name in {"casia_webface", "lfw", "agedb30", "cfp_fp", "megaface"}
                assert own or (isinstance(counts, dict) and set(counts) == {"train", *([] if faces else ["test"])})
            # None: no literal hash is known, since decoded pixels differ from one release of PIL to the next.
            assert str(entry.facts["manifest"] or "").removeprefix("sha256:").isalnum() != (
                entry.facts["manifest"] is None
            )
            metrics = load().metrics(entry.name)
            assert len(metrics) == len(set(metrics)) > 0
            assert [metric_problem(name, load()) for name in metrics] == [None] * len(metrics)


KNOWN: dict[tuple[str, str], dict[str, Any]] = {
    ("loss", "npair"): {"unit": True, "l2": 0.002},
    ("loss", "angular"): {"alpha": 45.0, "pairs": "code"},
    ("regularizer", "svmax_unbounded"): {"eta": 1.0},
    ("backbone", "small_cnn"): {"width": 32, "blocks": 2},
}
"""Parts that learned options after a release, all in their first version, with what a recipe held before."""


def test_a_recipe_that_uses_no_later_option_is_what_it_was() -> None:
    for (kind, name), options in KNOWN.items():
        completed = complete(Recipe.model_validate({**RECIPE, kind: name}), load())
        assert completed.part(kind).options == options
        assert completed.pins.versions[kind] == 1


def test_the_catalog_reaches_no_torch() -> None:
    code = "import sys, workers.catalog, workers.registry; workers.catalog.load(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "sklearn", "faiss", "pytorch_metric_learning", "ray", "mlflow"} & set(modules)


class TestLoad:
    def own(self, folder: Path, name: str, source: str = "class Mine:\n    label = 'Mine'\n") -> Path:
        path = folder / "losses" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        return path

    def test_adds_a_researchers_own_parts(self, tmp_path: Path) -> None:
        self.own(tmp_path, "mine")
        self.own(tmp_path, "_helper", "nothing here")
        entry = load(tmp_path).get("loss", "mine")
        assert entry is not None
        assert (entry.label, entry.own) == ("Mine", True)
        assert len(load(tmp_path).entries) == len(ENTRIES) + 1
        assert load().get("loss", "mine") is None
        self.own(tmp_path, "mine", "class Mine:\n    label = 'Edited'\n")
        edited = load(tmp_path).get("loss", "mine")
        assert edited is not None
        assert edited.label == "Edited"

    def test_refuses_a_name_that_is_built_in(self, tmp_path: Path) -> None:
        path = self.own(tmp_path, load().names("loss")[0])
        with pytest.raises(PartSourceError, match="built-in loss is named") as caught:
            load(tmp_path)
        assert str(path) in str(caught.value)
        with pytest.raises(PartSourceError, match="does not exist"):
            load(tmp_path / "absent")


def test_names_of_metrics() -> None:
    parsed = {"recall@1": ("recall", "1"), "map@r": ("map", "r"), "nmi": ("nmi", None), "x@": ("x", "")}
    assert {name: parse_metric(name) for name in parsed} == parsed
    for name in ("recall@1", "recall@1000", "recall"):
        entry = metric_entry(name, CATALOG)
        assert entry is not None
        assert entry.name == "recall"
    for name in ("recall@0", "recall@", "recall@-1", "recall@1.0", "recall@²", "map@5", "nmi@2", "", "@1"):
        assert metric_entry(name, CATALOG) is None, name
        assert metric_problem(name, CATALOG), name
