"""Specs on their way in: what one would become, and the sweep that it is queued as."""

import hashlib
import uuid
from collections.abc import Sequence

from orchestrator.host import disk
from orchestrator.plan.missing_data import absences
from orchestrator.plan.needs import Contents, agreed
from orchestrator.plan.reading.lines import lines
from orchestrator.plan.unschedulable import crowded, shortages
from orchestrator.plan.validated import Checked, read, refresh
from orchestrator.publish.published import library
from orchestrator.record.store import Store
from orchestrator.record.writes.submissions import NewSweep
from orchestrator.service.forecast import forecast
from orchestrator.service.outlook import MOST_TRIALS
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
from orchestrator.views.submissions import Preview, Submitted
from workers.catalog import Catalog, Problem


def require_disk_room(settings: Settings) -> None:
    """Raise UnavailableError while a disk has too little room for what a sweep would write."""
    if troubles := disk.troubles(settings.places):
        raise UnavailableError(disk.held(troubles))


class SpecSubmissions:
    """Checks specs and queues them."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog

    def submit(
        self,
        body: bytes,
        idempotency_key: str | None = None,
        actor: str | None = None,
        priority: int = 0,
        project: str | None = None,
    ) -> Submitted:
        """Queue the sweep that `body` specifies, in a project; nothing is stored for a refused spec.

        Raises NotFoundError and NotAllowedError of the project, ConflictError where too many trials of the owner would
        wait, and UnavailableError while a disk has too little room.
        """
        checked = self._read(body)
        require_disk_room(self._settings)
        submitted = self._store.submissions.add_sweep(
            NewSweep(
                name=checked.spec.name,
                uid=str(uuid.uuid4()),
                text=body.decode("utf-8-sig"),
                spec=checked.spec.model_dump(mode="json"),
                total=checked.plan.trial_count,
                actor=actor,
                idempotency_key=idempotency_key,
                body_hash=hashlib.sha256(body).hexdigest(),
                priority=priority,
                project=project,
                most_waiting=self._settings.owner_trials,
            )
        )
        told = {"warnings": self._warnings(checked), "notes": list(checked.notes)}
        if checked.plan.trial_count > MOST_TRIALS:
            return submitted.model_copy(update=told)
        found = forecast(checked, self._store, self._catalog, project)
        return submitted.model_copy(update=told | {"cost": found.cost, "reuse": found.reuse})

    def preview(self, body: bytes, project: str | None = None) -> Preview:
        """What a spec would become in a project, how much is known already, and what the rest would cost.

        Raises NotFoundError of the project.
        """
        checked = self._read(body)
        told = forecast(checked, self._store, self._catalog, project)
        return told.model_copy(update={"warnings": self._warnings(checked)})

    def lines(self, body: bytes, problems: Sequence[Problem]) -> list[int | None]:
        """The line of a refused spec's text that each of its problems is of; none where it cannot be told."""
        return lines(body, problems)

    def _read(self, body: bytes) -> Checked:
        """The spec checked, with the content that the nodes' data had when they were last looked at."""
        refresh(self._catalog)
        contents = Contents(agreed(self._store.data.findings()))
        return read(body, self._catalog, library.PrintedLines(), contents)

    def _warnings(self, checked: Checked) -> list[str]:
        """What would wait; where trainings run in the conductor's process, every slot is that."""
        inline = self._settings.engine == "inline"
        nodes = [] if inline else self._store.capacity.nodes()
        slots = [*shortages(checked.spec, nodes), *crowded(checked.spec, checked.plan.trial_count, nodes)]
        return slots + absences(checked.spec, self._catalog, self._store.data.findings())
