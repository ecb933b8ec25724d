"""What the cluster offers and what waits for it: its nodes, the slots that trials ask for, and why a sweep waits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.reads.sweep_views import of_candidate
from orchestrator.record.schema import candidate, cell, node, sweep, training, trial
from orchestrator.record.writes.claims import busy_slots, in_turn, not_held
from orchestrator.views.lifecycle import SWEEP_GOING, TrialState
from orchestrator.views.nodes import Node
from orchestrator.views.planned import Labels
from orchestrator.views.slot import Slot

MOST_AWAY: Final = 64
"""Nodes that are remembered though they have left: an autoscaling cluster has new ones every day."""

_TEXT: Final = sa.cast(trial.c.slot, sa.Text)


@dataclass(frozen=True, slots=True)
class AskedSlot:
    """A slot that trials of a running or paused sweep ask for."""

    sweep: int
    text: str  # its JSON as the database holds it
    slot: Slot
    own: bool  # of some of its trials; else that of all others


class Nodes(Access):
    """What clients read of the cluster."""

    def nodes(self, *, present: bool = False) -> list[Node]:
        """Every node that was seen, whether it is there now or not; those that are there alone with `present`."""
        query = sa.select(node).where(node.c.alive) if present else sa.select(node)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(node.c.uid)).all()
        return [Node(row.uid, row.host, row.resources) for row in rows]


class Capacity(Access):
    """What the conductor notes of the cluster, and what it asks of those that wait."""

    def note_nodes(self, fence: int, alive: Sequence[Node]) -> None:
        """Write down which nodes are there; those that left are remembered, the latest ones.

        But not one whose machine is there as another node: it came back with what it has now.
        """
        now = datetime.now(UTC)
        with self._database.writing(fence) as connection:
            connection.execute(
                sa.update(node).where(node.c.alive, node.c.uid.not_in([one.uid for one in alive])).values(alive=False)
            )
            for one in alive:
                values = {"host": one.host, "resources": dict(one.resources), "alive": True, "seen": now}
                write = self._database.insert(node).values(uid=one.uid, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["uid"], set_=values))
            back = [one.host for one in alive if one.host]
            kept = (
                sa.select(node.c.uid)
                .where(~node.c.alive, node.c.host.not_in(back))
                .order_by(node.c.seen.desc(), node.c.uid)
                .limit(MOST_AWAY)
            )
            connection.execute(sa.delete(node).where(~node.c.alive, node.c.uid.not_in(kept)))

    def asked_slots(self) -> list[AskedSlot]:
        """Every different slot of each running or paused sweep; trials are looked through where their spec has some."""
        found: list[AskedSlot] = []
        columns = (sweep.c.id, sweep.c.slot, sa.cast(sweep.c.slot, sa.Text).label("text"))
        query = sa.select(*columns, sweep.c.spec["slots"].label("rules")).where(sweep.c.state.in_(SWEEP_GOING))
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(sweep.c.id)).all():
                found.append(AskedSlot(row.id, row.text, Slot.model_validate(row.slot), own=False))
                if not row.rules:
                    continue
                own = sa.select(_TEXT).distinct().where(trial.c.sweep_id == row.id, trial.c.slot.is_not(None))
                for text in sorted(connection.execute(own).scalars()):
                    found.append(AskedSlot(row.id, text, Slot.model_validate_json(text), own=True))
        return found

    def waiting_labels(self, asked: AskedSlot) -> Labels | None:
        """The labels of the first trial that waits for such a slot; none: no trial waits for it."""
        query = (
            sa.select(cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"))
            .select_from(trial)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(candidate, of_candidate())
            .where(trial.c.sweep_id == asked.sweep, trial.c.state == TrialState.WAITING)
            .where(_TEXT.in_([asked.text]) if asked.own else trial.c.slot.is_(None))
            .order_by(trial.c.position)
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else {**row.cell_labels, **row.candidate_labels}

    def waiting_slots(self, most: int, quota: int | None = None, held: Collection[str] = frozenset()) -> list[Slot]:
        """The slots of the next trainings in turn, at most `most`, of each owner as many as the quota leaves.

        Not of those whose need is one of `held`.
        """
        found: list[Slot] = []
        counted: set[int] = set()  # trials of several sweeps may wait for one training
        with self._database.reading() as connection:
            busy = busy_slots(connection)
            for row in in_turn(connection, busy):
                left = most - len(found) if quota is None else min(most - len(found), quota - busy.get(row.actor, 0))
                if left <= 0:
                    continue
                waiting = sa.select(trial.c.training_id, trial.c.slot)
                waiting = waiting.where(trial.c.sweep_id == row.id, trial.c.state == TrialState.WAITING)
                if held:
                    waiting = waiting.join(training, training.c.id == trial.c.training_id).where(*not_held(held))
                trials = connection.execute(waiting.order_by(trial.c.position).limit(left)).all()
                slots = {one.training_id: one.slot for one in reversed(trials) if one.training_id not in counted}
                found += [Slot.model_validate(slot or row.slot) for slot in reversed(slots.values())]
                counted.update(slots)
                busy[row.actor] = busy.get(row.actor, 0) + len(slots)
        return found

    def note_notices(self, fence: int, notices: Mapping[int, str]) -> None:
        """Say of each sweep why it waits; those that are not named have nothing to wait for."""
        query = sa.select(sweep.c.id, sweep.c.notice).where(
            sa.or_(sweep.c.notice.is_not(None), sweep.c.id.in_(notices))
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        changed = {row.id: notices.get(row.id) for row in rows if row.notice != notices.get(row.id)}
        if not changed:
            return
        with self._database.writing(fence) as connection:
            for number, notice in changed.items():
                connection.execute(sa.update(sweep).where(sweep.c.id == number).values(notice=notice))
