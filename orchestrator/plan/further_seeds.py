"""The text of a spec with further seeds for some of its cells, which is what a sweep is extended by."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.plan.reading.edit import placed
from orchestrator.spec.axis import Choice
from orchestrator.spec.seeds import seed_axis, seed_of
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import ConflictError
from orchestrator.views.planned import Labels


def with_seeds(text: bytes, spec: Spec, cells: Mapping[int, Labels], seeds: Mapping[int, Sequence[int]]) -> bytes:
    """`text` with `seeds` by cell; `spec` is what it was read as. Cells that no label tells apart share theirs.

    Raises ConflictError where its trainings are not repeated by a seed, or a subset of them was taken by it.
    """
    axis = seed_axis(spec)
    if axis is None:
        raise ConflictError(
            "seeds cannot be added: the spec repeats by none; expected `repeat: {seed: [0, 1, 2]}`, in a new sweep"
        )
    for key, labels in (("only", spec.only), ("without", spec.without)):
        if axis.name in labels:
            raise ConflictError(
                f"seeds cannot be added: the sweep is a subset by {axis.name} (`{key}`); list the seeds in `repeat` "
                "of a new sweep instead, which reuses what is trained"
            )
    groups = [_posted([_value(one) for one in group.choices], group.when) for group in spec.repeat[axis.name]]
    for cell, added in seeds.items():
        when = {name: [label] for name, label in cells[cell].items()}
        same = next((one for one in groups if one.get("when", {}) == when), None)
        if same is None:
            groups.append(same := _posted([], when))
        same["values"] += [seed for seed in added if seed not in same["values"]]
    return placed(text, ("repeat", axis.name), [_short(one) for one in groups])


def _posted(values: list[Any], when: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {"values": values, "when": {axis: list(labels) for axis, labels in when.items()}}


def _value(choice: Choice) -> Any:
    seed = seed_of(choice)
    return seed if choice.label == str(seed) else {"label": choice.label, "patch": choice.patch}


def _short(group: Mapping[str, Any]) -> dict[str, Any]:
    when = {axis: labels[0] if len(labels) == 1 else labels for axis, labels in group["when"].items()}
    return {"values": group["values"]} | ({"when": when} if when else {})
