"""Writes workers/catalog/pml.json, the catalog of the installed pytorch-metric-learning, from its source text alone.

Run it after constraints.txt names another release of the library: `make lock` does.
"""

import ast
import json
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "workers/catalog/pml.json"
KINDS = {
    "losses": "pml_loss", "miners": "pml_miner", "distances": "pml_distance", "reducers": "pml_reducer",
    "regularizers": "pml_regularizer",
}  # fmt: skip

EXCLUDED = {
    "GenericPairLoss": "the base class of losses of pairs",
    "MultipleLosses": "a sum of losses, given as modules",
    "CrossBatchMemory": "the hyper-parameter `memory` of loss pml, whose state is in checkpoints",
    "SelfSupervisedLoss": "takes two views of images in place of labels, as task self_supervised does for any loss",
    "VICRegLoss": "takes two views of images, and refuses labels",
    "ManifoldLoss": "draws meta-classes of its own, and refuses labels",
    "EmbeddingsAlreadyPackagedAsTriplets": "mines every third image of a batch, whatever its label",
    "BatchedDistance": "calls a function, and returns no distances",
    "DoNothingReducer": "returns the parts of a loss in place of their sum",
    "MultipleReducers": "takes one reducer for each part of a loss, as modules",
}
"""What a recipe cannot name, with the reason; base classes (`Base...`, `...Mixin`) are left out too."""

FILLED = {"num_classes": "classes", "embedding_size": "dim", "descriptors_dim": "dim"}
"""Arguments that the training fills in."""
HELD = ("distance", "reducer", "embedding_regularizer", "weight_regularizer")
"""Arguments that are further objects of the library, which loss pml takes as parts."""
HIDDEN = ("collect_stats", "weight_init_func", "aggregation_func", "is_inverted")
"""Arguments that are functions, or change nothing."""

NUMBER, OPTIONAL = {"type": "float"}, {"type": "float", "optional": True}
TYPES: dict[str, dict[str, Any]] = {
    "LargeMarginSoftmaxLoss.margin": {"type": "int"},
    "HistogramLoss.n_bins": {"type": "int", "optional": True},
    "HistogramLoss.delta": OPTIONAL,
    "RankedListLoss.margin": NUMBER,
    "RankedListLoss.Tn": NUMBER,
    "RankedListLoss.alpha": OPTIONAL,
    "ThresholdReducer.low": OPTIONAL,
    "ThresholdReducer.high": OPTIONAL,
    "ClassWeightedReducer.weights": {"type": "floats"},
    "BatchEasyHardMiner.allowed_pos_range": {"type": "floats", "optional": True},
    "BatchEasyHardMiner.allowed_neg_range": {"type": "floats", "optional": True},
    "BatchEasyHardMiner.pos_strategy": {"type": "literal", "choices": ["hard", "semihard", "easy", "all"]},
    "BatchEasyHardMiner.neg_strategy": {"type": "literal", "choices": ["hard", "semihard", "easy", "all"]},
    "TripletMarginMiner.type_of_triplets": {"type": "literal", "choices": ["all", "hard", "semihard", "easy"]},
    "PNPLoss.variant": {"type": "literal", "choices": ["Ds", "Dq", "Iu", "Ib", "O"]},
    "TripletMarginLoss.triplets_per_anchor": {"type": "int", "choices": ["all"]},
    "MarginLoss.triplets_per_anchor": {"type": "int", "choices": ["all"]},
}
"""What defaults cannot tell, by the class that names the argument."""
WHOLE = ("num_bins", "centers_per_class", "sub_centers", "pos_per_bin", "neg_per_bin")
"""Numbers that count something; every other number may have a fraction, whatever its default."""
DEFAULTS = {"DynamicSoftMarginLoss.min_val": -3.0}
"""Defaults other than the library's; `NOTES` say why."""
NOTES = {
    "DynamicSoftMarginLoss": "`min_val` is -3 here: with the library's -2 it fails where a positive is "
    "1.6 farther than a negative.",
    "MarginLoss": "`num_classes: true` gives each class a beta of its own.",
    "HistogramLoss": "It fails for a batch with two equal images of a class.",
    "SmoothAPLoss": "It is right only in batches with as many classes as images of each, which are required.",
}
"""What the catalog adds to a class."""
FACTS: dict[str, dict[str, Any]] = {
    "ProxyAnchorLoss": {"lr_scale": 100.0},  # as loss proxy_anchor
    "SoftTripleLoss": {"lr_scale": 100.0},  # as loss soft_triple
    "SmoothAPLoss": {"layout": ["class_blocks"], "square": True},
}


class Library:
    """The classes of the library by name, as syntax trees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))]
        self.classes = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}

    def exported(self, folder: str) -> list[str]:
        """The names that a subpackage exports."""
        tree = ast.parse((self.root / folder / "__init__.py").read_text(encoding="utf-8"))
        return sorted(alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names)

    def lineage(self, name: str) -> list[ast.ClassDef]:
        """A class and its bases in the order in which Python searches them."""
        bases = [base.id for base in self.classes[name].bases if isinstance(base, ast.Name) and base.id in self.classes]
        rows = [*(self.lineage(base) for base in bases), [self.classes[base] for base in bases]]
        found = [self.classes[name]]
        while any(rows := [row for row in rows if row]):
            first = next(row[0] for row in rows if not any(row[0] in other[1:] for other in rows))
            found.append(first)
            rows = [[node for node in row if node is not first] for row in rows]
        return found

    def derived(self, name: str) -> list[str]:
        """The distances that are of a class, or derived from it."""
        return [one for one in self.exported("distances") if _public(one) and self.classes[name] in self.lineage(one)]

    def arguments(self, name: str) -> Iterator[tuple[str, str, Any]]:
        """The class that names it, the name and the default (`...` for no default) of each keyword argument.

        Those of a base count where `**kwargs` passes them on; those that a subclass passes itself do not.
        """
        known: set[str] = set()
        for owner in self.lineage(name):
            init = next((node for node in owner.body if getattr(node, "name", "") == "__init__"), None)
            if not isinstance(init, ast.FunctionDef):
                continue
            given = init.args
            plain = given.args[1:]
            defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
            pairs = [*zip(plain, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
            constants = dict(_constants(owner))
            taken = [(argument.arg, _value(default, constants)) for argument, default in pairs]
            taken += [(key, ...) for key in dict.fromkeys(_taken_from_kwargs(init))]
            for argument, default in taken:
                if argument not in known:
                    yield owner.name, argument, default
            known |= {argument for argument, _ in taken} | set(_passed(init))
            if given.kwarg is None:
                return

    def supported(self) -> list[str]:
        """The losses that compare embeddings with a memory of others."""
        listed = next(node for node in ast.walk(self.classes["CrossBatchMemory"]) if isinstance(node, ast.List))
        return [str(ast.literal_eval(item)) for item in listed.elts]


def _public(name: str) -> bool:
    return name not in EXCLUDED and not name.startswith("Base") and not name.endswith("Mixin")


def _constants(owner: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for node in owner.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                yield name, value


def _value(default: ast.expr | None, constants: dict[str, Any]) -> Any:
    if default is None:
        return ...
    return constants.get(default.id) if isinstance(default, ast.Name) else ast.literal_eval(default)


def _taken_from_kwargs(init: ast.FunctionDef) -> Iterator[str]:
    """The keys of `kwargs["num_classes"]`."""
    for node in ast.walk(init):
        match node:
            case ast.Subscript(value=ast.Name(id="kwargs"), slice=ast.Constant(value=str(key))):
                yield key


def _passed(init: ast.FunctionDef) -> Iterator[str]:
    """The keywords that `super().__init__` gets by name."""
    for node in ast.walk(init):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__")):
                yield from (keyword.arg for keyword in node.keywords if keyword.arg)


def _typed(owner: str, name: str, default: Any) -> dict[str, Any]:
    if typed := TYPES.get(f"{owner}.{name}"):
        return typed
    if isinstance(default, bool):
        return {"type": "bool"}
    if name in WHOLE:
        return {"type": "int"}
    if isinstance(default, int | float):
        return {"type": "float"}
    raise SystemExit(f"{owner}.{name}: its default {default!r} tells no type; add it to TYPES")


def _parameter(owner: str, name: str, default: Any) -> dict[str, Any]:
    if name in FILLED:  # of a default: whether there is a value for each class
        return {"name": name, "type": "bool", "default": False}
    typed, default = _typed(owner, name, default), DEFAULTS.get(f"{owner}.{name}", default)
    if default is ...:
        return {"name": name, **typed, "required": True}
    return {
        "name": name,
        **typed,
        "default": float(default) if typed["type"] == "float" and default is not None else default,
    }


def _requirements(library: Library, lineage: list[ast.ClassDef]) -> Iterator[tuple[str, Any]]:
    """The distances that a class accepts, and the options that these must have."""
    for node in (node for owner in lineage for node in ast.walk(owner)):
        match node:
            case ast.Call(func=ast.Attribute(attr="assert_distance_type"), args=[_, ast.Name(id=name)]):
                yield "distances", library.derived(name)
                if node.keywords:
                    yield "distance_options", {key.arg: ast.literal_eval(key.value) for key in node.keywords if key.arg}
            case ast.Assert(test=ast.Attribute(value=ast.Attribute(attr="distance"), attr="is_inverted")):
                yield "distances", library.derived("DotProductSimilarity")


def _takes(library: Library, kind: str, name: str, lineage: list[ast.ClassDef], held: list[str]) -> list[str]:
    """What loss pml may give a loss: a miner, further objects, a memory."""
    if kind != "pml_loss":
        return []
    calls = {node.attr for owner in lineage for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    mined = [] if "indices_tuple_not_supported" in calls else ["miner"]
    return [*mined, *held, *(["memory"] if name in library.supported() else [])]


def entry(library: Library, folder: str, name: str, release: str) -> dict[str, Any]:
    """The catalog's entry of a class."""
    lineage, kind = library.lineage(name), KINDS[folder]
    arguments = [found for found in library.arguments(name) if found[1] not in HIDDEN]
    filled = {argument: FILLED[argument] for _, argument, _ in arguments if argument in FILLED}
    shown = [one for one in arguments if one[1] not in HELD and (one[1] not in FILLED or one[2] is None)]
    held = [argument for _, argument, _ in arguments if argument in HELD]
    takes = _takes(library, kind, name, lineage, held)
    facts = {"fills": filled, "takes": takes, **dict(_requirements(library, lineage)), **FACTS.get(name, {})}
    major, minor, patch = (int(part) for part in release.split(".")[:3])
    return {
        "kind": kind,
        "name": name,
        "label": name,
        "version": major * 10_000 + minor * 100 + patch,
        "doc": f"`{folder}.{name}` of pytorch-metric-learning {release}. {NOTES.get(name, '')}".strip(),
        "parameters": [_parameter(*found) for found in shown],
        "facts": {key: value for key, value in sorted(facts.items()) if value},
    }


def catalog() -> dict[str, Any]:
    """The release, and the entries of all classes that a recipe may name."""
    installed = distribution("pytorch-metric-learning")
    library = Library(Path(str(installed.locate_file("pytorch_metric_learning"))))
    entries = [
        entry(library, folder, name, installed.version)
        for folder in KINDS
        for name in library.exported(folder)
        if _public(name)
    ]
    return {"release": installed.version, "entries": entries}


def written() -> str:
    """The text of the file: an entry a line."""
    found = catalog()
    lines = ",\n".join(json.dumps(one) for one in found["entries"])
    return f'{{"release": "{found["release"]}", "entries": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
