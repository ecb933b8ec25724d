"""What the conductor notes of the cluster: its nodes and slots, what their data roots have, and why a sweep waits."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess, insertion
from orchestrator.record.schema import finding, node, slot, sweep
from orchestrator.record.writes.changes import note
from orchestrator.record.writes.deliveries import tell_hindered
from orchestrator.record.writes.trial_rows import write_needs
from orchestrator.views.operations import Inspected, Node, SlotReport
from orchestrator.views.runs import ChangeKind

MOST_AWAY: Final = 64
"""Nodes that are remembered though they have left: an autoscaling cluster has new ones every day."""


class CapacityWriter(FencedAccess):
    """Writes nodes, slots and notices."""

    def note_nodes(self, alive: Sequence[Node]) -> None:
        """Write down which nodes are there; those that left are remembered, the latest ones.

        But not one whose machine is there as another node: it came back with what it has now.
        """
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            connection.execute(
                sa.update(node)
                .where(node.c.alive, node.c.uid.not_in([alive_node.uid for alive_node in alive]))
                .values(alive=False)
            )
            for alive_node in alive:
                values = {"host": alive_node.host, "resources": dict(alive_node.resources), "alive": True, "seen": now}
                write = insertion(connection, node).values(uid=alive_node.uid, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["uid"], set_=values))
            back = [alive_node.host for alive_node in alive if alive_node.host]
            kept = (
                sa.select(node.c.uid)
                .where(~node.c.alive, node.c.host.not_in(back))
                .order_by(node.c.seen.desc(), node.c.uid)
                .limit(MOST_AWAY)
            )
            connection.execute(sa.delete(node).where(~node.c.alive, node.c.uid.not_in(kept)))

    def note_slots(self, slots: Sequence[SlotReport]) -> None:
        """Write down which slots are there and what they do; all others are forgotten."""
        now = datetime.now(UTC)
        with self._database.writing() as connection:
            connection.execute(sa.delete(slot).where(slot.c.name.not_in([report.name for report in slots])))
            for report in slots:
                usage = None if report.usage is None else report.usage.model_dump(mode="json")
                values = {
                    "node": report.node, "host": report.host, "resources": dict(report.resources),
                    "attempt": report.attempt, "usage": usage, "lag": report.lag, "seen": now,
                }  # fmt: skip
                write = insertion(connection, slot).values(name=report.name, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["name"], set_=values))

    def note_notices(self, notices: Mapping[int, str]) -> None:
        """Say of each sweep why it waits; those that are not named have nothing to wait for."""
        query = sa.select(sweep.c.id, sweep.c.notice).where(
            sa.or_(sweep.c.notice.is_not(None), sweep.c.id.in_(notices))
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        changed = {row.id: notices.get(row.id) for row in rows if row.notice != notices.get(row.id)}
        before = {row.id: row.notice for row in rows}
        if not changed:
            return
        with self._database.writing() as connection:
            for number, notice in changed.items():
                connection.execute(sa.update(sweep).where(sweep.c.id == number).values(notice=notice))
                note(connection, ChangeKind.NOTICE, number, number)
                if notice and not before[number]:
                    tell_hindered(connection, number, notice)


class DataWriter(FencedAccess):
    """Writes findings, and with which content sweeps are planned."""

    def note_content(self, sweep_id: int, content: Mapping[str, Mapping[str, str]]) -> None:
        """Write down the content that a sweep is planned with, by the key of the need."""
        written = {key: dict(one) for key, one in content.items()}
        with self._database.writing() as connection:
            connection.execute(sa.update(sweep).where(sweep.c.id == sweep_id).values(content=written))

    def note_findings(self, found: Sequence[Inspected], there: Collection[str]) -> None:
        """Write down what was found, and forget the machines that are not there."""
        with self._database.writing() as connection:
            write_needs(connection, [one.need for one in found])
            connection.execute(sa.delete(finding).where(finding.c.node.not_in(there)))
            for one in found:
                values = {"host": one.host, "said": one.finding.said, "state": one.finding.state, "looked": one.looked}
                values |= {"facts": one.finding.model_dump(mode="json", include={"content", "counts"})}
                write = insertion(connection, finding).values(node=one.node, need=one.need.key, **values)
                connection.execute(write.on_conflict_do_update(index_elements=["node", "need"], set_=values))
