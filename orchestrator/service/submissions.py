"""Specs on their way in: what one would become, and the sweep that it is queued as."""

import hashlib
import time
import uuid
from collections.abc import Sequence
from typing import Final

from orchestrator.host import disk
from orchestrator.plan.data import absences, crowded, shortages
from orchestrator.plan.needs import Contents, agreed, counted, needs
from orchestrator.plan.validated import Checked, read, refresh
from orchestrator.plan.yaml import lines
from orchestrator.publish import papers
from orchestrator.record.store import Store
from orchestrator.record.writes.submissions import NewSweep
from orchestrator.service.forecast import forecast
from orchestrator.service.outlook import MOST_TRIALS
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
from orchestrator.views.nodes import Inspected
from orchestrator.views.submissions import Preview, Submitted
from workers.catalog import Catalog, Need, Problem


def require_disk_room(settings: Settings) -> None:
    """Raise UnavailableError while a disk has too little room for what a sweep would write."""
    if troubles := disk.troubles(settings.places):
        raise UnavailableError(disk.held(troubles))


LOOK_SECONDS: Final = 5.0
"""How long a submit waits for the nodes to look at its data."""
LOOK_PAUSE: Final = 0.1


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
        """The spec checked, also against what the nodes' data hold now, and expanded for that content."""
        refresh(self._catalog)
        checked = read(body, self._catalog, papers.PrintedLines())
        wanted = [one for one in needs(checked.spec, self._catalog) if one.held]
        if not wanted:
            return checked
        found, fresh = self._looked(wanted)
        catalog = self._catalog.counting(counted(found)) if fresh else self._catalog
        return read(body, catalog, papers.PrintedLines(), Contents(agreed(found)))

    def _looked(self, wanted: Sequence[Need]) -> tuple[list[Inspected], bool]:
        """What the nodes have of some needs, and whether they looked just now; else as they saw it last."""
        keys = {one.key for one in wanted}
        looks = self._settings.inspection is not None and self._store.lease.conducted()
        asked = self._store.submissions.ask_look(wanted) if looks else None
        until = time.monotonic() + LOOK_SECONDS
        while True:
            found = [one for one in self._store.data.findings() if one.need.key in keys]
            fresh = [one for one in found if asked is not None and one.looked >= asked]
            if fresh == found and keys <= {one.need.key for one in fresh}:
                return found, True
            if asked is None or time.monotonic() > until:
                return found, False
            time.sleep(LOOK_PAUSE)

    def _warnings(self, checked: Checked) -> list[str]:
        """What would wait; where trainings run in the conductor's process, every slot is that."""
        inline = self._settings.engine == "inline"
        nodes = [] if inline else self._store.capacity.nodes()
        slots = [*shortages(checked.spec, nodes), *crowded(checked.spec, checked.plan.trial_count, nodes)]
        return slots + absences(checked.spec, self._catalog, self._store.data.findings())
