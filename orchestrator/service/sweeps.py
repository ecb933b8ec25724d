"""Sweeps: submits, changes, annotates and shows them."""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from orchestrator.cost.estimate import Cost
from orchestrator.host import disk
from orchestrator.host.cache import Cache
from orchestrator.host.logs import one_line, printable
from orchestrator.plan.check import Checked, read_spec, refresh
from orchestrator.plan.data import absences, crowded, shortages
from orchestrator.plan.edit import with_alternatives, with_seeds
from orchestrator.plan.grid import Contents, agreed, counted, expand, extension, needs
from orchestrator.publish import papers
from orchestrator.publish.figures.pages import candidates_chart
from orchestrator.publish.tables import cell as cells
from orchestrator.publish.tables.resolution import ResolutionStep, resolution_step
from orchestrator.publish.tables.select import headline
from orchestrator.record.requests import ADDED, NewSweep, RequestKind
from orchestrator.record.store import Store
from orchestrator.service.forecast import MOST_TRIALS, forecast
from orchestrator.settings import Settings
from orchestrator.spec.spec import Spec
from orchestrator.views.accounts import caller
from orchestrator.views.errors import ConflictError, NotFoundError, UnavailableError
from orchestrator.views.evidence import ResolutionBudget, ResolutionView
from orchestrator.views.operations import Inspected, MirrorView
from orchestrator.views.pages import LONGEST_NOTE, LONGEST_TAG, AnnotatedKind, Annotation, Page, TagChange
from orchestrator.views.runs import Extension, Labels, QuerySource, Statistic, SweepResults
from orchestrator.views.states import SWEEP_ENDED, SweepState
from orchestrator.views.sweeps import (
    AxisGroup,
    BestCell,
    GridCell,
    Links,
    PartUse,
    Preview,
    RequestView,
    Submitted,
    SweepSummary,
    SweepView,
)
from orchestrator.views.tables import CellView, ComparedCell
from orchestrator.views.trials import leaves
from workers.catalog import Catalog, Need, unknown
from workers.contract import PML


def named(spec: Mapping[str, Any], kind: str, name: str) -> bool:
    """Whether a spec as JSON names a part; works for specs of other releases."""
    if kind == "metric":
        shown = (spec.get("tables"), spec.get("figures"), spec.get("select"), (spec.get("recipe") or {}).get("metrics"))
        return any(text.partition("@")[0] == name for block in shown for text in _texts(block))
    if kind in PML:  # within loss pml, at any of its options
        return any(text == name for patch in _patches(spec) for text in _texts(patch))
    parts = (patch.get(kind) for patch in _patches(spec))
    return any((part.get("name") if isinstance(part, Mapping) else part) == name for part in parts)


def _patches(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield spec.get("recipe") or {}
    for role in ("compare", "tune", "repeat"):
        for groups in (spec.get(role) or {}).values():
            for group in groups:
                yield from (choice.get("patch") or {} for choice in group.get("choices") or ())
    yield from (rule.get("patch") or {} for rule in spec.get("rules") or ())


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping | list):
        for child in node.values() if isinstance(node, Mapping) else node:
            yield from _texts(child)


class AnnotationQueries:
    """Reads and changes the notes and tags of sweeps, cells and trials."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, kind: AnnotatedKind, number: int, cell: int = 0) -> Annotation:
        """The note and tags of a sweep, of a cell of it, or of a trial."""
        return self._store.annotations.of(*self._where(kind, number, cell))

    def put(
        self, where: tuple[AnnotatedKind, int, int], note: str | None, tags: TagChange | None, actor: str | None
    ) -> Annotation:
        """Set the note, change the tags, or both, of a sweep, cell or trial; raises ConflictError for too many tags."""
        place = self._where(*where)
        text = None if note is None else printable(note.replace("\r\n", "\n").strip())[:LONGEST_NOTE]
        if tags is not None:
            whole = None if tags.tags is None else _clean(tags.tags)
            tags = replace(tags, tags=whole, added=_clean(tags.added), removed=_clean(tags.removed))
        self._store.annotations.put(place, text, tags, actor)
        return self._store.annotations.of(*place)

    def _where(self, kind: AnnotatedKind, number: int, cell: int) -> tuple[AnnotatedKind, int, int]:
        if kind == "trial":
            return kind, self._store.annotations.sweep_of(number), number
        return kind, number, cell if kind == "cell" else number


def _clean(tags: Sequence[str]) -> list[str]:
    return [one_line(tag.strip())[:LONGEST_TAG].strip() for tag in tags]


class ResolutionCommands:
    """Requests resolutions, which add seeds until a table is decided, and shows them."""

    def __init__(self, store: Store, catalog: Catalog, queries: QuerySource) -> None:
        self._store, self._catalog, self._queries = store, catalog, queries

    def request(
        self, sweep: int, budget: ResolutionBudget, table: str | None = None, actor: str | None = None
    ) -> RequestView:
        """Request that a table (by default the sweep's first) be decided within the budget.

        Raises NotFoundError for an unknown table; ConflictError if seeds cannot be added to the sweep, if the table
        compares nothing, or if another resolution of the sweep goes on.
        """
        if self._store.resolutions.going(sweep):
            raise ConflictError(f"sweep {sweep} has an active resolution; wait for it, or end it: `resolution --halt`")
        name, step = self._step(sweep, table, budget)
        if not step.judged.pairs:
            raise ConflictError(f"{step.summary()}; say by `verdicts: {{against: ...}}` of table {name} what is")
        arguments = {"table": name, "budget": budget.model_dump(mode="json", exclude_none=True)}
        number = self._store.submissions.add_request("resolve", sweep, None, actor, arguments)
        return self._store.requests.get(number)

    def halt(self, sweep: int, actor: str | None = None) -> RequestView:
        """Request that a resolution have no further round; raises ConflictError if none goes on."""
        if not self._store.resolutions.going(sweep):
            self._store.sweeps.get(sweep)
            raise ConflictError(f"sweep {sweep} has no active resolution")
        return self._store.requests.get(self._store.submissions.add_request("halt", sweep, None, actor))

    def plan(self, sweep: int, budget: ResolutionBudget, table: str | None = None) -> ResolutionView:
        """The first round that a resolution would have now, without requesting it. Raises as `request` does."""
        name, step = self._step(sweep, table, budget)
        first, message = step.next(1, budget), step.summary()
        if not first.cells:
            message += (f": {first.left_out[0].why}" if first.left_out else "") + "; nothing would be trained"
        return ResolutionView(
            sweep=sweep, table=name, budget=budget, state="planned", summary=message, before=step.comparisons(),
            rounds=[first] if first.cells else [],
        )  # fmt: skip

    def get(self, sweep: int) -> ResolutionView:
        """The last resolution of a sweep; NotFoundError if there was none."""
        found = self.latest(sweep)
        if found is None:
            raise NotFoundError(f"sweep {sweep} has no resolution")
        return found

    def latest(self, sweep: int) -> ResolutionView | None:
        """The last resolution of a sweep, or `None`."""
        found = self._store.resolutions.latest(sweep)
        if found is None or found.state == "ended":
            return found
        message = "begins once what the sweep trains has ended"
        if found.rounds:
            last = found.rounds[-1]
            trials, compared = f"{last.trials} trial{'s' * (last.trials != 1)}", f"comparison{'s' * (last.open != 1)}"
            message = f"trains round {last.number}: {trials}, {last.open} {compared} open"
        return found.model_copy(update={"summary": message})

    def _step(self, sweep: int, table: str | None, budget: ResolutionBudget) -> tuple[str, ResolutionStep]:
        view = self._store.sweeps.get(sweep)
        spec = Spec.model_validate(view.spec)
        if spec.search.adaptive:
            raise ConflictError(f"sweep {sweep} searches adaptively, and such a sweep cannot be extended by seeds")
        with_seeds(view.text.encode(), spec, {}, {})  # raises if seeds cannot be added
        name = table if table is not None else next(iter(spec.tables), "")
        if name not in spec.tables:
            raise NotFoundError(f"in sweep {sweep}: {unknown('table', name, spec.tables)}")
        results = replace(self._store.trial_results.of(sweep), queries=self._queries)
        looks = self._store.requests.looks(sweep)
        return name, resolution_step(results, name, looks, self._catalog, budget)


def _require_disk_room(settings: Settings) -> None:
    """Raise UnavailableError if a disk has too little room for the files of a sweep."""
    if troubles := disk.troubles(settings.places):
        raise UnavailableError(disk.wait_reason(troubles))


LOOK_SECONDS: Final = 5.0
"""How long a submit waits for the nodes to inspect its data."""
_LOOK_PAUSE: Final = 0.1


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

        Raises NotFoundError and NotAllowedError for the project, ConflictError if too many trials of the owner would
        wait, and UnavailableError while a disk has too little room.
        """
        checked = self._read(body)
        _require_disk_room(self._settings)
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
        update: dict[str, Any] = {"warnings": self._warnings(checked), "notes": list(checked.notes)}
        if checked.plan.trial_count <= MOST_TRIALS:
            found = forecast(checked, self._store, self._catalog, project)
            update |= {"cost": found.cost, "reuse": found.reuse}
        return submitted.model_copy(update=update)

    def preview(self, body: bytes, project: str | None = None) -> Preview:
        """The size of the sweep that a spec would become in a project, its known results, and the cost of the rest.

        Raises NotFoundError for the project.
        """
        checked = self._read(body)
        preview = forecast(checked, self._store, self._catalog, project)
        return preview.model_copy(update={"warnings": self._warnings(checked)})

    def _read(self, body: bytes) -> Checked:
        """The spec, checked and expanded for the present content of the nodes' data."""
        refresh(self._catalog)
        checked = read_spec(body, self._catalog, papers.printed_lines(self._catalog.published))
        required = [need for need in needs(checked.spec, self._catalog) if need.reads_data]
        if not required:
            return checked
        found, fresh = self._inspected(required)
        catalog = self._catalog.counting(counted(found)) if fresh else self._catalog
        return read_spec(body, catalog, papers.printed_lines(self._catalog.published), Contents(agreed(found)))

    def _inspected(self, required: Sequence[Need]) -> tuple[list[Inspected], bool]:
        """The nodes' data for some needs, and whether it was inspected just now; otherwise as last inspected."""
        keys = {need.key for need in required}
        looks = self._settings.inspection is not None and self._store.lease.conducted()
        requested_at = self._store.submissions.request_inspection(required) if looks else None
        until = time.monotonic() + LOOK_SECONDS
        while True:
            found = [finding for finding in self._store.data.findings() if finding.need.key in keys]
            fresh = [finding for finding in found if requested_at is not None and finding.inspected_at >= requested_at]
            if fresh == found and keys <= {finding.need.key for finding in fresh}:
                return found, True
            if requested_at is None or time.monotonic() > until:
                return found, False
            time.sleep(_LOOK_PAUSE)

    def _warnings(self, checked: Checked) -> list[str]:
        """Why trials would wait for slots or data. Inline trainings need no slots of nodes."""
        nodes = [] if self._settings.engine == "inline" else self._store.capacity.nodes()
        slots = [*shortages(checked.spec, nodes), *crowded(checked.spec, checked.plan.trial_count, nodes)]
        return slots + absences(checked.spec, self._catalog, self._store.data.findings())


class SweepCommands:
    """Requests changes of sweeps, which the conductor carries out."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog

    def cancel(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None
    ) -> RequestView:
        """Cancel a sweep's trials, the trials of a cell, or one trial; raises ConflictError if all have ended."""
        arguments = self._of_cell(sweep, cell)
        self._store.requests.require_going(sweep, "cancelled", trial, cell)
        return self._ask("cancel", sweep, trial, actor, arguments)

    def retry(
        self, sweep: int, actor: str | None = None, trial: int | None = None, cell: int | None = None, what: str = ""
    ) -> RequestView:
        """Retry trials without a result; `what` is `failed`, `all`, or empty for failed and cancelled trials."""
        arguments = self._of_cell(sweep, cell) | ({"what": what} if what else {})
        return self._ask("retry", sweep, trial, actor, arguments)

    def pause(self, sweep: int, actor: str | None = None) -> RequestView:
        """Start no more trials of a sweep; raises ConflictError if it has ended."""
        self._store.requests.require_going(sweep, "paused")
        return self._ask("pause", sweep, None, actor)

    def resume(self, sweep: int, actor: str | None = None) -> RequestView:
        """Continue a paused sweep; raises ConflictError if it has ended."""
        self._store.requests.require_going(sweep, "resumed")
        return self._ask("resume", sweep, None, actor)

    def prioritize(self, sweep: int, priority: int, actor: str | None = None) -> RequestView:
        """Start the trials of a sweep before those of lower priority."""
        return self._ask("priority", sweep, None, actor, {"priority": priority})

    def extend(self, sweep: int, body: bytes, actor: str | None = None) -> RequestView:
        """Extend a sweep to a wider spec; raises InvalidSpecError if the spec lacks or changes trials of the sweep.

        Raises NumbersChangedError if the sweep was trained under older versions, ConflictError if too many trials of
        the owner would wait, UnavailableError while a disk has too little room.
        """
        _, wider, _ = self._wider(sweep, body)
        _require_disk_room(self._settings)
        added = {"text": wider.text, "spec": wider.spec, ADDED: len(wider.trials)}
        return self._ask("extend", sweep, None, actor, added)

    def preview_extension(self, sweep: int, body: bytes) -> Preview:
        """What a sweep would become by an extension, without requesting it; raises as `extend` does.

        Its trainings and cost are those that the extension adds.
        """
        checked, wider, planned = self._wider(sweep, body)
        project = self._store.sweeps.get(sweep).project
        preview = forecast(checked, self._store, self._catalog, project, planned=planned)
        note = f"{len(wider.trials)} of its trials are new to sweep {sweep}"
        return preview.model_copy(update={"notes": [note, *preview.notes]})

    def with_alternatives(self, sweep: int, added: Mapping[AxisGroup, str]) -> bytes:
        """The spec of a sweep with further alternatives; raises as `orchestrator.plan.edit.with_alternatives` does."""
        return with_alternatives(self._store.sweeps.get(sweep).text.encode(), added)

    def _wider(self, sweep: int, body: bytes) -> tuple[Checked, Extension, set[str]]:
        """The wider spec, what it adds, and the fingerprints that trials of the sweep have already."""
        refresh(self._catalog)
        contents = Contents.of(self._store.data.planned_content(sweep), self._store.data.findings())
        checked = read_spec(body, self._catalog, papers.printed_lines(self._catalog.published), contents)
        spec, text = checked.spec.model_dump(mode="json"), body.decode("utf-8-sig")
        former = self._store.sweeps.get(sweep)
        if former.state is SweepState.QUEUED:
            raise ConflictError(f"the trials of sweep {sweep} are not all written yet; try again in a moment")
        present = self._store.trials.keys(sweep)
        wider = extension(present, checked.plan, text, spec, self._catalog, former.spec)
        self._store.collection.require_kept(wider.measured, checked.spec.fresh)
        return checked, wider, {trial.fingerprint for trial in present}

    def delete(self, sweep: int, confirm: str, actor: str | None = None) -> RequestView:
        """Delete an ended sweep and all that only it uses; raises ConflictError unless `confirm` is its name."""
        name = self._store.sweeps.get(sweep).name
        if confirm != name:
            raise ConflictError(f"confirm the deletion of sweep {sweep} by its name, {name!r}")
        self._store.sweeps.deletion(sweep)
        return self._ask("delete", sweep, None, actor)

    def mirror(self, sweep: int, actor: str | None = None) -> RequestView:
        """Send a whole sweep to MLflow again."""
        return self._ask("mirror", sweep, None, actor)

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

    def _of_cell(self, sweep: int, cell: int | None) -> dict[str, Any]:
        if cell is None:
            return {}
        if not 0 <= cell < self._store.sweeps.cell_count(sweep):
            raise NotFoundError(f"no cell {cell} in sweep {sweep}")
        return {"cell": cell}


_UNIMPORTANT: Final = frozenset({"name", "description", "version", "tables", "figures"})
_MOST_DIFFERENCES: Final = 4
_LONGEST_VALUE: Final = 60
_MOST_BEST: Final = 1_000
"""Sweeps whose best cell is cached."""
_MOST_LEFT: Final = 256
"""Sweeps whose remaining cost is cached, for `LEFT_SECONDS`."""
LEFT_SECONDS: Final = 60.0


def _in_short(value: Any) -> str:
    """A value of a stored spec; of an axis the labels of its alternatives."""
    if isinstance(value, list) and value and all(isinstance(group, Mapping) and "choices" in group for group in value):
        return f"[{', '.join(str(choice.get('label')) for group in value for choice in group['choices'])}]"
    return json.dumps(value)


def _differences(spec: Mapping[str, Any], before: int, specs: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """How a spec differs in what it trains from that of an earlier sweep, a path each."""
    former = specs[before]
    fields = [key for key in {**spec, **former} if key not in _UNIMPORTANT and spec.get(key) != former.get(key)]
    now, then = (
        {path: _in_short(value) for path, value in leaves({key: each[key] for key in fields if key in each})}
        for each in (spec, former)
    )
    paths = [path for path in {**now, **then} if now.get(path) != then.get(path)]
    found = [
        f"{path}: {now.get(path, 'unset')[:_LONGEST_VALUE]}, {then.get(path, 'unset')[:_LONGEST_VALUE]} in #{before}"
        for path in paths[:_MOST_DIFFERENCES]
    ]
    return found + ([f"{len(paths) - len(found)} more"] if len(paths) > len(found) else [])


class SweepQueries:
    """Answers queries about sweeps."""

    def __init__(self, store: Store, catalog: Catalog, links: Links, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._catalog, self._links = store, catalog, links
        self._left: Cache[tuple[int, int, str], Cost | None] = Cache(_MOST_LEFT, LEFT_SECONDS, 0.0, now)
        self._best: Cache[Hashable, tuple[int, Labels, Statistic] | None] = Cache(_MOST_BEST)

    def page(
        self, state: str | None, name: str | None, cursor: str | None, limit: int, tag: str | None = None
    ) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name, `tag` a whole tag of the sweep."""
        found, specs = self._store.sweeps.page(state, name, cursor, limit, tag and tag.strip())
        numbers = [item.id for item in found.items]
        before, settled = self._store.sweeps.named_before(numbers), self._store.sweeps.settled(numbers)
        specs |= self._store.sweeps.specs_of(set(before.values()) - specs.keys())
        items = [
            item.model_copy(
                update={
                    "best": self._best_cell(item.id, specs[item.id], settled),
                    "differences": _differences(specs[item.id], before[item.id], specs)
                    if before.get(item.id) in specs
                    else [],
                }
            )
            for item in found.items
        ]
        return found.model_copy(update={"items": items})

    def _best_cell(self, sweep: int, spec: Mapping[str, Any], settled: Mapping[int, str]) -> BestCell | None:
        """The best cell of a sweep by the first column of its first table; `None` before a cell has ended.

        `settled`: the stamps of sweeps with settled cells, by which the result is cached.
        """
        if sweep not in settled:
            return None
        try:
            first = headline(spec, self._catalog)
        except ValidationError:  # a table of another release must not hide the other sweeps of a list
            return None
        if first is None:
            return None
        column, alike = first
        found = self._best.stamped(
            (sweep, column.key, column.better, *alike),
            settled[sweep],
            lambda: self._store.sweeps.best(sweep, column.key, alike, higher=column.better == "higher"),
        )
        if found is None:
            return None
        number, labels, statistic = found
        return BestCell(
            cell=number, labels=dict(labels), metric=column.title.rstrip(" ↑↓"), key=column.key,
            text=column.text_of(statistic), mean=statistic.mean, std=statistic.std, n=statistic.n,
        )  # fmt: skip

    def get(self, sweep: int) -> SweepView:
        """The sweep with a number, with all details."""
        found = self._store.sweeps.get(sweep)
        experiment = self._store.runs.experiment(sweep)
        annotation = self._store.annotations.of("sweep", sweep, sweep)
        return found.model_copy(
            update={
                "mlflow_url": self._links.to_view(experiment),
                "annotation": annotation,
                "best": self._best_cell(sweep, found.spec, self._store.sweeps.settled([sweep])),
            }
        )

    def using(self, kind: str, name: str, newest: int) -> list[PartUse]:
        """The sweeps whose specs name a part, newest first, among the `newest` newest sweeps."""
        return [use for use, spec in self._store.sweeps.specs(newest) if named(spec, kind, name)]

    def left(self, sweep: SweepView) -> Cost | None:
        """The cost of what a sweep has left to train, at most a minute old.

        `None` if it has ended, is large, or its cost cannot be known: for a running adaptive search, a running sweep
        that trains everything anew, and a spec that this release does not understand.
        """
        if sweep.state in SWEEP_ENDED or sweep.total > MOST_TRIALS:
            return None
        # A sweep may be extended, and a caller reuses only trainings that it sees.
        return self._left.get((sweep.id, sweep.total, caller().key), lambda: self._count_left(sweep))

    def _count_left(self, sweep: SweepView) -> Cost | None:
        try:
            spec = Spec.model_validate(sweep.spec)
            if (spec.search.adaptive or spec.fresh) and sweep.state is not SweepState.QUEUED:
                return None
            contents = Contents.of(self._store.data.planned_content(sweep.id))
            checked = Checked(spec, expand(spec, self._catalog, contents))
            return forecast(checked, self._store, self._catalog, sweep.project).cost
        except (ValueError, LookupError):  # of another release, or with own parts that are gone
            return None

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's trials by cell, candidate and repeat; with `most`, the first cells with up to so many trials."""
        experiment, runs = self._store.runs.experiment(sweep), self._store.runs.of_cells(sweep)
        return [
            replace(cell, mlflow_url=self._links.to(experiment, runs.get(cell.index)))
            for cell in self._store.sweeps.grid(sweep, most)
        ]

    def mirror(self, sweep: int | None = None) -> MirrorView:
        """The number of runs that MLflow does not show yet, of a sweep or of all; NotFoundError."""
        if sweep is not None:
            self._store.sweeps.get(sweep)
        backlog = self._store.outbox.backlog(sweep)
        return MirrorView(waiting=backlog.runs, error=backlog.error)

    def cell_figure(self, cell: CellView) -> dict[str, Any] | None:
        """A cell's candidates by their scores, as a Vega-Lite figure; `None` if there is nothing to compare."""
        return candidates_chart(cell)

    def compared(self, sweep: int, index: int) -> ComparedCell:
        """A cell of a sweep for a comparison with other cells; NotFoundError."""
        found, trial = cells.compared(self._store.trial_results.of(sweep, [index]), index, self._catalog)
        if trial is None:
            return found
        recipe = self._store.trials.get(trial.trial).recipe
        shared = {path: value for path, value in recipe.items() if path not in trial.repeat_labels}
        return found.model_copy(update={"recipe": shared})

    def cell(self, sweep: int, index: int) -> CellView:
        """A cell of a sweep with its candidates, their trials and provenance; NotFoundError."""
        evidence = list(self._store.trial_results.provenance(sweep, index))
        found = cells.trace(self._around(sweep, index), index, evidence, self._catalog)
        runs = {trial.result.trial: trial.run for trial in evidence if trial.run is not None}
        own = self._store.runs.run("cell", sweep, index)
        linked = cells.linked(found, self._links, self._store.runs.experiment(sweep), runs, own)
        return linked.model_copy(update={"annotation": self._store.annotations.of("cell", sweep, index)})

    def _around(self, sweep: int, index: int) -> SweepResults:
        """The results of a cell and of the cells that its numbers depend on; if there is no such cell, all cells."""
        own = self._store.trial_results.of(sweep, [index])
        if own.cells and cells.is_independent(own.spec, own.cells[0], self._catalog):
            return own
        among = self._store.trial_results.cells(sweep)
        if not own.cells:
            return replace(own, cells=among)
        needed = cells.needed(own.spec, among, own.cells[0], self._catalog)
        return self._store.trial_results.of(sweep, None if len(needed) == len(among) else needed)
