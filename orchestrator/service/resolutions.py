"""Resolutions: what a client can ask to be decided of a table, what that would take, and what became of it."""

from dataclasses import replace

from orchestrator.plan.edit import with_seeds
from orchestrator.publish.tables.resolution import ResolutionStep, resolution_step
from orchestrator.record.store import Store
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.query_sums import QuerySource
from orchestrator.views.requests import RequestView
from orchestrator.views.resolutions import ResolutionBudget, ResolutionRound, ResolutionView
from workers.catalog import Catalog, unknown


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
            raise NotFoundError(f"nobody asked for a resolution of sweep {sweep}")
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
