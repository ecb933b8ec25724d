"""Early stopping in all sweeps that go on: has each cell's session judged by what comes in, and prunes the hopeless."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from orchestrator.conduct.pruning_session import PruningSession, RepeatPruningSession
from orchestrator.conduct.race_session import RaceSession
from orchestrator.conduct.renewal import Renewal
from orchestrator.publish import select
from orchestrator.record.searches import Competitor
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Pruner
from orchestrator.run.optuna import OptunaPruner
from orchestrator.spec.axes import Hyperband, Prune, Race, Wilcoxon
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL
from orchestrator.views.runs import Order
from workers.catalog import Catalog
from workers.contract import Progress, Recipe

log = logging.getLogger(__name__)

Session = PruningSession | RaceSession


@dataclass(slots=True)
class _Rule:
    """How the candidates of a sweep are judged."""

    sweep: int
    prune: Prune
    key: str  # of the evaluations, such as validation/map@r
    higher: bool
    grows: bool  # whether a search adds candidates
    position: int  # of the last trial that is known

    @property
    def by_repeats(self) -> bool:
        """Whether whole repeats are judged, and not the evaluations within."""
        return isinstance(self.prune, (Wilcoxon, Race))


class Pruning:
    """Nothing of it is kept but the decisions: what was reported is on record, and is judged again after a crash."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, renewal: Renewal) -> None:
        self._store, self._writer, self._catalog, self._renewal = store, writer, catalog, renewal
        self._rules: dict[int, _Rule | None] = {}  # of the sweeps that go on; none: it prunes nothing
        self._sessions: dict[tuple[int, int], Session] = {}

    def refresh(self) -> None:
        """Learn which sweeps go on; in those that are new here, judge what an earlier conductor did not."""
        going = self._store.sweeps.going()
        for gone in self._rules.keys() - set(going):
            del self._rules[gone]
            self._sessions = {at: one for at, one in self._sessions.items() if at[0] != gone}
        for sweep in going:
            if sweep in self._rules:
                continue
            rule = self._rule(sweep)
            if rule is not None:
                for cell in self._store.pruning.cells_under_way(sweep):
                    self._decide(rule, cell)
            self._rules.setdefault(sweep, rule)

    def forget(self) -> None:
        """Begin anew: somebody changed what competes."""
        self._rules.clear()
        self._sessions.clear()

    def grown(self) -> None:
        """Decide on the candidates that searches have added: what an earlier sweep trained of them is on record."""
        for rule in [one for one in self._rules.values() if one is not None and one.grows]:
            for cell in dict.fromkeys(one.cell for one in self._append(rule)):
                session = self._sessions.get((rule.sweep, cell))
                if session is None:
                    self._decide(rule, cell)
                else:
                    self._settle(session)

    def progressed(self, order: Order, progress: Progress) -> None:
        """Decide by an evaluation that has been recorded."""
        rules = [rule for rule in self._rules.values() if rule and not rule.by_repeats and rule.key in progress.metrics]
        if rules:
            self._follow(order)

    def finished(self, order: Order) -> None:
        """Decide by a result that has been recorded."""
        if any(self._rules.values()):
            self._follow(order)

    def failed(self, order: Order) -> None:
        """Decide where nothing came of a training: a race waits for its rounds to end, however they do."""
        if self.racing:
            self._follow(order)

    @property
    def racing(self) -> dict[int, int]:
        """The sweeps whose candidates race, with the repeats that all candidates are given at once."""
        rules = [one for one in self._rules.values() if one is not None]
        return {one.sweep: one.prune.first for one in rules if isinstance(one.prune, Race)}

    def _follow(self, order: Order) -> None:
        for one in self._store.pruning.competitors_of(order.attempt):
            rule = self._rules.get(one.sweep)
            if rule is not None:
                self._decide(rule, one.cell, one)

    def _decide(self, rule: _Rule, cell: int, reported: Competitor | None = None) -> None:
        """Decide by what one trial reported; without any, by all that is on record."""
        at = (rule.sweep, cell)
        try:
            session = self._sessions.get(at)
            if session is None and reported is not None and self._over(rule, reported):
                return  # a training that another sweep wants goes on
            if session is None or reported is None:
                session = self._sessions[at] = self._session(rule, cell)
            else:
                self._append(rule)
                self._tell(rule, session, [reported], session.after(reported.trial))
            self._settle(session)
            if reported is not None and self._over(rule, reported):
                del self._sessions[at]
        except FOR_ALL:
            self._sessions.pop(at, None)  # what was judged may not be written: it is entered anew
            raise
        except Exception:  # whatever a rule fails in, trainings go on
            log.exception("sweep %d: nothing more is pruned", rule.sweep)
            self._rules[rule.sweep] = None

    def _over(self, rule: _Rule, reported: Competitor) -> bool:
        """Whether nothing can be pruned any more where it was reported."""
        ended = reported.ended is not None and not rule.grows
        return ended and not self._store.trials.has_active(reported.sweep, reported.cell)

    def _settle(self, session: Session) -> None:
        for decision in session.decisions():
            pruned = self._writer.pruning.prune(decision)
            if pruned is None:
                continue  # it is the last that can be selected
            session.decide(decision.candidate)
            if pruned:
                at = f"sweep {decision.sweep}, cell {decision.cell}, candidate {decision.candidate}"
                log.info("%s: pruned (%d of its trials) %s", at, pruned, decision.why)

    def _append(self, rule: _Rule) -> list[Competitor]:
        """Tell the sessions that are under way of the candidates that a search has added since; these are returned."""
        if not rule.grows:
            return []
        added = self._store.pruning.appended(rule.sweep, rule.position)
        for cell in dict.fromkeys(one.cell for one in added):
            session = self._sessions.get((rule.sweep, cell))
            if session is not None:
                self._tell(rule, session, [one for one in added if one.cell == cell])
        if added:
            rule.position = self._store.trials.last_position(rule.sweep)
        return added

    def _session(self, rule: _Rule, cell: int) -> Session:
        """The session of a cell as far as it is on record."""
        competitors = self._store.pruning.competitors(rule.sweep, cell)
        options: dict[str, float] = {
            name: value for name, value in rule.prune.model_dump(exclude={"name"}).items() if value is not None
        }
        if isinstance(rule.prune, Hyperband) and rule.prune.max_evaluations is None:
            options["max_evaluations"] = evaluations(competitors[0].recipe or {})

        def pruner() -> Pruner:
            return OptunaPruner(rule.prune.name, options, higher=rule.higher)

        session: Session
        if isinstance(rule.prune, Race):
            session = RaceSession(rule.key, rule.prune, higher=rule.higher)
        else:
            session = (RepeatPruningSession if rule.by_repeats else PruningSession)(rule.key, pruner)
        self._tell(rule, session, competitors)
        return session

    def _tell(self, rule: _Rule, session: Session, competitors: list[Competitor], after: int = 0) -> None:
        # What older versions scored is no measure for what trains under today's.
        competitors = [one for one in competitors if one.stamp not in self._renewal.outdated]
        trainings = () if rule.by_repeats else [one.training for one in competitors]
        session.take(competitors, self._store.pruning.evaluations(trainings, rule.key, after))

    def _rule(self, sweep: int) -> _Rule | None:
        try:
            posted = self._store.pruning.spec(sweep)
            spec = Spec.model_validate(posted) if posted else None
            if spec is None or spec.prune is None:
                return None
            higher = select.direction(spec.select.metric, self._catalog) == "higher"
            key = spec.select.key.partition("/")[2]
            position = self._store.trials.last_position(sweep)
        except FOR_ALL:
            raise
        except Exception as error:  # such as a metric that the catalog has no more
            log.warning("sweep %d: nothing is pruned: %s", sweep, error)
            return None
        return _Rule(sweep, spec.prune, key, higher, spec.search.adaptive, position)


def evaluations(recipe: Mapping[str, Any]) -> int:
    """How many evaluations a training of the recipe has, of all its models."""
    one = Recipe.model_validate(recipe)
    length = one.iterations or one.epochs or 0
    models = one.validation.folds if one.validation.name == "cross_validation" else 1
    return max(1, ceil(length / one.evaluates_every)) * models
