"""The files, curves and logs of attempts: their reads, and the writes of curves and logs."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.columns import finite_or_none, storable
from orchestrator.record.database import Access, chunked, insertion
from orchestrator.record.schema import attempt, log, metric, training, trial
from orchestrator.record.trainings import with_source
from orchestrator.record.trials import of_trial
from orchestrator.views.errors import NotFoundError
from orchestrator.views.operations import SYSTEM
from orchestrator.views.states import TRIAL_ENDED, TrialState
from orchestrator.views.trials import Curve, LogView
from workers.contract import KEPT_FILES, Progress


@dataclass(frozen=True, slots=True)
class Kept:
    """The files that a finished training has kept in the storage, as its result names them."""

    folder: str  # of the attempt that finished, relative to the storage
    names: tuple[str, ...]  # as the worker wrote them: not trusted
    evaluated: "Kept | None" = None  # the files of the evaluation, if the training is one

    def holder(self, name: str) -> "Kept | None":
        """The training or its evaluation, whichever kept a file of this name; `None` if neither did.

        The evaluation comes first, since it knows more metrics.
        """
        return next((kept for kept in (self.evaluated, self) if kept is not None and name in kept.names), None)

    @property
    def weights(self) -> str | None:
        """The name of the file of the training's weights, if it has kept any."""
        return next((name for name in KEPT_FILES if name in self.names), None)

    @property
    def every(self) -> tuple[str, ...]:
        """The distinct names of all files of a training and its evaluation."""
        return tuple(dict.fromkeys((*self.names, *(self.evaluated.names if self.evaluated else ()))))


class ArtifactReader(Access):
    """Reads the names of the files that trainings have kept."""

    def of(self, trials: Iterable[int]) -> dict[int, Kept]:
        """The kept files of finished trainings, by the id of the trial."""
        source = training.alias()  # whose weights were evaluated, and whose files the result names
        kept = sa.func.coalesce(source.c.id, training.c.id)
        finished = sa.and_(attempt.c.training_id == kept, attempt.c.state == "finished")
        own = attempt.alias()  # of the evaluation
        evaluated = sa.and_(own.c.training_id == training.c.id, own.c.state == "finished", source.c.id.is_not(None))
        artifacts: dict[int, Kept] = {}
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 200):
                names = training.c.result["artifacts"].label("names")
                written = training.c.result["provenance"]["evaluated"]["artifacts"].label("written")
                query = (
                    sa.select(
                        trial.c.id, sa.func.coalesce(source.c.uid, training.c.uid).label("uid"), attempt.c.number,
                        names, training.c.uid.label("own"), own.c.number.label("own_number"), written,
                    )
                    .join(training, training.c.id == trial.c.training_id)
                    .outerjoin(source, source.c.id == training.c.source)
                    .join(attempt, finished)
                    .outerjoin(own, evaluated)
                    .where(trial.c.id.in_(chunk), training.c.state == TrialState.FINISHED)
                    .order_by(attempt.c.number, own.c.number)
                )  # fmt: skip
                for row in connection.execute(query):
                    more = Kept(f"{row.own}/{row.own_number}", _files(row.written)) if row.own_number else None
                    artifacts[row.id] = Kept(f"{row.uid}/{row.number}", _files(row.names), more)
        return artifacts

    def of_trial(self, trial: int) -> Kept | None:
        """The kept files of a trial's training, or `None` if it has not finished; raises NotFoundError."""
        if not self._exists(sa.select(schema.trial.c.id).where(schema.trial.c.id == trial)):
            raise NotFoundError(f"no trial {trial}")
        return self.of([trial]).get(trial)


def _files(names: Any) -> tuple[str, ...]:
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


Points = list[tuple[int, float | None]]
"""(step, value) of a curve; `None` for a value that is not a number."""
Clock = list[tuple[int, float]]
"""(step, seconds trained until then), both rising."""


class CurveReader(Access):
    """Reads the curves of trainings: values of losses and metrics by step."""

    def of(self, trial: int) -> list[Curve]:
        """All curves of a trial's training, final or as reported so far; raises NotFoundError."""
        with self._database.reading() as connection:
            merged = _curves(connection, of_trial(connection, trial, schema.trial.c.training_id))
        return [Curve(key=key, points=points) for key, points in sorted(merged.items())]

    def of_trials(self, trials: Iterable[int], keys: Collection[str]) -> dict[int, dict[str, Points]]:
        """The curves with these keys of several trials, by the trial's id; unknown trials are left out."""
        found: dict[int, dict[str, Points]] = {}
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 500):
                query = sa.select(trial.c.id, trial.c.training_id).where(trial.c.id.in_(chunk))
                for row in connection.execute(query).all():
                    # One training at a time: a result may be a mebibyte.
                    curves = _curves(connection, row.training_id, keys)
                    found[row.id] = {key: points for key, points in curves.items() if key in keys}
        return found

    def keys(self, trials: Iterable[int]) -> list[str]:
        """The keys of all curves that the trials have, such as `validation/map@r`; usage of machines comes last."""
        table, found = schema.trial, set[str]()
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 100):
                query = sa.select(training.c.id, training.c.source, training.c.result["curves"].label("curves"))
                query = query.join(table, table.c.training_id == training.c.id).where(table.c.id.in_(chunk))
                rows = connection.execute(query).all()
                found.update(key for row in rows for key in row.curves or {})
                ids = {row.id for row in rows} | {row.source for row in rows if row.source is not None}
                reported = sa.select(metric.c.key).distinct().join(attempt, attempt.c.id == metric.c.attempt_id)
                found.update(connection.scalars(reported.where(attempt.c.training_id.in_(ids))))
        return sorted(found, key=lambda key: (key.startswith(SYSTEM), key))

    def clocks(self, trials: Iterable[int]) -> dict[int, Clock]:
        """The training time in seconds at each reported step, by the trial's id."""
        columns = (trial.c.id, trial.c.training_id, training.c.source, training.c.step, training.c.seconds)
        by_trial: dict[int, Clock] = {}
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 500):
                query = sa.select(*columns).join(training, training.c.id == trial.c.training_id)
                for row in connection.execute(query.where(trial.c.id.in_(chunk))).all():
                    trained = row.training_id if row.source is None else row.source
                    clock = _clock(connection, trained)
                    if row.seconds and row.step and (not clock or clock[-1][0] < row.step):
                        clock.append((row.step, max(row.seconds, clock[-1][1] if clock else 0.0)))
                    by_trial[row.id] = [(0, 0.0), *clock] if clock else []
        return by_trial


def _clock(connection: sa.Connection, training_id: int) -> Clock:
    """Steps with the seconds that attempts had run by then; the time between attempts does not count."""
    began = (attempt.c.id, attempt.c.started, attempt.c.ended, attempt.c.number)
    query = (
        sa.select(*began, metric.c.step, sa.func.min(metric.c.at).label("at"))
        .join(attempt, attempt.c.id == metric.c.attempt_id)
        .where(attempt.c.training_id == training_id)
        .group_by(*began, metric.c.step)
        .order_by(attempt.c.number, metric.c.step)
    )
    clock: Clock = []
    before, last, seconds = 0.0, None, 0.0
    for row in connection.execute(query):
        if last is not None and row.id != last:
            before = seconds
        last = row.id
        seconds = before + max(0.0, (row.at - row.started).total_seconds())
        while clock and clock[-1][0] >= row.step:  # an attempt resumes from a checkpoint before the last report
            clock.pop()
        clock.append((row.step, seconds))
    return clock


def _curves(connection: sa.Connection, training_id: int, keys: Collection[str] | None = None) -> dict[str, Points]:
    """All curves of a training, or at least those with the keys."""
    result = connection.scalar(sa.select(training.c.result).where(training.c.id == training_id))
    curves = (result or {}).get("curves") or {}
    found = {key: [(int(step), value) for step, value in points] for key, points in curves.items()}
    if keys is not None and found.keys() >= set(keys):
        return found
    # The reports may have keys that the result lacks. If two attempts passed a step, the later attempt counts.
    query = (
        sa.select(metric.c.key, metric.c.step, metric.c.value)
        .join(attempt, attempt.c.id == metric.c.attempt_id)
        .where(attempt.c.training_id.in_(with_source(connection, training_id)))
        .order_by(attempt.c.training_id, attempt.c.number)
    )
    if keys is not None:
        query = query.where(metric.c.key.in_(keys))
    points: dict[str, dict[int, float | None]] = {}
    for row in connection.execute(query):
        points.setdefault(row.key, {})[row.step] = row.value
    return {key: sorted(by_step.items()) for key, by_step in points.items()} | found


MAX_LOG_PAGE: Final = 262_144
"""Characters of a log in one answer."""


class LogReader(Access):
    """Reads the log text that trainings wrote."""

    def of(self, trial: int, offset: int = 0) -> LogView:
        """At most 256 Ki characters of a trial's log from an offset, which counts from the end if negative.

        The log of the training is followed by the log of its evaluation. Raises NotFoundError.
        """
        columns = sa.select(training.c.id, training.c.state, training.c.log_length)
        evaluation = sa.select(schema.trial.c.evaluation_id).where(schema.trial.c.id == trial)
        with self._database.reading() as connection:
            ids = with_source(connection, of_trial(connection, trial, schema.trial.c.training_id))
            evaluated = connection.scalar(evaluation)
            ids += [] if evaluated is None else [evaluated]
            rows = [connection.execute(columns.where(training.c.id == number)).one() for number in ids]
            length = sum(row.log_length for row in rows)
            if offset < 0:
                offset = max(0, length + offset)
            text, before = "", 0
            for row in rows:
                if before <= offset + len(text) < before + row.log_length and len(text) < MAX_LOG_PAGE:
                    text += _log_text(connection, row.id, offset + len(text) - before)
                before += row.log_length
        text = text[:MAX_LOG_PAGE]
        following = offset + len(text)
        complete = all(row.state in TRIAL_ENDED for row in rows) and following >= length
        return LogView(trial=trial, text=text, offset=offset, next_offset=following, complete=complete)


def _log_text(connection: sa.Connection, training_id: int, offset: int) -> str:
    query = (
        sa.select(log.c.start, log.c.text)
        .join(attempt, attempt.c.id == log.c.attempt_id)
        .where(attempt.c.training_id == training_id)
        .where(log.c.start + sa.func.length(log.c.text) > offset, log.c.start < offset + MAX_LOG_PAGE)
        .order_by(log.c.start)
    )
    rows = connection.execute(query).all()
    if not rows:
        return ""
    begin = offset - rows[0].start
    return "".join(row.text for row in rows)[begin : begin + MAX_LOG_PAGE]


MAX_LOG_BYTES: Final = 10 * 1_048_576
"""The size of an attempt's log."""
WRITTEN_LAST: Final = 2**31 - 1
"""The `seq` of our own line at the end of an attempt's log."""
_CUT_NOTE = "\n[the log is cut here: it passed 10 MiB]\n"

MOST_POINTS: Final = 2_000
"""Points of a `train/...` or `system/...` curve that an attempt keeps; some come several times a second."""
LOOK_EVERY: Final = 500
"""Messages after which curves are thinned."""


def append_points(connection: sa.Connection, attempt_id: int, seq: int, progress: Progress) -> None:
    """Add the reported metrics of a step to the curves of an attempt; existing points are kept.

    Long `train/...` and `system/...` curves are thinned evenly. Evaluations are all kept: early stopping counts them.
    """
    if not progress.metrics:
        return
    now = datetime.now(UTC)
    rows = [
        {"attempt_id": attempt_id, "key": key, "step": progress.step, "value": finite_or_none(value), "at": now}
        for key, value in progress.metrics.items()
    ]
    adding = insertion(connection, metric).on_conflict_do_nothing(index_elements=["attempt_id", "key", "step"])
    connection.execute(adding, rows)
    if seq % LOOK_EVERY == 0:
        for key in progress.metrics:
            if key.startswith(("train/", SYSTEM)):
                _thin(connection, attempt_id, key)


def _thin(connection: sa.Connection, attempt_id: int, key: str) -> None:
    """Keep the first point of each of so many equal intervals, and the last point."""
    own = (metric.c.attempt_id == attempt_id, metric.c.key == key)
    rows = connection.execute(sa.select(metric.c.id, metric.c.step).where(*own).order_by(metric.c.step)).all()
    if len(rows) <= MOST_POINTS:
        return
    width = (rows[-1].step - rows[0].step) / (MOST_POINTS // 2)
    first = {int((row.step - rows[0].step) / width): row.id for row in reversed(rows)}
    kept = {*first.values(), rows[-1].id}
    for chunk in chunked([row.id for row in rows if row.id not in kept], 500):
        connection.execute(sa.delete(metric).where(metric.c.id.in_(chunk)))


def append_log(connection: sa.Connection, attempt: sa.Row[Any], seq: int, text: str) -> int:
    """Append a chunk of text to a training's log; returns the size of the attempt's log in bytes."""
    if attempt.log_bytes > MAX_LOG_BYTES:
        return int(attempt.log_bytes)
    encoded = storable(text).encode()
    size = attempt.log_bytes + len(encoded)
    if size > MAX_LOG_BYTES:
        size = MAX_LOG_BYTES + 1  # says that the note is written
        encoded = encoded[: MAX_LOG_BYTES - attempt.log_bytes]
        text = encoded.decode("utf-8", "ignore") + _CUT_NOTE
    write_log(connection, attempt.training_id, attempt.id, seq, storable(text))
    return int(size)


def write_log(connection: sa.Connection, training_id: int, attempt_id: int, seq: int, text: str) -> None:
    """Append text to a training's log.

    `seq` numbers the chunks of an attempt; 0 is the first line, which the conductor writes.
    """
    longer = sa.update(training).where(training.c.id == training_id)
    longer = longer.values(log_length=training.c.log_length + len(text)).returning(training.c.log_length)
    length = connection.execute(longer).scalar_one()
    row = {"attempt_id": attempt_id, "seq": seq, "start": length - len(text), "text": text}
    connection.execute(sa.insert(log), [row])
