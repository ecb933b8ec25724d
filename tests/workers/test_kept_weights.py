"""Kept weights tell further metrics, and those that the training computed to the same bits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from tests.workers.recipes import recipe
from workers.__main__ import main
from workers.catalog import load
from workers.contract import CheckpointError, Place, Progress, Recipe, Stopped
from workers.train import evaluate, train
from workers.training import kept_weights

FURTHER = ("recall@3", "nmi_sec")


def trained(folder: Path, **changes: Any) -> tuple[Recipe, dict[str, float], Path]:
    """A short training of digits: its completed recipe, what it measured, and the file that it kept."""
    done = recipe(**changes)
    result = train(done, place(folder), lambda _: None)
    (kept,) = [folder / name for name in result.artifacts if name.endswith(".pt")]
    return done, result.metrics, kept


def place(folder: Path) -> Place:
    return Place(folder / "data", folder / "scratch", folder)


CHANGES: Final[list[dict[str, Any]]] = [
    {},
    {"select": {"metric": "recall@1", "split": "last"}, "validation": {"name": "none"}},
    {"validation": {"name": "cross_validation", "folds": 2}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=["best", "last", "folds"])
def test_what_the_training_measured_is_measured_again(tmp_path: Path, changes: dict[str, Any]) -> None:
    done, measured, kept = trained(tmp_path, **changes)
    before = kept.read_bytes()
    names = list(load().metrics(done.dataset, done.task))
    found = kept_weights.evaluate(kept_weights.read(kept), [*names, *FURTHER], place(tmp_path))
    head = f"{done.select.checkpoint}/"
    known = {key: value for key, value in measured.items() if key.startswith(head)}
    assert known
    assert {key: found[key] for key in known} == known
    beyond = {key for key in found if key not in known}
    assert {f"{head}test/{name}" for name in FURTHER} <= beyond
    assert {key.rpartition("/")[2] for key in beyond} <= {*FURTHER}
    assert kept.read_bytes() == before


@pytest.mark.parametrize("changes", CHANGES, ids=["best", "last", "folds"])
def test_an_evaluation_gives_what_a_training_would(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked, measured, _ = trained(tmp_path / "asked", metrics=list(FURTHER), **changes)
    _, _, kept = trained(tmp_path / "plain", **changes)
    told: list[Progress] = []
    found = evaluate(asked, place(tmp_path / "evaluation"), told.append, kept, FURTHER)
    head = f"{asked.select.checkpoint}/"
    wanted = {key: one for key, one in measured.items() if key.startswith(head) and key.rpartition("/")[2] in FURTHER}
    assert wanted
    assert found.metrics == wanted
    assert (found.outcome, found.steps, found.artifacts) == ("ok", 0, ["queries.npz"])
    again, before = (tmp_path / folder / "queries.npz" for folder in ("evaluation", "asked"))
    assert again.read_bytes() == before.read_bytes()  # of all that are means over queries, whatever was asked for
    assert told[0].log == f"evaluating recall@3, nmi_sec of {kept.name}\n"
    with pytest.raises(CheckpointError, match="belong to another recipe"):
        evaluate(asked.model_copy(update={"seed": 99}), place(tmp_path), told.append, kept, FURTHER)
    with pytest.raises(Stopped):
        evaluate(asked, replace(place(tmp_path), stop=lambda: True), told.append, kept, FURTHER)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, measured, kept = trained(tmp_path)
    assert main(["evaluate", str(kept), "--metric", "recall@1", "--metric", "recall@3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best/test/recall@1"] == measured["best/test/recall@1"]
    assert told["best/test/recall@3"] >= told["best/test/recall@1"]
    assert main(["evaluate", str(kept), "--metric", "recal@1"]) == 1
    assert "did you mean 'recall@1'" in capsys.readouterr().err
    assert main(["evaluate", str(kept), "--metric", "modes"]) == 1
    assert "reads samples" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "none.pt"), "--metric", "recall@1"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_a_checkpoint_of_a_training_is_none_of_kept_weights(tmp_path: Path) -> None:
    torch.save({"format": 2, "step": 3}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match=r"holds no weights that a training kept; these are best\.pt"):
        kept_weights.read(tmp_path / "last.pt")


def test_weights_for_another_version_of_their_backbone_are_refused(tmp_path: Path) -> None:
    _, _, kept = trained(tmp_path)
    found = kept_weights.read(kept)
    versions = {**found.recipe.pins.versions, "backbone": 99, "loss": 99}
    pins = found.recipe.pins.model_copy(update={"versions": versions})
    other = found._replace(recipe=found.recipe.model_copy(update={"pins": pins}))
    with pytest.raises(ValueError, match="version 99 of backbone 'small_cnn'"):
        kept_weights.evaluate(other, ["recall@3"], place(tmp_path))
    only_loss = pins.model_copy(update={"versions": {**versions, "backbone": 1}})
    same = found._replace(recipe=found.recipe.model_copy(update={"pins": only_loss}))
    assert kept_weights.evaluate(same, ["recall@3"], place(tmp_path)), "a loss reads no weights"
