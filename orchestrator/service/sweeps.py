"""Sweeps: submits, changes, annotates and shows them."""

import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from orchestrator.cost.estimate import Cost
from orchestrator.host import disk
from orchestrator.host.logs import one_line, printable
from orchestrator.plan.data import absences, crowded, shortages
from orchestrator.plan.edit import with_seeds
from orchestrator.plan.grid import Contents, agreed, counted, extension, needs
from orchestrator.plan.validated import Checked, read, refresh
from orchestrator.plan.yaml import lines
from orchestrator.publish import figures, papers
from orchestrator.publish.tables import cell as cells
from orchestrator.publish.tables.resolution import ResolutionStep, resolution_step
from orchestrator.record.requests import ADDED, NewSweep, RequestKind
from orchestrator.record.store import Store
from orchestrator.service.forecast import MOST_TRIALS, Outlook, forecast
from orchestrator.settings import Settings
from orchestrator.spec.spec import Spec
from orchestrator.views.accounts import Allowed
from orchestrator.views.errors import ConflictError, NotFoundError, UnavailableError
from orchestrator.views.evidence import ResolutionBudget, ResolutionRound, ResolutionView
from orchestrator.views.operations import Inspected, MirrorView
from orchestrator.views.pages import LONGEST_NOTE, LONGEST_TAG, Page, Remark, Remarked, TagChange
from orchestrator.views.runs import QuerySource, SweepOutcomes
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import GridCell, Links, PartUse, Preview, RequestView, Submitted, SweepSummary, SweepView
from orchestrator.views.tables import CellView, ComparedCell
from workers.catalog import Catalog, Need, Problem, unknown


def named(spec: Mapping[str, Any], kind: str, name: str) -> bool:
    """Of a spec as JSON, of whatever release: what is not understood names nothing."""
    if kind == "metric":
        shown = (spec.get("tables"), spec.get("figures"), spec.get("select"), (spec.get("recipe") or {}).get("metrics"))
        return any(text.partition("@")[0] == name for block in shown for text in _texts(block))
    return any(_name(patch.get(kind)) == name for patch in _patches(spec))


def _patches(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield spec.get("recipe") or {}
    for role in ("compare", "tune", "repeat"):
        for groups in (spec.get(role) or {}).values():
            for group in groups:
                yield from (choice.get("patch") or {} for choice in group.get("choices") or ())
    yield from (rule.get("patch") or {} for rule in spec.get("rules") or ())


def _name(part: Any) -> Any:
    return part.get("name") if isinstance(part, Mapping) else part


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for one in node.values():
            yield from _texts(one)
    elif isinstance(node, list):
        for one in node:
            yield from _texts(one)


class RemarkQueries:
    """Answers and changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, kind: Remarked, number: int, cell: int = 0) -> Remark:
        """What is said of a sweep, of a cell of it, or of a trial."""
        return self._store.remarks.of(*self._where(kind, number, cell))

    def put(
        self, where: tuple[Remarked, int, int], note: str | None, tags: TagChange | None, actor: str | None
    ) -> Remark:
        """Set the note, change the tags, or both: none stays as it is. ConflictError where there would be too many."""
        place = self._where(*where)
        text = None if note is None else printable(note.replace("\r\n", "\n").strip())[:LONGEST_NOTE]
        self._store.remarks.put(place, text, tags and _written_out(tags), actor)
        return self._store.remarks.of(*place)

    def _where(self, kind: Remarked, number: int, cell: int) -> tuple[Remarked, int, int]:
        if kind == "trial":
            return kind, self._store.remarks.sweep_of(number), number
        return kind, number, cell if kind == "cell" else number


def _written_out(tags: TagChange) -> TagChange:
    whole = None if tags.tags is None else _words(tags.tags)
    return replace(tags, tags=whole, added=_words(tags.added), removed=_words(tags.removed))


def _words(tags: Sequence[str]) -> list[str]:
    return [one_line(tag.strip())[:LONGEST_TAG].strip() for tag in tags]


class ResolutionCommands:
    """Appends requests for resolutions, and shows them."""

    def __init__(self, store: Store, catalog: Catalog, queries: QuerySource) -> None:
        self._store, self._catalog, self._queries = store, catalog, queries

    def ask(
        self, sweep: int, budget: ResolutionBudget, table: str | None = None, actor: str | None = None
    ) -> RequestView:
        """Ask that a table (the sweep's first one by default) be decided, as far as the budget goes.

        NotFoundError where there is no such table, ConflictError where the sweep cannot be given seeds, nothing of the
        table is compared, or another resolution of the sweep goes on.
        """
        if self._store.resolutions.going(sweep):
            raise ConflictError(f"a resolution of sweep {sweep} goes on; wait for it, or end it: `resolution --halt`")
        name, step = self._step(sweep, table, budget)
        if not step.judged.pairs:
            raise ConflictError(f"{step.said()}; say by `verdicts: {{against: ...}}` of table {name} what is")
        arguments = {"table": name, "budget": budget.model_dump(mode="json", exclude_none=True)}
        number = self._store.submissions.add_request("resolve", sweep, None, actor, arguments)
        return self._store.requests.get(number)

    def halt(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that a resolution have no further round; ConflictError where none goes on."""
        if not self._store.resolutions.going(sweep):
            self._store.sweeps.get(sweep)
            raise ConflictError(f"no resolution of sweep {sweep} goes on")
        return self._store.requests.get(self._store.submissions.add_request("halt", sweep, None, actor))

    def plan(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> ResolutionView:
        """What a resolution would begin with, by what is known now; nothing is asked for. Raises as `ask` does."""
        name, step = self._step(sweep, table, budget)
        first = step.next(1, budget)
        return ResolutionView(
            sweep=sweep, table=name, budget=budget, state="planned", said=_planned(step, first),
            before=step.comparisons(), rounds=[first] if first.cells else [],
        )  # fmt: skip

    def get(self, sweep: int) -> ResolutionView:
        """The last one that was asked of a sweep; NotFoundError where nobody asked for any."""
        found = self.latest(sweep)
        if found is None:
            raise NotFoundError(f"sweep {sweep} has no resolution")
        return found

    def latest(self, sweep: int) -> ResolutionView | None:
        """The same; none where nobody asked for any."""
        found = self._store.resolutions.latest(sweep)
        if found is None or found.state == "ended":
            return found
        return found.model_copy(update={"said": _going(found)})

    def _step(self, sweep: int, table: str | None, budget: ResolutionBudget) -> tuple[str, ResolutionStep]:
        view = self._store.sweeps.get(sweep)
        spec = Spec.model_validate(view.spec)
        if spec.search.adaptive:
            raise ConflictError(f"sweep {sweep} searches adaptively, and such a sweep cannot be extended by seeds")
        with_seeds(view.text.encode(), spec, {}, {})  # raises where seeds cannot be added
        tables = spec.tables
        name = table if table is not None else next(iter(tables), "")
        if name not in tables:
            raise NotFoundError(f"in sweep {sweep}: {unknown('table', name, tables)}")
        outcomes = replace(self._store.outcomes.of(sweep), queries=self._queries)
        looks = self._store.requests.looks(sweep)
        return name, resolution_step(outcomes, name, looks, self._catalog, budget)


def _planned(step: ResolutionStep, first: ResolutionRound) -> str:
    if first.cells:
        return step.said()
    why = f": {first.left_out[0].why}" if first.left_out else ""
    return f"{step.said()}{why}; nothing would be trained"


def _going(found: ResolutionView) -> str:
    if not found.rounds:
        return "begins once what the sweep trains has ended"
    last = found.rounds[-1]
    trials, compared = f"{last.trials} trial{'s' * (last.trials != 1)}", f"comparison{'s' * (last.open != 1)}"
    return f"trains round {last.number}: {trials}, {last.open} {compared} open"


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


class SweepCommands:
    """Appends requests."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog

    def cancel(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None
    ) -> RequestView:
        """Ask for a sweep's trials, those of a cell, or one of them to be cancelled; ConflictError where all ended."""
        arguments = self._of_cell(sweep, cell)
        self._store.requests.require_going(sweep, "cancelled", trial, cell)
        return self._ask("cancel", sweep, trial, actor, arguments)

    def retry(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None, what: str = ""
    ) -> RequestView:
        """Ask for trials without a result to be tried again; `what`: failed, all, or empty: failed and cancelled."""
        arguments = self._of_cell(sweep, cell) | ({"what": what} if what else {})
        return self._ask("retry", sweep, trial, actor, arguments)

    def pause(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that no more of a sweep be started; ConflictError when it has ended."""
        return self._queue("pause", sweep, actor)

    def resume(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that a paused sweep go on; ConflictError when it has ended."""
        return self._queue("resume", sweep, actor)

    def prioritize(self, sweep: int, priority: int, actor: str | None = None) -> RequestView:
        """Ask that a sweep be drawn before those of lower priority."""
        return self._ask("priority", sweep, None, actor, {"priority": priority})

    def extend(self, sweep: int, body: bytes, actor: str | None = None) -> RequestView:
        """Ask that a sweep grow to a wider spec; InvalidSpecError when that lacks or changes what there is.

        NumbersChangedError where the sweep was trained under older versions, ConflictError where too many trials of the
        owner would wait, UnavailableError while a disk has too little room.
        """
        refresh(self._catalog)
        contents = Contents.of(self._store.data.planned_content(sweep), self._store.data.findings())
        checked = read(body, self._catalog, papers.PrintedLines(), contents)
        spec, text = checked.spec.model_dump(mode="json"), body.decode("utf-8-sig")
        former = self._store.sweeps.get(sweep)
        if former.state is SweepState.QUEUED:
            raise ConflictError(f"sweep {sweep} is not expanded yet; try again in a moment")
        wider = extension(self._store.trials.keys(sweep), checked.plan, text, spec, self._catalog, former.spec)
        self._store.collection.require_kept(wider.measured, checked.spec.fresh)
        require_disk_room(self._settings)
        return self._ask("extend", sweep, None, actor, {"text": text, "spec": spec, ADDED: len(wider.trials)})

    def delete(self, sweep: int, confirm: str, actor: str | None = None) -> RequestView:
        """Ask that an ended sweep be deleted with what only it uses; `confirm` is its name, else ConflictError."""
        found = self._store.sweeps.get(sweep)
        if confirm != found.name:
            raise ConflictError(f"confirm the deletion of sweep {sweep} by its name, {found.name!r}")
        self._store.sweeps.deletion(sweep)
        return self._ask("delete", sweep, None, actor)

    def mirror(self, sweep: int, actor: str | None = None) -> RequestView:
        """Ask that MLflow be told of a whole sweep anew."""
        return self._ask("mirror", sweep, None, actor)

    def request(self, number: int) -> RequestView:
        """What became of one request."""
        return self._store.requests.get(number)

    def requests(self, sweep: int, cursor: str | None, limit: int) -> Page[RequestView]:
        """What was asked of a sweep, newest first, also of one that was deleted."""
        return self._store.requests.page(sweep, cursor, limit)

    def _ask(
        self,
        kind: RequestKind,
        sweep: int,
        trial: int | None,
        actor: str | None,
        arguments: Mapping[str, Any] | None = None,
    ) -> RequestView:
        most = self._settings.owner_trials
        return self._store.requests.get(self._store.submissions.add_request(kind, sweep, trial, actor, arguments, most))

    def _queue(self, kind: Literal["pause", "resume"], sweep: int, actor: str | None) -> RequestView:
        self._store.requests.require_going(sweep, f"{kind}d")
        return self._ask(kind, sweep, None, actor)

    def _of_cell(self, sweep: int, cell: int | None) -> dict[str, Any]:
        if cell is None:
            return {}
        if not 0 <= cell < self._store.sweeps.cell_count(sweep):
            raise NotFoundError(f"no cell {cell} in sweep {sweep}")
        return {"cell": cell}


class SweepQueries:
    """Answers about sweeps."""

    def __init__(self, store: Store, catalog: Catalog, links: Links) -> None:
        self._store, self._catalog, self._links = store, catalog, links
        self._outlook = Outlook(store, catalog)

    def page(
        self, state: str | None, name: str | None, cursor: str | None, limit: int, tag: str | None = None
    ) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name, `tag` a whole tag of the sweep itself."""
        return self._store.sweeps.page(state, name, cursor, limit, tag and tag.strip())

    def get(self, sweep: int) -> SweepView:
        """One sweep whole."""
        found = self._store.sweeps.get(sweep)
        experiment = self._store.runs.experiment(sweep)
        said = self._store.remarks.of("sweep", sweep, sweep)
        return found.model_copy(update={"mlflow_url": self._links.to_view(experiment), "remark": said})

    def allowed(self, sweep: int) -> Allowed:
        """What who asks may do with a sweep: pages offer no more."""
        return self._store.accounts.allowed(sweep)

    def using(self, kind: str, name: str, newest: int) -> list[PartUse]:
        """Of the newest sweeps those whose specs name a part, the newest first."""
        return [use for use, spec in self._store.sweeps.specs(newest) if named(spec, kind, name)]

    def left(self, sweep: SweepView) -> Cost | None:
        """What is left to train of a sweep that goes on, at most a minute old; none where that is not known."""
        return self._outlook.left(sweep)

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's trials by cell, candidate and repeat; with `most`, the first cells, up to so many trials."""
        experiment, runs = self._store.runs.experiment(sweep), self._store.runs.of_cells(sweep)
        return [
            replace(cell, mlflow_url=self._links.to(experiment, runs.get(cell.index)))
            for cell in self._store.sweeps.grid(sweep, most)
        ]

    def mirror(self, sweep: int | None = None) -> MirrorView:
        """What MLflow is still to be told of a sweep, or of all; NotFoundError."""
        if sweep is not None:
            self._store.sweeps.get(sweep)
        return MirrorView(waiting=self._store.outbox.lag(sweep), error=self._store.outbox.error(sweep))

    def cell_count(self, sweep: int) -> int:
        """How many cells a sweep has; none before it is expanded."""
        return self._store.sweeps.cell_count(sweep)

    def cell_figure(self, cell: CellView) -> dict[str, Any] | None:
        """A cell's candidates by their scores, as a Vega-Lite figure; none where nothing competes."""
        return figures.pages.candidates_chart(cell)

    def compared(self, sweep: int, index: int) -> ComparedCell:
        """A cell of a sweep as it stands beside others; NotFoundError."""
        found, trial = cells.compared(self._store.outcomes.of(sweep, [index]), index, self._catalog)
        if trial is None:
            return found
        recipe = self._store.trials.get(trial.trial).recipe
        alike = {path: value for path, value in recipe.items() if path not in trial.repeat_labels}
        return found.model_copy(update={"recipe": alike})

    def cell(self, sweep: int, index: int) -> CellView:
        """A cell of a sweep with its candidates, their trials and provenance; NotFoundError."""
        evidence = list(self._store.outcomes.provenance(sweep, index))
        found = cells.trace(self._around(sweep, index), index, evidence, self._catalog)
        runs = {one.outcome.trial: one.run for one in evidence if one.run is not None}
        own = self._store.runs.run("cell", sweep, index)
        linked = cells.linked(found, self._links, self._store.runs.experiment(sweep), runs, own)
        return linked.model_copy(update={"remark": self._store.remarks.of("cell", sweep, index)})

    def _around(self, sweep: int, index: int) -> SweepOutcomes:
        """The outcomes of a cell and of those that decide on its numbers; without it all cells, and no outcomes."""
        own = self._store.outcomes.of(sweep, [index])
        if own.cells and cells.alone(own.spec, own.cells[0], self._catalog):
            return own
        among = self._store.outcomes.cells(sweep)
        if not own.cells:
            return replace(own, cells=among)
        wanted = cells.needed(own.spec, among, own.cells[0], self._catalog)
        return self._store.outcomes.of(sweep, None if len(wanted) == len(among) else wanted)
