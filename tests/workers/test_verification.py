"""Verification of pairs against a naive loop, and test sets next to `test`: metrics, pins and columns of tables."""

import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch

from orchestrator.plan.check import check
from orchestrator.spec.layouts import MetricColumn
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.workers.recipes import batches, begun, place, recipe, run
from workers import catalog, geometry
from workers.contract import DataDamagedError, Part, Recipe
from workers.data import images
from workers.data.batches import Batches, Splits, splits
from workers.data.images import PairSet
from workers.evaluation.verification import FOLDS, MOST, Scores, pairs
from workers.metrics.accuracy import Accuracy
from workers.tasks import verification
from workers.tasks.verification import Verification
from workers.training import kept_weights, session
from workers.training.folds import fold_recipes
from workers.training.session import Session


def naive(scores: Scores) -> float:
    """The same in loops."""
    rows = list(zip(scores.cosine.tolist(), scores.same.tolist(), scores.fold.tolist(), strict=True))
    shares = []
    for number in range(FOLDS):
        others = [row for row in rows if row[2] != number]
        best, threshold = -1, 0.0
        for candidate in [*sorted({cosine for cosine, _, _ in others}), float("inf")]:
            right = sum((cosine >= candidate) == same for cosine, same, _ in others)
            if right > best:
                best, threshold = right, candidate
        own = [(cosine >= threshold) == same for cosine, same, fold in rows if fold == number]
        shares.append(sum(own) / len(own))
    return sum(shares) / FOLDS


def test_accuracy_is_that_of_a_naive_loop() -> None:
    asked = pairs(torch.arange(30) // 5)
    drawn = torch.randn(len(asked.same), generator=torch.Generator().manual_seed(3))
    for separation in (-5.0, 0.3, 2.0):
        for steps in (4, 10_000):  # with few steps many are equal
            cosine = (torch.tanh(drawn + separation * asked.same) * steps).round() / steps
            scores = Scores(cosine, asked.same, asked.fold)
            assert Accuracy()(scores) == pytest.approx(naive(scores), abs=1e-12), (separation, steps)
    assert Accuracy()(Scores(torch.zeros(len(asked.same)), asked.same, asked.fold)) == 0.5
    assert Accuracy()(Scores(asked.same.float(), asked.same, asked.fold)) == 1.0


def test_pairs_are_all_of_one_class_and_as_many_of_two() -> None:
    labels = torch.arange(60) // 6
    asked = pairs(labels)
    assert len(asked.same) == 2 * 10 * 15
    assert torch.equal(labels[asked.first] == labels[asked.second], asked.same)
    assert len({frozenset(pair) for pair in zip(asked.first.tolist(), asked.second.tolist(), strict=True)}) >= 150
    assert asked.fold.bincount().tolist() == [30] * FOLDS
    assert all(torch.equal(one, other) for one, other in zip(asked, pairs(labels), strict=True))
    assert len(pairs(torch.arange(400) // 200).same) == 2 * MOST


def test_the_pairs_that_a_data_set_drew_up_go_before_those_of_labels(tmp_path: Path) -> None:
    place_ = torch.arange(20)
    drawn = PairSet(place_, place_ % 7, place_ % 2 == 0, place_ // 2)
    task, batches_ = task_of(tmp_path)
    usual = task.evaluate("test", ["accuracy"])
    batches_.splits = replace(batches_.splits, test=replace(batches_.splits.test, pairs=drawn))
    unit = geometry.unit(task.embed(batches_.splits.test))
    scores = Scores((unit[drawn.first] * unit[drawn.second]).sum(dim=1), drawn.same, drawn.fold)
    assert task.evaluate("test", ["accuracy"]) == {"accuracy": pytest.approx(naive(scores))} != usual


def task_of(tmp_path: Path, **options: bool) -> tuple[Verification, Batches]:
    session = begun(recipe(task={"name": "verification", **options}), tmp_path)
    assert isinstance(session.task, Verification)
    return session.task, batches(session)


def test_an_embedding_may_be_that_of_an_image_and_of_its_mirror_image(tmp_path: Path) -> None:
    task, batches_ = task_of(tmp_path, flip=True)
    test = batches_.splits.test
    raw = task.embed(test) + task.embed(replace(test, images=test.images.flip(-1)))
    assert torch.allclose(task.embed(test, mirrored=True), raw, atol=1e-6)
    unit, asked = geometry.unit(raw), pairs(test.labels)
    scores = Scores((unit[asked.first] * unit[asked.second]).sum(dim=1), asked.same, asked.fold)
    assert task.evaluate("test", ["accuracy"]) == {"accuracy": pytest.approx(Accuracy()(scores), abs=1e-3)}
    assert task.evaluate("test", ["accuracy"]) != task_of(tmp_path)[0].evaluate("test", ["accuracy"])


def test_queries_are_searched_among_the_distractors_that_a_data_set_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, batches_ = task_of(tmp_path)
    test = batches_.splits.test
    query = torch.arange(len(test)) < 30
    among = {10: torch.arange(40, 50), 100: torch.arange(100, 200)}
    batches_.splits = replace(batches_.splits, test=replace(test, query=query, distractors=among))
    names = ["rank1@1e2", "rank1@1e1", "rank1@1e3", "accuracy"]
    found = task.evaluate("test", names)
    assert list(found) == names
    assert math.isnan(found["rank1@1e3"])
    assert math.isnan(found["accuracy"])
    unit = geometry.unit(task.embed(test))
    for size, numbers in among.items():
        firsts = [
            bool(unit[one] @ unit[other] > (unit[numbers] @ unit[one]).max())
            for one, other in permutations(range(30), 2)
            if test.labels[one] == test.labels[other]
        ]
        assert found[f"rank1@1e{len(str(size)) - 1}"] == pytest.approx(sum(firsts) / len(firsts))
    monkeypatch.setattr(verification, "_BLOCK", 7)
    assert task.evaluate("test", names[:2]) == {name: found[name] for name in names[:2]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"second": torch.tensor([1, 2, 3, 40_000])}, "a pair names image 40000, and there are [0-9]+, counted from 0"),
        ({"first": torch.tensor([0, -1, 1, 2])}, "a pair names image -1, and there are"),
        ({"same": torch.tensor([False] * 4)}, "expected pairs of one class and of two, found 0 and 4"),
        ({"same": torch.tensor([True] * 4)}, "expected pairs of one class and of two, found 4 and 0"),
        ({"fold": torch.tensor([2] * 4)}, "expected two folds of pairs at least, since each is judged by the others"),
    ],
)
def test_useless_pairs_are_refused_before_the_training(
    changes: dict[str, torch.Tensor], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = PairSet(torch.arange(4), torch.arange(1, 5), torch.arange(4) % 2 == 0, torch.arange(4) // 2)

    def with_pairs(*given: Any) -> Splits:
        found = splits(*given)
        return replace(found, test=replace(found.test, pairs=sound._replace(**changes)))

    monkeypatch.setattr("workers.data.batches.splits", with_pairs)
    with pytest.raises(ValueError, match=rf"verification: {message}.* \(split 'test'\)"):
        run(recipe(task="verification"), tmp_path)


def test_too_few_to_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="expected two classes and 10 pairs"):
        pairs(torch.zeros(30, dtype=torch.int64))
    with pytest.raises(ValueError, match="expected two classes and 10 pairs"):
        pairs(torch.arange(8) // 2)


def test_models_of_folds_are_joined_by_the_mean_of_their_cosines(tmp_path: Path) -> None:
    folds = {"name": "cross_validation", "folds": 3}
    what = recipe(task="verification", iterations=4, validation=folds)
    result, _ = run(what, tmp_path)
    kept = kept_weights.read(tmp_path / "best.safetensors")
    session = Session(fold_recipes(what)[0], place(tmp_path), torch.device("cpu"))
    test = batches(session).splits.test
    asked = pairs(test.labels)
    cosines = []
    for weights in kept.models:
        session.load(weights)
        with torch.no_grad():
            unit = torch.nn.functional.normalize(session.task.embed(test))  # type: ignore[attr-defined]
        cosines.append((unit[asked.first] * unit[asked.second]).sum(dim=1))
    mean = torch.stack(cosines).mean(dim=0)
    together = Accuracy()(Scores(mean, asked.same, asked.fold))
    assert result.metrics["best/test/accuracy"] == pytest.approx(together, abs=1e-3)  # equal but for rounding of ties
    assert result.metrics["best/test/accuracy"] != result.metrics["best/test_separated/accuracy"]


DATASET = '''
from dataclasses import replace
from typing import Literal

from workers.datasets.digits import Digits


class Sets:
    """Digits whose test images are two test sets more: all of them, and every second one."""

    label = "Sets"
    version = 1
    classes = {"train": 6, "test": 4, "test_half": 4}
    metrics = ("recall@1",)
    manifests = {"all": "MANIFEST"}

    def __init__(self, *, tests: tuple[Literal["all", "half"], ...] = ()):
        whole = Digits()
        self.train, self.test = whole.train, whole.test
        half = (self.test.labels >= 0).nonzero()[:, 0] % 2 == 0
        every = {"all": self.test, "half": self.test.of_images(half)}
        self.tests = {name: every[name] for name in tests}
'''
RAW: dict[str, Any] = {
    "backbone": {"name": "small_cnn", "width": 8},
    "embedding": 16,
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 3, "per_class": 4},
    "iterations": 3,
    "select": {"metric": "recall@1", "split": "last"},
}


def written(folder: Path, manifest: str) -> Path:
    (folder / "parts" / "datasets").mkdir(parents=True, exist_ok=True)
    (folder / "parts" / "datasets" / "sets.py").write_text(DATASET.replace("MANIFEST", manifest))
    return folder / "parts"


@pytest.fixture(scope="module")
def manifest() -> str:
    """What the content of the set `all` is."""
    return images.images_hash(images.load(Part(name="digits"), Path(), Path()).test)


@pytest.fixture
def parts(tmp_path: Path, manifest: str) -> Path:
    """A folder of own parts with a data set of two further test sets."""
    return written(tmp_path, manifest)


def made(parts: Path, tests: list[str], **changes: Any) -> Recipe:
    raw = {**RAW, "dataset": {"name": "sets", "tests": tests}, **changes}
    known = catalog.load(parts)
    assert catalog.problems(raw, known) == []
    return catalog.complete(Recipe.model_validate(raw), known)


def test_the_weights_are_judged_on_each(parts: Path, tmp_path: Path) -> None:
    result, _ = run(made(parts, ["half", "all"]), tmp_path, parts=parts)
    assert result.metrics["last/test_all/recall@1"] == result.metrics["last/test/recall@1"]
    assert result.metrics["last/test_half/recall@1"] != result.metrics["last/test/recall@1"]
    found = kept_weights.evaluate(
        kept_weights.read(tmp_path / "final.safetensors"), ["recall@1"], place(tmp_path, parts=parts)
    )
    assert found == result.metrics
    plain, _ = run(made(parts, []), tmp_path / "plain", parts=parts)
    assert plain.metrics == {"last/test/recall@1": result.metrics["last/test/recall@1"]}


def test_folds_are_joined_on_each(parts: Path, tmp_path: Path) -> None:
    folds = {"validation": {"name": "cross_validation", "folds": 2}}
    result, _ = run(made(parts, ["all"], **folds), tmp_path, parts=parts)
    for split in ("test", "test_separated"):
        other = split.replace("test", "test_all", 1)
        assert result.metrics[f"last/{other}/recall@1"] == result.metrics[f"last/{split}/recall@1"]
    assert result.metrics["last/test/recall@1"] != result.metrics["last/test_separated/recall@1"]


def test_what_a_recipe_asks_for_is_pinned(parts: Path, tmp_path: Path, manifest: str) -> None:
    what = made(parts, ["half", "all"])
    assert what.pins.manifests == {"all": manifest}
    assert "manifests" not in made(parts, ["half"]).model_dump(mode="json")["pins"]
    session.check(what, parts)
    other = what.model_copy(update={"pins": what.pins.model_copy(update={"manifests": {"all": "sha256:00"}})})
    with pytest.raises(ValueError, match="pins: the recipe is for content sha256:00 of test set 'all'"):
        session.check(other, parts)
    stamped = catalog.stamp(other.model_dump(mode="json"))
    assert [change.what for change in catalog.changes(stamped, catalog.load(parts))] == [
        "content of test set 'all' of dataset 'sets'"
    ]


def test_another_content_is_damage(tmp_path: Path) -> None:
    parts = written(tmp_path, "sha256:00")
    with pytest.raises(DataDamagedError, match=r"the content of test set all is sha256:.*, expected sha256:00"):
        images.load(Part.model_validate({"name": "sets", "tests": ["all"]}), tmp_path, tmp_path, parts)
    images.load(Part.model_validate({"name": "sets", "tests": ["half"]}), tmp_path, tmp_path, parts)


def test_a_test_set_that_is_none_is_refused(parts: Path) -> None:
    def said(tests: Any) -> str:
        (found,) = catalog.problems({**RAW, "dataset": {"name": "sets", "tests": tests}}, catalog.load(parts))
        assert found.path == "dataset.tests"
        return found.message

    assert said(["al"]) == "expected a list of some of 'all', 'half', found 'al'"
    assert said(["all", "all"]) == "expected each once, found 'all' twice"
    assert said("all") == "expected a list of some of 'all', 'half', found 'all'"


def spec(parts: Path, tests: list[str], split: str) -> tuple[list[tuple[str, str]], Spec | None]:
    """The problems of a spec with a column of a split; the spec itself where there are none."""
    document = {
        "version": 1,
        "name": "sets",
        "recipe": {key: value for key, value in RAW.items() if key != "select"}
        | {"dataset": {"name": "sets", "tests": tests}},
        "select": RAW["select"],
        "compare": {"loss": ["triplet", "semihard"]},
        "tables": {"main": {"rows": ["loss"], "metrics": ["recall@1", {"metric": "recall@1", "split": split}]}},
    }
    try:
        return [], check(document, catalog.load(parts))
    except InvalidSpecError as refused:
        return [(one.path, one.message) for one in refused.problems], None


def test_a_column_names_a_test_set(parts: Path) -> None:
    found, known = spec(parts, ["half"], "test_half")
    assert found == []
    assert known is not None
    column = known.tables["main"].metrics[1]
    assert isinstance(column, MetricColumn)
    assert (column.test_set, column.name, column.key("best")) == (
        "half", "half:recall@1", "best/test_half/recall@1"
    )  # fmt: skip
    path = "tables.main.metrics[1].split"
    assert spec(parts, ["half"], "test_hal")[0] == [
        (path, "no data set of this sweep has a test set 'hal'; did you mean 'half'?")
    ]
    nothing = "no data set of this sweep has a test set 'half'; its data sets evaluate no further test sets"
    assert spec(parts, [], "test_half")[0] == [(path, nothing)]
    expected = "expected 'test', 'test_separated', 'validation', 'train', or 'test_' with the name of a test set"
    assert spec(parts, ["half"], "tests")[0] == [(path, f"{expected}, found 'tests'")]
