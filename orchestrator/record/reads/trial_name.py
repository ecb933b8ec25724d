"""What a person calls a trial, in the tracker and in Ray's own tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from orchestrator.record.reads.joins import first_of_either, of_candidate
from orchestrator.record.schema import candidate, cell, sweep, trial


def cell_name(labels: Mapping[str, str]) -> str:
    """Such as `triplet · sec`."""
    return " · ".join(labels.values()) or "all"


def trial_name(compared: Mapping[str, str], chosen: Mapping[str, str]) -> str:
    """The name of its cell, and what sets it apart there: `triplet · sec · eta=0.5 · seed=1`."""
    return " · ".join([cell_name(compared), *(f"{axis.rpartition('.')[2]}={one}" for axis, one in chosen.items())])


@dataclass(frozen=True, slots=True)
class OrderNames:
    """What an order is called, and whose it is first."""

    label: str = ""
    sweep: int | None = None
    trial: int | None = None


_MINE: Final[sa.BindParameter[int]] = sa.bindparam("mine")
_NAMED: Final = (
    sa.select(
        sweep.c.id, trial.c.id.label("trial"), sweep.c.name, cell.c.labels.label("compared"),
        candidate.c.labels.label("tuned"), trial.c.repeat_labels,
    )
    .select_from(trial)
    .join(sweep, sweep.c.id == trial.c.sweep_id)
    .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
    .join(candidate, of_candidate())
    .where(trial.c.id == first_of_either(trial.c.training_id == _MINE, trial.c.evaluation_id == _MINE))
)  # fmt: skip
"""Made once, since every claim asks it."""


def order_names(connection: sa.Connection, training_id: int) -> OrderNames:
    """Those of the first trial that points to a training, or is to, with its sweep's; none does so: nothing."""
    row = connection.execute(_NAMED, {"mine": training_id}).one_or_none()
    if row is None:
        return OrderNames()
    label = f"{row.name} #{row.id} · {trial_name(row.compared, {**row.tuned, **row.repeat_labels})}"
    return OrderNames(label, row.id, row.trial)
