"""What a client can ask for: submit, look, cancel, retry, export. Reads the store, appends requests, trains nothing."""

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import NotFoundError, UnavailableError
from orchestrator.links import Links
from orchestrator.plan import check, document, grid, schema
from orchestrator.plan.grid import Plan
from orchestrator.plan.spec import Spec
from orchestrator.publish import figures, formats, table
from orchestrator.record.store import NewSweep, Store
from orchestrator.settings import Settings
from orchestrator.trial import SweepOutcomes
from orchestrator.views import (
    Check,
    Curve,
    GridCell,
    LogView,
    Page,
    Preview,
    Readiness,
    Rendered,
    Submitted,
    SweepSummary,
    SweepView,
    TrialSummary,
    TrialView,
)
from workers import catalog as catalogs
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Checked:
    """A spec without problems and what it expands to."""

    spec: Spec
    plan: Plan


def read(body: bytes, catalog: Catalog) -> Checked:
    """The spec in `body`, checked and expanded; raises InvalidSpecError with every problem, or TooLargeError."""
    spec = check.check(document.parse(body), catalog)
    return Checked(spec, grid.expand(spec, catalog))


def preview_offline(body: bytes, settings: Settings) -> Preview:
    """What a spec would become, asking no server and no database."""
    return _preview(read(body, catalogs.load(settings.parts)), known=None)


def _preview(checked: Checked, known: Store | None) -> Preview:
    fingerprints: dict[str, int] = {}
    for trial in checked.plan.trials():
        fingerprints[trial.fingerprint] = fingerprints.get(trial.fingerprint, 0) + 1
    reuse = known is not None and not checked.spec.fresh
    cached = known.known(fingerprints) if known is not None and reuse else set()
    return Preview(
        name=checked.spec.name,
        cells=len(checked.plan.cells),
        candidates=len(checked.plan.candidates),
        trials=checked.plan.trial_count,
        trainings=len(fingerprints),
        cached=sum(fingerprints[fingerprint] for fingerprint in cached),
    )


class Service:
    """One object behind the routes and the pages; safe to share between threads."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog
        self._links = Links(settings.mlflow_public_url or settings.mlflow_url)

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """The service over the settings' database, which is made or migrated if need be."""
        settings.resolved_home.mkdir(parents=True, exist_ok=True)
        return cls(settings, Store.open(settings.database), catalogs.load(settings.parts))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def submit(self, body: bytes, idempotency_key: str | None = None, actor: str | None = None) -> Submitted:
        """Queue the sweep that `body` specifies; nothing is stored for a refused spec."""
        checked = read(body, self._catalog)
        return self._store.add_sweep(
            NewSweep(
                name=checked.spec.name,
                uid=str(uuid.uuid4()),
                text=body.decode("utf-8-sig"),
                spec=checked.spec.model_dump(mode="json"),
                total=checked.plan.trial_count,
                actor=actor,
                idempotency_key=idempotency_key,
                body_hash=hashlib.sha256(body).hexdigest(),
            )
        )

    def preview(self, body: bytes) -> Preview:
        """What a spec would become and how much of it is known already."""
        return _preview(read(body, self._catalog), self._store)

    def sweeps(self, state: str | None, name: str | None, cursor: str | None, limit: int) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name."""
        return self._store.sweeps(state, name, cursor, limit)

    def sweep(self, sweep: int) -> SweepView:
        """One sweep whole."""
        found = self._store.sweep(sweep)
        experiment = self._store.experiment_id(sweep)
        return found.model_copy(update={"mlflow_url": self._links.to(experiment)})

    def grid(self, sweep: int) -> list[GridCell]:
        """A sweep's trials by cell, candidate and repeat."""
        experiment, runs = self._store.experiment_id(sweep), self._store.cell_runs(sweep)
        return [
            cell.model_copy(update={"mlflow_url": self._links.to(experiment, runs.get(cell.index))})
            for cell in self._store.grid(sweep)
        ]

    def cancel(self, sweep: int, actor: str | None = None) -> SweepView:
        """Ask for a sweep's trials to be cancelled; the conductor does it."""
        self._store.add_request("cancel", sweep, None, actor)
        return self.sweep(sweep)

    def retry(self, sweep: int, actor: str | None = None, trial: int | None = None) -> SweepView:
        """Ask for a sweep's failed and cancelled trials, or one of them, to be tried again."""
        self._store.add_request("retry", sweep, trial, actor)
        return self.sweep(sweep)

    def trials(
        self, sweep: int, state: str | None, cell: int | None, cursor: str | None, limit: int
    ) -> Page[TrialSummary]:
        """A sweep's trials in their order."""
        return self._store.trials(sweep, state, cell, cursor, limit)

    def trial(self, trial: int) -> TrialView:
        """One trial whole."""
        found = self._store.trial(trial)
        run = self._store.run_id("trial", found.sweep, trial)
        link = self._links.to(self._store.experiment_id(found.sweep), run) if run else None
        return found.model_copy(update={"mlflow_url": link})

    def curves(self, trial: int) -> list[Curve]:
        """A trial's curves, one a metric."""
        return self._store.curves(trial)

    def curves_figure(self, trial: int) -> dict[str, Any]:
        """A trial's curves as a Vega-Lite figure."""
        return figures.curves(self._store.curves(trial), f"Trial {trial}", self._catalog)

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from a character offset on."""
        return self._store.log(trial, offset)

    def table(self, sweep: int, name: str, format: str, show_tuned: bool | None = None) -> Rendered:  # noqa: A002
        """A table of a sweep in one of the formats, computed from what is known now."""
        outcomes = self._outcomes(sweep, name)
        return formats.render(table.build(outcomes, name, self._catalog, show_tuned=show_tuned), format)

    def table_html(self, sweep: int, name: str) -> str:
        """A table as a fragment of HTML."""
        return self.table(sweep, name, "html").content.decode()

    def catalog(self) -> Catalog:
        """The parts that exist."""
        return self._catalog

    def json_schema(self) -> dict[str, Any]:
        """The JSON schema of a spec."""
        return schema.json_schema(self._catalog)

    def vega(self) -> bytes:
        """The scripts that draw figures in a browser without a network."""
        return figures.vega_bundle().encode()

    def ready(self) -> Readiness:
        """Whether the database answers and a conductor is alive."""
        checks = list(self._checks())
        return Readiness(ok=all(check.ok for check in checks), checks=checks)

    def _checks(self) -> Iterable[Check]:
        try:
            self._store.ping()
        except UnavailableError as error:
            yield Check(name="database", ok=False, detail=str(error))
            return
        yield Check(name="database", ok=True, detail="answers")
        alive = self._store.conducted()
        yield Check(
            name="conductor",
            ok=alive,
            detail="holds the lease" if alive else "none holds the lease; start one with `metricsweep serve`",
        )

    def _outcomes(self, sweep: int, name: str) -> SweepOutcomes:
        outcomes = self._store.outcomes(sweep)
        if name not in outcomes.spec.get("tables", {}):
            known = ", ".join(sorted(outcomes.spec.get("tables", {}))) or "none"
            raise NotFoundError(f"sweep {sweep} has no table {name!r}; its tables: {known}")
        return outcomes
