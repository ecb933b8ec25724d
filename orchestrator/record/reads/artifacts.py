"""Which files a trial's training has kept, and in whose folder of the storage they lie."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.schema import attempt, training
from orchestrator.views.errors import NotFoundError
from orchestrator.views.states import TrialState


@dataclass(frozen=True, slots=True)
class Kept:
    """The files that a finished training names in its result."""

    folder: str  # of the attempt that finished, relative to the storage
    names: tuple[str, ...]  # as the worker wrote them: nothing to trust
    evaluated: "Kept | None" = None  # what the evaluation itself wrote, where it stands for a training

    def holder(self, name: str) -> "Kept | None":
        """Where a file lies, that of the evaluation first, which knows more metrics; none: nowhere."""
        return next((one for one in (self.evaluated, self) if one is not None and name in one.names), None)

    @property
    def every(self) -> tuple[str, ...]:
        """The names of all files, each once."""
        return tuple(dict.fromkeys((*self.names, *(self.evaluated.names if self.evaluated else ()))))


class ArtifactReader(Access):
    """Reads what trainings have kept."""

    def of(self, trials: Iterable[int]) -> dict[int, Kept]:
        """By trial, the files of those whose training has finished."""
        table = schema.trial
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
                        table.c.id, sa.func.coalesce(source.c.uid, training.c.uid).label("uid"), attempt.c.number,
                        names, training.c.uid.label("own"), own.c.number.label("own_number"), written,
                    )
                    .join(training, training.c.id == table.c.training_id)
                    .outerjoin(source, source.c.id == training.c.source)
                    .join(attempt, finished)
                    .outerjoin(own, evaluated)
                    .where(table.c.id.in_(chunk), training.c.state == TrialState.FINISHED)
                    .order_by(attempt.c.number, own.c.number)
                )  # fmt: skip
                for row in connection.execute(query):
                    more = Kept(f"{row.own}/{row.own_number}", _files(row.written)) if row.own_number else None
                    artifacts[row.id] = Kept(f"{row.uid}/{row.number}", _files(row.names), more)
        return artifacts

    def of_trial(self, trial: int) -> Kept | None:
        """The same of one trial, none where its training has not finished; raises NotFoundError."""
        with self._database.reading() as connection:
            if connection.execute(sa.select(schema.trial.c.id).where(schema.trial.c.id == trial)).first() is None:
                raise NotFoundError(f"no trial {trial}")
        return self.of([trial]).get(trial)


def _files(said: Any) -> tuple[str, ...]:
    return tuple(name for name in said if isinstance(name, str)) if isinstance(said, list) else ()
