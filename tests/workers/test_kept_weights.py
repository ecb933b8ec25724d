"""Kept weights tell further metrics, and those that the training computed to the same bits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from tests.workers.recipes import place, recipe, run
from workers.__main__ import main
from workers.catalog import load
from workers.contract import CheckpointError, Progress, Recipe, Stopped
from workers.train import evaluate
from workers.training import kept_weights

FURTHER = ("recall@3", "nmi_sec")


def trained(folder: Path, **changes: Any) -> tuple[Recipe, dict[str, float], Path]:
    """A short training of digits: its completed recipe, what it measured, and the file that it kept."""
    done = recipe(**{"iterations": 6, "evaluate_every": 2, **changes})
    result, _ = run(done, folder)
    (kept,) = [folder / name for name in result.artifacts if name.endswith(".pt")]
    return done, result.metrics, kept


CHANGES: Final[list[dict[str, Any]]] = [
    {},
    {"select": {"metric": "recall@1", "split": "last"}, "validation": {"name": "none"}},
    {"validation": {"name": "cross_validation", "folds": 2}},
]


@pytest.mark.parametrize("changes", CHANGES, ids=["best", "last", "folds"])
def test_kept_weights_give_what_a_training_would(tmp_path: Path, changes: dict[str, Any]) -> None:
    asked, measured, _ = trained(tmp_path / "asked", metrics=list(FURTHER), **changes)
    _, _, kept = trained(tmp_path / "plain", **changes)
    before = kept.read_bytes()
    told: list[Progress] = []
    result = evaluate(asked, place(tmp_path / "evaluation"), told.append, kept, FURTHER)
    head = f"{asked.select.checkpoint}/"
    known = {key: one for key, one in measured.items() if key.startswith(head)}
    further = {key: one for key, one in known.items() if key.rpartition("/")[2] in FURTHER}
    assert result.metrics == further
    assert {f"{head}test/{name}" for name in FURTHER} <= further.keys()
    assert (result.outcome, result.steps, result.artifacts) == ("ok", 0, ["queries.npz"])
    names = [*load().metrics(asked.dataset, asked.task), *FURTHER]
    assert kept_weights.evaluate(kept_weights.read(kept), names, place(tmp_path)) == known
    again, queries = (tmp_path / folder / "queries.npz" for folder in ("evaluation", "asked"))
    assert again.read_bytes() == queries.read_bytes()  # of all that are means over queries, whatever was asked for
    assert told[0].log == f"evaluating recall@3, nmi_sec of {kept.name}\n"
    assert kept.read_bytes() == before
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
