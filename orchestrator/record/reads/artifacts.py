"""Which files a trial's training has kept, and in whose folder of the storage they lie."""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.schema import attempt, training
from orchestrator.views.errors import NotFoundError
from orchestrator.views.lifecycle import TrialState


@dataclass(frozen=True, slots=True)
class Kept:
    """The files that a finished training names in its result."""

    folder: str  # of the attempt that finished, relative to the storage
    names: tuple[str, ...]  # as the worker wrote them: nothing to trust


class ArtifactReader(Access):
    """Reads what trainings have kept."""

    def of(self, trials: Iterable[int]) -> dict[int, Kept]:
        """By trial, the files of those whose training has finished."""
        table = schema.trial
        source = training.alias()  # whose weights were evaluated, and whose files the result names
        kept = sa.func.coalesce(source.c.id, training.c.id)
        finished = sa.and_(attempt.c.training_id == kept, attempt.c.state == "finished")
        artifacts: dict[int, Kept] = {}
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trials), 200):
                names = training.c.result["artifacts"].label("names")
                query = (
                    sa.select(
                        table.c.id, sa.func.coalesce(source.c.uid, training.c.uid).label("uid"), attempt.c.number, names
                    )
                    .join(training, training.c.id == table.c.training_id)
                    .outerjoin(source, source.c.id == training.c.source)
                    .join(attempt, finished)
                    .where(table.c.id.in_(chunk), training.c.state == TrialState.FINISHED)
                    .order_by(attempt.c.number)
                )
                for row in connection.execute(query):
                    files = tuple(name for name in row.names or () if isinstance(name, str))
                    artifacts[row.id] = Kept(f"{row.uid}/{row.number}", files)
        return artifacts

    def of_trial(self, trial: int) -> Kept | None:
        """The same of one trial, none where its training has not finished; raises NotFoundError."""
        with self._database.reading() as connection:
            if connection.execute(sa.select(schema.trial.c.id).where(schema.trial.c.id == trial)).first() is None:
                raise NotFoundError(f"no trial {trial}")
        return self.of([trial]).get(trial)
