"""Losses of pytorch-metric-learning by name: the catalog is the library, each trains, and resumes bit for bit."""

import inspect
import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from torch import Tensor

from tests.workers import recipes
from tests.workers.inputs import random_batch
from workers.catalog import Entry, load
from workers.contract import Part, Stopped
from workers.losses import pml
from workers.registry import build

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / ".ci/pml_catalog.py"))
FOLDERS = {"pml_loss": losses, "pml_miner": miners, "pml_distance": distances, "pml_reducer": reducers,
           "pml_regularizer": regularizers}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "DynamicSoftMarginLoss": {"min_val": -3},
    "RankedListLoss": {"margin": 0.4, "Tn": 10},
    "ClassWeightedReducer": {"weights": [0.5, 1, 2, 1]},
    "SparseCentersRegularizer": {"centers_per_class": 10},
    "ThresholdReducer": {"low": 0.1},
}
"""Hyper-parameters without a default, or with another default than the library's."""


def _of(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, **NEEDED.get(name, {}), **options}


def _entries() -> list[Entry]:
    return [entry for kind in FOLDERS for entry in load().of(kind)]


def _arguments(made: type) -> dict[str, Any]:
    """The keyword arguments of a class and of bases to which it passes `**kwargs`, with their defaults."""
    found: dict[str, Any] = {}
    for owner in made.__mro__:
        if "__init__" not in vars(owner) or not owner.__module__.startswith("pytorch_metric_learning"):
            continue
        signature = inspect.signature(vars(owner)["__init__"]).parameters.values()
        named = [one for one in signature if one.name != "self" and one.kind is one.POSITIONAL_OR_KEYWORD]
        named += [one for one in signature if one.kind is one.KEYWORD_ONLY]
        for one in named:
            found.setdefault(one.name, ... if one.default is one.empty else one.default)
        if not any(one.kind is one.VAR_KEYWORD for one in signature):
            break
    return found


def test_the_committed_catalog_is_what_the_script_writes() -> None:
    assert SCRIPT["FILE"].read_text() == SCRIPT["written"]()


def test_the_catalog_is_what_inspect_finds() -> None:
    wrong = []
    for entry in _entries():
        made = getattr(FOLDERS[entry.kind], entry.name)
        arguments = _arguments(made)
        fills = entry.facts.get("fills", {})
        for parameter in entry.parameters:
            expected = SCRIPT["DEFAULTS"].get(f"{entry.name}.{parameter.name}", arguments.get(parameter.name, "absent"))
            found = ... if parameter.required else parameter.default
            if (found or None) != (expected or None):
                wrong.append((entry.name, parameter.name, found, expected))
        known = {*fills, *SCRIPT["HELD"], *SCRIPT["HIDDEN"], *(one.name for one in entry.parameters)}
        fixed = {name for name in arguments if name not in known}
        for name in fixed:  # what a subclass passes to its base by itself
            try:
                made(**dict.fromkeys(fills, 10), **NEEDED.get(entry.name, {}), **{name: arguments[name]})
            except TypeError as error:
                if "multiple values" not in str(error):
                    wrong.append((entry.name, name, error))
            else:
                wrong.append((entry.name, name, "is not in the catalog"))
    assert wrong == []


def test_what_is_left_out_has_a_reason() -> None:
    missing = {
        name
        for kind, module in FOLDERS.items()
        for name, made in vars(module).items()
        if isinstance(made, type) and name not in load().names(kind)
    }
    base = {name for name in missing if name.startswith("Base") or name.endswith("Mixin")}
    assert missing - base == {*SCRIPT["EXCLUDED"]}
    assert len(SCRIPT["EXCLUDED"]) <= 10


def _loss(of: dict[str, Any], **options: Any) -> Any:
    torch.manual_seed(0)
    return build("loss", Part(name="pml", of=of, **options), dim=8, classes=4)


def test_every_class_computes_what_the_library_does() -> None:
    """Every loss with defaults; each miner, distance, reducer and regularizer with a loss that takes it."""
    wrong = []
    embeddings, labels = random_batch(per_class=4)
    embeddings = embeddings.float()
    cases: list[tuple[Any, dict[str, Any]]] = [(_of(name), {}) for name in load().names("pml_loss")]
    for kind, option, of in (("pml_miner", "miner", "TripletMarginLoss"), ("pml_distance", "distance", "NTXentLoss"),
                             ("pml_reducer", "reducer", "ContrastiveLoss"),
                             ("pml_regularizer", "embedding_regularizer", "ContrastiveLoss")):  # fmt: skip
        for name in load().names(kind):
            loss = {"DivisorReducer": "MarginLoss", "SparseCentersRegularizer": "SoftTripleLoss"}.get(name, of)
            held = "weight_regularizer" if loss == "SoftTripleLoss" else option
            cases.append((_of(loss), {held: _of(name)}))
    for of, options in cases:
        rows = embeddings.clone().requires_grad_()
        value = _loss(of, **options)(rows, labels)
        value.backward()
        expected = _of_the_library(of, options, embeddings, labels)
        if not (torch.equal(value.detach(), expected) and rows.grad.isfinite().all() and rows.grad.any()):
            wrong.append((of["name"], options, float(value), float(expected)))
    assert wrong == []


def _of_the_library(of: dict[str, Any], options: dict[str, Any], embeddings: Tensor, labels: Tensor) -> Tensor:
    def made(kind: str, part: dict[str, Any], **more: Any) -> Any:
        values = {name: value for name, value in part.items() if name != "name"}
        if "weights" in values:
            values["weights"] = torch.tensor(values["weights"])
        entry = load().get(kind, part["name"])
        required = {"num_classes": 4, "embedding_size": 8, "descriptors_dim": 8}
        fills = {} if part["name"] == "MarginLoss" else entry.facts.get("fills", {})
        return getattr(FOLDERS[kind], part["name"])(**values, **{name: required[name] for name in fills}, **more)

    torch.manual_seed(0)
    kinds = {"distance": "pml_distance", "reducer": "pml_reducer", "embedding_regularizer": "pml_regularizer",
             "weight_regularizer": "pml_regularizer"}  # fmt: skip
    loss = made("pml_loss", of, **{name: made(kinds[name], one) for name, one in options.items() if name in kinds})
    mined = made("pml_miner", options["miner"])(embeddings, labels) if "miner" in options else None
    found: Tensor = loss(embeddings, labels, mined).sum()
    return found.detach()


def test_problems_are_found_at_submit() -> None:
    raw = {**recipes.DIGITS, "sampler": {"name": "balanced", "classes": 4, "per_class": 4}}
    wrong = []
    for loss, path, message in (
        ({}, "loss.of", "is missing; loss 'pml' needs `of`, a pml_loss"),
        ({"of": "CircelLoss"}, "loss.of", "no pml_loss named 'CircelLoss'; did you mean 'CircleLoss'?"),
        ({"of": _of("CircleLoss", gama=80)}, "loss.of.gama",
         "pml_loss 'CircleLoss' has no hyper-parameter 'gama'; did you mean 'gamma'?"),
        ({"of": _of("CircleLoss", m="wide")}, "loss.of.m", "expected a number, found 'wide'"),
        ({"of": _of("MarginLoss", triplets_per_anchor="al")}, "loss.of.triplets_per_anchor",
         "expected a whole number, or one of 'all', found 'al'"),
        ({"of": "RankedListLoss"}, "loss.of.Tn", "is missing; pml_loss 'RankedListLoss' needs `Tn`, a number"),
        ({"of": "InstanceLoss", "miner": "HDCMiner"}, "loss.miner", "InstanceLoss takes none; leave it out"),
        ({"of": "CircleLoss", "distance": "LpDistance"}, "loss.distance",
         "CircleLoss takes no LpDistance; it takes 'CosineSimilarity'"),
        ({"of": "AngularLoss", "distance": _of("LpDistance", power=2)}, "loss.distance.power",
         "AngularLoss takes 1 alone, found 2.0; leave it out"),
        ({"of": "CircleLoss", "miner_distance": "LpDistance"}, "loss.miner_distance",
         "is only for `miner`; leave it out, or give both"),
        ({"of": "ArcFaceLoss", "memory": 64}, "loss.memory", "ArcFaceLoss takes none; leave it out"),
        ({"of": "CircleLoss", "memory": 3}, "loss.memory",
         "expected at least the batch, which has 16 images; found 3"),
        ({"of": "CircleLoss", "memory_start": 3}, "loss.memory_start",
         "is only for `memory`; leave it out, or give both"),
    ):  # fmt: skip
        found = recipes.problems({**raw, "loss": {"name": "pml", **loss}})
        if found.get(path) != message:
            wrong.append((loss, found))
    assert wrong == []
    unequal = {**raw, "sampler": {"name": "balanced", "classes": 3, "per_class": 4}}
    found = recipes.problems({**unequal, "loss": {"name": "pml", "of": "SmoothAPLoss"}})
    assert found == {
        "sampler.per_class": "SmoothAPLoss is right only in batches with as many classes as images of each; change one "
        "of them"
    }
    views = {
        **recipes.DIGITS,
        "task": "self_supervised",
        "augment": "simclr",
        "sampler": {"name": "shuffle", "batch": 16},
    }
    del views["validation"], views["evaluate_every"]
    assert "loss" not in recipes.problems({**views, "loss": {"name": "pml", "of": "NTXentLoss"}})
    assert "needs the classes" in recipes.problems({**views, "loss": {"name": "pml", "of": "ArcFaceLoss"}})["loss"]


def test_the_release_is_part_of_the_fingerprint_and_must_be_here(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipes.recipe(loss={"name": "pml", "of": "SoftTripleLoss", "miner": "HDCMiner"})
    major, minor, patch = map(int, version("pytorch-metric-learning").split("."))
    number = 10_000 * major + 100 * minor + patch
    assert {path: recipe.pins.versions[path] for path in ("loss.of", "loss.miner")} == dict.fromkeys(
        ("loss.of", "loss.miner"), number
    )
    assert recipe.loss_rate == 100
    assert recipes.recipe(loss={"name": "pml", "of": "TripletMarginLoss"}).loss_rate == 1
    monkeypatch.setattr(pml, "version", lambda _: "2.8.1")
    with pytest.raises(
        ValueError, match=r"and this worker has 2\.8\.1; install pytorch-metric-learning==2\.9\.0 there"
    ):
        _loss({"name": "CircleLoss"})


def test_the_memory_is_the_papers() -> None:
    """Equal to the library's own over several rounds of the memory, with and without a miner, after the start."""
    wrong = []
    for name in [entry.name for entry in load().of("pml_loss") if "memory" in entry.fact_names("takes")]:
        for miner in (None, "BatchHardMiner", "MultiSimilarityMiner"):
            ours = _loss(_of(name), memory=30, memory_start=2, **({"miner": miner} if miner else {}))
            plain = getattr(losses, name)()
            mining = getattr(miners, miner)() if miner else None
            theirs = losses.CrossBatchMemory(plain, 8, memory_size=30, miner=mining)
            for seed in range(8):
                embeddings, labels = random_batch(seed)
                rows, others = (embeddings.float().clone().requires_grad_() for _ in range(2))
                value = ours(rows, labels)
                whole = (
                    theirs(others, labels) if seed >= 2 else plain(others, labels, mining and mining(others, labels))
                )
                value.backward()
                whole.sum().backward()
                if not (torch.equal(value, whole.sum()) and torch.equal(rows.grad, others.grad)):
                    wrong.append((name, miner, seed, float(value), float(whole)))
    assert wrong == []


def test_a_contrastive_memory_equals_its_loop() -> None:
    """Wang et al. 2020, algorithm 1: the batch against the memory, in which it already is."""
    loss = _loss(_of("ContrastiveLoss", pos_margin=0, neg_margin=1), memory=20, reducer="SumReducer")
    memory: list[tuple[Tensor, int]] = []
    for seed in range(4):
        embeddings, labels = random_batch(seed)
        unit = torch.nn.functional.normalize(embeddings.float())
        memory = [*memory, *zip(unit, labels.tolist(), strict=True)][-20:]
        expected = 0.0
        for row, label in zip(unit, labels.tolist(), strict=True):
            for other, its in memory:
                distance = float((row - other).norm())
                expected += distance if its == label else max(0.0, 1 - distance)
        assert float(loss(embeddings.float(), labels)) == pytest.approx(expected, rel=1e-4)


def _trained(of: dict[str, Any], folder: Path, **options: Any) -> tuple[Any, Any]:
    """What a short training of a loss gives on digits, and its recipe."""
    what = recipes.recipe(
        loss={"name": "pml", "of": of, **options},
        backbone={"name": "mlp", "width": 32},
        embedding=8,
        sampler={"name": "balanced", "classes": 4, "per_class": 4},
        iterations=30,
        evaluate_every=30,
        select={"metric": "recall@1", "split": "last"},
        validation="none",
        optimizer={"name": "adam", "lr": 0.003},
    )
    return recipes.run(what, folder)[0], what


def test_every_loss_trains(tmp_path: Path) -> None:
    """The loss falls, and recall@1 among four unseen digits is better than chance, a fourth."""
    found = {}
    for name in load().names("pml_loss"):
        result, _ = _trained(_of(name), tmp_path / name)
        losses_ = [value for _, value in result.curves["train/loss"]]
        found[name] = result.outcome, result.metrics.get("last/test/recall@1"), losses_
    wrong = {name: one for name, one in found.items() if one[0] != "ok" or not one[1] > 0.5 or one[2][0] < one[2][-1]}
    assert wrong == {}


STATEFUL: tuple[dict[str, Any], ...] = (
    {"of": "DynamicSoftMarginLoss"},
    {"of": _of("MarginLoss", learn_beta=True, num_classes=True), "miner": "DistanceWeightedMiner"},
    {"of": "SubCenterArcFaceLoss", "weight_regularizer": "RegularFaceRegularizer"},
    {"of": _of("TripletMarginLoss", triplets_per_anchor=5), "distance": "CosineSimilarity", "memory": 40},
    {"of": "ContrastiveLoss", "miner": "UniformHistogramMiner", "memory": 30, "memory_start": 7},
    {"of": "MultiSimilarityLoss", "miner": "MultiSimilarityMiner", "memory": 64, "memory_start": 3},
)


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    """Bit for bit; and a second training of the same recipe equals the first."""
    wrong = []
    for number, loss in enumerate(STATEFUL):
        what = recipes.recipe(loss={"name": "pml", **loss}, iterations=14)
        whole, again = (recipes.run(what, tmp_path / f"{number}{name}")[0] for name in ("whole", "again"))
        folder, counted = tmp_path / f"{number}stopped", iter(range(100))
        with pytest.raises(Stopped):
            recipes.run(what, folder, stop=lambda counted=counted: next(counted) >= 9)
        resumed = recipes.run(what, folder, folder / "last.pt")[0]
        for other in (again, resumed):
            if (other.metrics, other.curves) != (whole.metrics, whole.curves):
                wrong.append((loss, whole.metrics, other.metrics))
    assert wrong == []
