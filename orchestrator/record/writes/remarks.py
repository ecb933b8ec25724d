"""Notes and tags, which clients write themselves: the conductor only deletes them with their sweep."""

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import Access, insertion
from orchestrator.record.existence import require_lasting, require_sweep
from orchestrator.record.schema import cell, note, tag, trial
from orchestrator.record.steering import require_steered
from orchestrator.record.writes import changes
from orchestrator.record.writes.audit import tell
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.runs import ChangeKind
from orchestrator.views.sweeps import MOST_TAGS, Remark, Remarked, TagChange


def _its(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(name) for name in ("kind", "sweep_id", "entity"))


_NOTE: Final = sa.select(note).where(*_its(note))
_TAGS: Final = sa.select(tag.c.tag).where(*_its(tag)).order_by(tag.c.tag)


class Remarks(Access):
    """Reads and writes what people say."""

    def of(self, kind: Remarked, sweep: int, entity: int) -> Remark:
        """The note and tags of a sweep, a cell or a trial; raises NotFoundError."""
        with self._database.reading() as connection:
            _require(connection, kind, sweep, entity)
            whose = {"kind": kind, "sweep_id": sweep, "entity": entity}
            said = connection.execute(_NOTE, whose).one_or_none()
            known = list(connection.execute(_TAGS, whose).scalars())
        if said is None:
            return Remark(tags=known)
        return Remark(note=said.text, tags=known, actor=said.actor, changed=said.changed)

    def put(
        self, where: tuple[Remarked, int, int], text: str | None, tags: TagChange | None, actor: str | None
    ) -> None:
        """Set the note, change the tags, or both; an empty note is none. Raises NotFoundError, and ConflictError."""
        kind, sweep, entity = where
        with self._database.writing() as connection:
            changes.alone(connection)  # its deletion, or another's remark, comes before or after
            if caller().user is not None:
                require_steered(connection, sweep)
            _require(connection, kind, sweep, entity)
            require_lasting(connection, sweep)
            keys = {"kind": kind, "sweep_id": sweep, "entity": entity}
            if text is not None and not text:
                connection.execute(sa.delete(note).where(*_its(note)), keys)
            elif text is not None:
                said = {"text": text, "actor": actor, "changed": datetime.now(UTC)}
                adding = insertion(connection, note).values(**keys, **said)
                connection.execute(adding.on_conflict_do_update(index_elements=list(keys), set_=said))
            if tags is not None:
                words = tags.of(list(connection.execute(_TAGS, keys).scalars()))
                if len(words) > MOST_TAGS:
                    raise ConflictError(f"there would be {len(words)} tags, and there may be {MOST_TAGS}; remove some")
                connection.execute(sa.delete(tag).where(*_its(tag)), keys)
                rows = [{**keys, "tag": one} for one in words]
                if rows:
                    connection.execute(sa.insert(tag), rows)
            changes.note(connection, ChangeKind(kind), sweep, entity)
            target = f"sweep {sweep}" if kind == "sweep" else f"sweep {sweep}, {kind} {entity}"
            tell(connection, "remark", target, actor=actor)

    def sweep_of(self, number: int) -> int:
        """The sweep of a trial; raises NotFoundError."""
        with self._database.reading() as connection:
            query = sa.select(trial.c.sweep_id).where(trial.c.id == number)
            sweep = connection.execute(query).scalar_one_or_none()
        if sweep is None:
            raise NotFoundError(f"no trial {number}")
        return int(sweep)


def _require(connection: sa.Connection, kind: Remarked, sweep: int, entity: int) -> None:
    require_sweep(connection, sweep)
    if kind == "cell":
        query = sa.select(cell.c.cell).where(cell.c.sweep_id == sweep, cell.c.cell == entity)
        if connection.execute(query).first() is None:
            raise NotFoundError(f"sweep {sweep} has no cell {entity}")
