"""What lists find trials by: labels and numbers beside the trials, notes and tags."""

import math
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_CHUNK, _LABELS, _NUMBERS = 500, 16, 96
_FIRST = ("best/test/", "best/validation/", "last/test/", "last/validation/")


def upgrade() -> None:
    """Go to this version."""
    op.create_table(
        "trial_column",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_trial_column_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "key", name=op.f("pk_trial_column")),
    )
    op.create_index(op.f("ix_trial_column_key"), "trial_column", ["key"])
    for name in ("score", "seconds"):
        op.add_column("trial", sa.Column(name, sa.Float(53), nullable=True))
    for at in range(_LABELS):
        op.add_column("trial", sa.Column(f"label_{at}", sa.String(), nullable=True))
    for at in range(_NUMBERS):
        op.add_column("trial", sa.Column(f"number_{at}", sa.Float(53), nullable=True))
    _notes()
    connection = op.get_bind()
    for sweep in connection.execute(sa.select(sa.table("sweep", sa.column("id")).c.id)).scalars().all():
        _Filled(connection, sweep).write()


def _notes() -> None:
    where = (
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("entity", sa.Integer(), nullable=False),
    )
    op.create_table(
        "note",
        *(column._copy() for column in where),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("changed", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_note_sweep_id")),
        sa.PrimaryKeyConstraint("kind", "sweep_id", "entity", name=op.f("pk_note")),
    )
    op.create_table(
        "tag",
        *(column._copy() for column in where),
        sa.Column("tag", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_tag_sweep_id")),
        sa.PrimaryKeyConstraint("kind", "sweep_id", "entity", "tag", name=op.f("pk_tag")),
    )
    op.create_index(op.f("ix_note_sweep_id"), "note", ["sweep_id"])
    op.create_index(op.f("ix_tag_tag"), "tag", ["tag"])
    op.create_index(op.f("ix_tag_sweep_id"), "tag", ["sweep_id"])


def _table(name: str, *columns: str) -> sa.TableClause:
    json = {"labels", "repeat_labels", "metrics"}
    return sa.table(name, *(sa.column(one, sa.JSON) if one in json else sa.column(one) for one in columns))


_cell = _table("cell", "sweep_id", "cell", "labels")
_candidate = _table("candidate", "sweep_id", "cell", "candidate", "labels")
_training = _table("training", "id", "metrics", "score", "seconds")
_trial = _table(
    "trial", "id", "sweep_id", "cell", "candidate", "repeat_labels", "training_id", "state", "score", "seconds",
    *(f"label_{at}" for at in range(_LABELS)), *(f"number_{at}" for at in range(_NUMBERS)),
)
_column = _table("trial_column", "sweep_id", "key", "role", "label", "number")


class _Filled:
    """One sweep, whose keys get their places as its trials name them."""

    def __init__(self, connection: sa.Connection, sweep: int) -> None:
        self.connection, self.sweep = connection, sweep
        self.role: dict[str, str] = {}
        self.label: dict[str, int | None] = {}
        self.number: dict[str, int | None] = {}

    def write(self) -> None:
        mine = (_cell.c.sweep_id == self.sweep, _candidate.c.sweep_id == self.sweep)
        cells = {row.cell: row.labels for row in self.connection.execute(sa.select(_cell).where(mine[0]))}
        tuned = {
            (row.cell, row.candidate): row.labels
            for row in self.connection.execute(sa.select(_candidate).where(mine[1]))
        }
        columns = (
            _trial.c.id, _trial.c.cell, _trial.c.candidate, _trial.c.repeat_labels, _trial.c.state,
            _training.c.metrics, _training.c.score, _training.c.seconds,
        )
        query = sa.select(*columns).join(_training, _training.c.id == _trial.c.training_id)
        query = query.where(_trial.c.sweep_id == self.sweep).order_by(_trial.c.id).limit(_CHUNK)
        last = 0
        while rows := self.connection.execute(query.where(_trial.c.id > last)).all():
            made: list[dict[str, Any]] = []
            for row in rows:
                values: dict[str, Any] = {"its_id": row.id, **self.labels("compare", cells[row.cell])}
                values |= self.labels("tune", tuned[row.cell, row.candidate])
                values |= self.labels("repeat", row.repeat_labels)
                if row.state == "finished":
                    values |= {"score": row.score, "seconds": row.seconds, **self.metrics(row.metrics or {})}
                made.append(values)
            keys = dict.fromkeys(key for one in made for key in one)
            setting: dict[str, Any] = {key: sa.bindparam(key) for key in keys if key != "its_id"}
            if setting:
                updating = sa.update(_trial).where(_trial.c.id == sa.bindparam("its_id")).values(setting)
                self.connection.execute(updating, [{key: one.get(key) for key in keys} for one in made])
            last = rows[-1].id
        columns_of = [
            {"sweep_id": self.sweep, "key": key, "role": role, "label": self.label[key], "number": self.number[key]}
            for key, role in self.role.items()
        ]
        if columns_of:
            self.connection.execute(sa.insert(_column), columns_of)

    def labels(self, role: str, labels: dict[str, str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, label in labels.items():
            number = _number(label)
            if key not in self.role:
                self.role[key], self.number[key] = role, None
                self.label[key] = _free(self.label, _LABELS)
            if self.role[key] != role:
                continue
            if number is not None and self.number[key] is None:
                self.number[key] = _free(self.number, _NUMBERS)
            if self.label[key] is not None:
                values[f"label_{self.label[key]}"] = label
            if self.number[key] is not None:
                values[f"number_{self.number[key]}"] = number
        return values

    def metrics(self, metrics: dict[str, float | None]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key in sorted(metrics, key=_rank):
            if key not in self.role:
                self.role[key], self.label[key], self.number[key] = "metric", None, _free(self.number, _NUMBERS)
            if self.role[key] == "metric" and self.number[key] is not None:
                values[f"number_{self.number[key]}"] = metrics[key]
        return values


def _number(label: str) -> float | None:
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in label else None


def _free(taken: dict[str, int | None], most: int) -> int | None:
    used = {place for place in taken.values() if place is not None}
    return len(used) if len(used) < most else None


def _rank(key: str) -> tuple[int, str]:
    return next((at for at, prefix in enumerate(_FIRST) if key.startswith(prefix)), len(_FIRST)), key
