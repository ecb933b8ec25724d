"""What the cluster offers and what waits for it: its nodes, and the slots that trials ask for."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.reads.claims import busy_slots, evaluations_due, in_turn, not_barred, not_held
from orchestrator.record.reads.joins import of_candidate
from orchestrator.record.reads.slot_room import SlotRoom
from orchestrator.record.reads.wanting import evaluation_left
from orchestrator.record.schema import candidate, cell, node, sweep, training, trial
from orchestrator.spec.axes import Slot
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.operations import Node
from orchestrator.views.runs import Labels
from orchestrator.views.states import SWEEP_GOING, TrialState

_TEXT: Final = sa.cast(trial.c.slot, sa.Text)


@dataclass(frozen=True, slots=True)
class AskedSlot:
    """A slot that trials of a running or paused sweep ask for."""

    sweep: int
    text: str  # its JSON as the database holds it
    slot: Slot
    own: bool  # of some of its trials; else that of all others


class CapacityReader(Access):
    """Reads nodes and slots."""

    def nodes(self, *, present: bool = False) -> list[Node]:
        """Every node that was seen, whether it is there now or not; those that are there alone with `present`."""
        query = sa.select(node).where(node.c.alive) if present else sa.select(node)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(node.c.uid)).all()
        return [Node(row.uid, row.host, row.resources) for row in rows]

    def asked_slots(self) -> list[AskedSlot]:
        """Every different slot of each running or paused sweep; trials are looked through where their spec has some."""
        slots: list[AskedSlot] = []
        columns = (sweep.c.id, sweep.c.slot, sa.cast(sweep.c.slot, sa.Text).label("text"))
        query = sa.select(*columns, sweep.c.spec["slots"].label("rules")).where(sweep.c.state.in_(SWEEP_GOING))
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(sweep.c.id)).all():
                slots.append(AskedSlot(row.id, row.text, Slot.model_validate(row.slot), own=False))
                if not row.rules:
                    continue
                own = sa.select(_TEXT).distinct().where(trial.c.sweep_id == row.id, trial.c.slot.is_not(None))
                for text in sorted(connection.execute(own).scalars()):
                    slots.append(AskedSlot(row.id, text, Slot.model_validate_json(text), own=True))
        return slots

    def waiting_labels(self, asked: AskedSlot) -> Labels | None:
        """The labels of the first trial that waits for such a slot; none: no trial waits for it."""
        query = (
            sa.select(cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"))
            .select_from(trial)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(candidate, of_candidate())
            .where(trial.c.sweep_id == asked.sweep, sa.or_(trial.c.state == TrialState.WAITING, evaluation_left()))
            .where(_TEXT.in_([asked.text]) if asked.own else trial.c.slot.is_(None))
            .order_by(trial.c.position)
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else {**row.cell_labels, **row.candidate_labels}

    def waiting_slots(
        self, most: int, quota: int | None = None, held: Collection[str] = frozenset(), limits: QuotaLimits = UNLIMITED
    ) -> list[Slot]:
        """The slots of the next trainings in turn, at most `most`, of each owner as many as the quotas leave.

        Not of those whose need is one of `held`.
        """
        taken: list[Slot] = []
        counted: set[int] = set()  # trials of several sweeps may wait for one training
        with self._database.reading() as connection:
            busy, room = busy_slots(connection), SlotRoom(connection, limits)
            for row in in_turn(connection, busy):
                left = most - len(taken) if quota is None else min(most - len(taken), quota - busy.get(row.actor, 0))
                left = room.left(row.owner_id, row.project_id, left)
                if left <= 0:
                    continue
                spent = not_barred(row.text, tuple(limits.spent.get(row.id, ())))
                waiting = sa.select(trial.c.training_id.label("id"), trial.c.slot).where(*spent)
                waiting = waiting.where(trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
                if held:
                    waiting = waiting.join(training, training.c.id == trial.c.training_id).where(*not_held(held))
                due = evaluations_due(row.id).where(*not_held(held), *spent)
                trials = [*connection.execute(due.limit(left)).all()]
                trials += connection.execute(waiting.order_by(trial.c.position).limit(left - len(trials))).all()
                slots = {one.id: one.slot for one in reversed(trials) if one.id not in counted}
                taken += [Slot.model_validate(slot or row.slot) for slot in reversed(slots.values())]
                counted.update(slots)
                busy[row.actor] = busy.get(row.actor, 0) + len(slots)
                room.take(row.owner_id, row.project_id, len(slots))
        return taken
