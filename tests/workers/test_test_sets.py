"""Test sets beside `test`: their splits, their metrics, their pins, and the columns of tables that show them."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.check import check
from orchestrator.spec.layouts import MetricColumn
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from tests.workers.recipes import place, run
from workers import catalog
from workers.contract import DataDamagedError, Part, Recipe
from workers.data import images
from workers.training import kept_weights, session

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
    found = kept_weights.evaluate(kept_weights.read(tmp_path / "final.pt"), ["recall@1"], place(tmp_path, parts=parts))
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
    nothing = "no data set of this sweep has a test set 'half'; none of them is asked for any"
    assert spec(parts, [], "test_half")[0] == [(path, nothing)]
    expected = "expected 'test', 'test_separated', 'validation', 'train', or 'test_' with the name of a test set"
    assert spec(parts, ["half"], "tests")[0] == [(path, expected)]
