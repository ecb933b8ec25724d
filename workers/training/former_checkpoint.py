"""Checkpoints of format 1, in which every training was retrieval's and backbone and head were one model."""

from collections.abc import Mapping
from typing import Any

State = dict[str, Any]


def brought_up(state: Mapping[str, Any]) -> State:
    """The state of a checkpoint of format 1 as format 2 holds it: of a training, of folds, or of weights kept."""
    held = {**state, "format": 2}
    if "session" in held:
        held["session"] = _session(held["session"])
        held["done"] = [_renamed(fold) | {"beside": _modules(fold.get("beside") or {})} for fold in held["done"]]
        return held
    return _session(held) if "optimizer" in held.get("descent", {}) else _renamed(held)


def _session(state: State) -> State:
    known = {name: value for name, value in state.items() if name not in _FORMER}
    return known | {
        "modules": _modules(state["model"]) | {name: state[name] for name in ("loss", "regularizer")},
        "players": {"model": state["descent"]},
        "batches": {"sampler": state["sampler"], "generators": state["generators"]},
        "task": {"traces": state.get("traces", {})},
        "best": _renamed(state["best"]) if state["best"] else None,
        "beside": _renamed(state["beside"]) if state.get("beside") else None,
    }


_FORMER = ("model", "loss", "regularizer", "descent", "sampler", "generators", "traces")


def _renamed(held: State) -> State:
    """With `modules` instead of `model`, which is that of one training or a list of those of folds."""
    rest = {name: value for name, value in held.items() if name != "model"}
    if "model" not in held:
        return rest
    model = held["model"]
    return rest | {"modules": [_modules(one) for one in model] if isinstance(model, list) else _modules(model)}


def _modules(model: Mapping[str, Any]) -> State:
    """The states of backbone and head, by the names of their weights in one model."""
    found: State = {}
    for name, value in model.items():
        module, _, weight = name.partition(".")
        found.setdefault(module, {})[weight] = value
    return found
