"""Checkpoints of format 1, whose form a release wrote that had one task: they are read, split by module."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.recipes import numbers, own_part, place, recipe, run, same, weights
from tests.workers.test_checkpoint import stopping_after
from workers.contract import Stopped
from workers.training import checkpoint
from workers.training.session import Session

FOLDS: dict[str, Any] = {"validation": {"name": "cross_validation", "folds": 3}, "select": {"beside": "test"}}


def former(state: dict[str, Any]) -> dict[str, Any]:
    """What format 1 held of a state of today's."""

    def joined(modules: dict[str, Any]) -> dict[str, Any]:
        return {f"{name}.{key}": modules[name][key] for name in ("backbone", "head") for key in modules.get(name, {})}

    def best(held: dict[str, Any] | None) -> dict[str, Any] | None:
        return held and {"step": held["step"], "score": held["score"], "model": joined(held["modules"])}

    if "session" in state:
        done = [
            {key: one for key, one in fold.items() if key != "modules"}
            | {"model": joined(fold["modules"]), "beside": joined(fold["beside"])}
            for fold in state["done"]
        ]
        return {**state, "format": 1, "session": former(state["session"]), "done": done}
    moved = ("modules", "players", "batches", "task", "best", "beside")
    return {
        **{key: one for key, one in state.items() if key not in moved},
        "format": 1,
        "model": joined(state["modules"]),
        "loss": state["modules"]["loss"],
        "regularizer": state["modules"]["regularizer"],
        "descent": state["players"]["model"],
        **state["batches"],
        **state["task"],
        "best": best(state["best"]),
        "beside": best(state["beside"]),
    }


@pytest.mark.parametrize(
    ("changes", "cut"), [({"regularizer": "sec_ema", "figures": ["norm_traces"]}, 7), (FOLDS, 17)], ids=["one", "folds"]
)
def test_a_training_goes_on_from_it_bit_for_bit(changes: dict[str, Any], cut: int, tmp_path: Path) -> None:
    what = recipe(**changes)
    whole, _ = run(what, tmp_path / "whole")
    with pytest.raises(Stopped):
        run(what, tmp_path / "cut", stop=stopping_after(cut))
    last = tmp_path / "cut" / "last.pt"
    torch.save(former(torch.load(last, weights_only=True)), last)
    resumed, _ = run(what, tmp_path / "end", last)
    assert numbers(resumed) == numbers(whole)


def test_kept_weights_are_split_by_module(tmp_path: Path) -> None:
    run(recipe(loss="proxy_anchor"), tmp_path)
    today, model = torch.load(tmp_path / "best.pt", weights_only=True), weights(tmp_path / "best.pt")
    assert set(today["modules"]) == {"backbone", "head", "loss", "regularizer"}
    assert today["modules"]["loss"], "figures of proxies need them"
    old = {name: value for name, value in model.items() if name.startswith(("backbone.", "head."))}
    torch.save({"format": 1, "recipe": today["recipe"], "step": today["step"], "model": old}, tmp_path / "old.pt")
    found = checkpoint.load(tmp_path / "old.pt")
    assert found.keys() == today.keys()
    for name in ("backbone", "head"):
        assert same(found["modules"][name], today["modules"][name])


def test_a_task_of_the_former_form_is_refused_with_a_sentence(tmp_path: Path) -> None:
    source = (
        "class Ranking:\n"
        '    """Trains by a loss."""\n\n'
        "    def __init__(self, model, loss, regularizer, evaluate, read):\n        self.model = model\n"
    )
    what = recipe().model_copy(update={"task": own_part_of(tmp_path, source)})
    with pytest.raises(ValueError, match=r"task 'ranking' has the form that tasks had before: .*add-a-part"):
        Session(what, place(tmp_path, parts=tmp_path), torch.device("cpu"))


def own_part_of(folder: Path, source: str) -> Any:
    return own_part(folder, "tasks", "ranking", source, task="ranking").task
