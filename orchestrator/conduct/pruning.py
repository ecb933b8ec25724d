"""Early stopping: judges the trainings of each cell by what they report, and prunes the hopeless."""

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Any, Final

from orchestrator.conduct.upkeep import Renewal
from orchestrator.publish import aggregate
from orchestrator.publish.verdicts.significance import beaten
from orchestrator.record.searches import Competitor, RecordedEvaluation
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import PruningDecision
from orchestrator.run.engine import Pruner
from orchestrator.run.optuna import OptunaPruner
from orchestrator.spec.axes import Hyperband, Prune, Race, Wilcoxon
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL
from orchestrator.views.runs import Order
from orchestrator.views.states import TRIAL_ACTIVE, TrialState
from workers.catalog import Catalog
from workers.contract import Progress, Recipe

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Standing:
    """A trial of the session, as far as its pruner knows it."""

    one: Competitor
    row: int = 0  # the last evaluation that was read
    step: int = -1  # its step
    number: int = 0  # how many evaluations it has
    value: float = math.nan  # the last of them
    asked: int = 0  # how many evaluations it had when it was last asked for
    why: str = ""  # the latest decision, where it was to prune
    over: bool = False  # whether its end is known


class PruningSession:
    """Prunes by evaluations: each repeat of a cell is a competition of its own.

    The same rows give the same decisions, so that a session can be entered anew after any crash.
    """

    def __init__(self, key: str, make: Callable[[], Pruner]) -> None:
        self._key, self._make = key, make
        self._pruners: dict[int, Pruner] = {}  # by repeat
        self._entries: dict[int, Standing] = {}  # by trial
        self._repeats: Counter[int] = Counter()  # by candidate
        self._hopeless: dict[int, Standing] = {}  # those whose latest decision is to prune, by trial
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to their end

    def after(self, trial: int) -> int:
        """The last row of a trial's evaluations that is known; 0 where there is none."""
        entry = self._entries.get(trial)
        return 0 if entry is None else entry.row

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation]) -> None:
        """How trials stand now, and what their trainings reported since, in the order of the rows."""
        entries = [self._enter(one) for one in competitors]
        self._follow(entries, rows)

    def decisions(self) -> list[PruningDecision]:
        """Candidates that are to be pruned by the latest decision on one of their trials; each is told once."""
        found: dict[int, PruningDecision] = {}
        for entry in self._hopeless.values():
            one = entry.one
            # The further repeats of a search's winner, which reproduce it, compete with nobody.
            if one.candidate not in self._decided and one.repeat < self._shared():
                found.setdefault(one.candidate, self._decision(entry))
        self._hopeless.clear()
        return list(found.values())

    def decide(self, candidate: int) -> None:
        """Note that a candidate is pruned."""
        self._decided.add(candidate)

    def _enter(self, one: Competitor) -> Standing:
        if one.trial not in self._entries:
            self._repeats[one.candidate] += 1
        entry = self._entries.setdefault(one.trial, Standing(one))
        entry.one = one
        if one.spared or one.state is TrialState.PRUNED:
            self._decided.add(one.candidate)
        return entry

    def _follow(self, entries: Sequence[Standing], rows: Iterable[RecordedEvaluation]) -> None:
        by_training: defaultdict[int, list[Standing]] = defaultdict(list)
        for entry in entries:
            by_training[entry.one.training].append(entry)
        ends = [entry for entry in entries if entry.one.state is TrialState.FINISHED and not entry.over]
        ends.sort(key=lambda entry: entry.one.ended or _NEVER, reverse=True)
        for row in rows:
            while ends and (ends[-1].one.ended or _NEVER) < row.at:
                self._end(ends.pop())
            for entry in by_training[row.training]:
                self._evaluated(entry, row)
        while ends:
            self._end(ends.pop())

    def _evaluated(self, entry: Standing, row: RecordedEvaluation) -> None:
        competitor = entry.one
        if row.id <= entry.row or entry.over:  # the second: conductors' clocks differ, so that an end seems earlier
            return
        entry.row = row.id
        if row.step <= entry.step:
            return  # a resumed attempt passed it again
        if competitor.state is TrialState.PRUNED and (competitor.ended or _NEVER) < row.at:
            return  # it trained on until it was stopped, or for another sweep
        if competitor.state is TrialState.WAITING and competitor.trial in self._hopeless:
            return  # of an earlier sweep, which pruned it here
        entry.step, entry.number, entry.value = row.step, entry.number + 1, row.value
        self._pruner(competitor.repeat).report(competitor.candidate, entry.number, row.value)
        if row.step < competitor.total:  # else its result is about to come, and is not thrown away
            self._ask(entry)

    def _end(self, entry: Standing) -> None:
        entry.over = True
        if entry.number > entry.asked:
            self._ask(entry)
        if entry.one.score is not None:
            self._pruner(entry.one.repeat).finish(entry.one.candidate, entry.one.score)

    def _ask(self, entry: Standing) -> None:
        entry.asked = entry.number
        self._note(entry, self._pruner(entry.one.repeat).decision(entry.one.candidate))

    def _note(self, entry: Standing, why: str | None) -> None:
        self._hopeless.pop(entry.one.trial, None)
        if why is not None:
            entry.why = why
            self._hopeless[entry.one.trial] = entry

    def _shared(self) -> int:
        """How many repeats every candidate has."""
        return min(self._repeats.values(), default=0)

    def _pruner(self, repeat: int) -> Pruner:
        if repeat not in self._pruners:
            self._pruners[repeat] = self._make()
        return self._pruners[repeat]

    def _decision(self, entry: Standing) -> PruningDecision:
        one = entry.one
        said = f"after evaluation {entry.number}: {self._key} {entry.value:.4g}; {entry.why}"
        return PruningDecision(one.sweep, one.cell, one.candidate, one.trial, entry.number, entry.value, said)


class RepeatPruningSession(PruningSession):
    """Prunes by repeats: the whole cell is one competition, in which a finished repeat is an evaluation."""

    def __init__(self, key: str, make: Callable[[], Pruner]) -> None:
        super().__init__(key, make)
        self._scores: defaultdict[int, list[float]] = defaultdict(list)  # by candidate

    def _follow(self, entries: Sequence[Standing], rows: Iterable[RecordedEvaluation]) -> None:
        shared = self._shared()
        ended = [one for one in entries if one.one.score is not None and not one.over and one.one.repeat < shared]
        for entry in sorted(ended, key=lambda one: (one.one.ended or _NEVER, one.one.trial)):
            entry.over = True
            self._scored(entry, shared)

    def _scored(self, entry: Standing, shared: int) -> None:
        candidate, score = entry.one.candidate, entry.one.score or 0.0
        scores, pruner = self._scores[candidate], self._pruner(0)
        scores.append(score)
        pruner.report(candidate, entry.one.repeat + 1, score)
        entry.number, entry.value = len(scores), sum(scores) / len(scores)
        if len(scores) == shared:
            pruner.finish(candidate, entry.value)
        else:
            self._forget(candidate)  # what was said after fewer repeats
            self._note(entry, pruner.decision(candidate))

    def _forget(self, candidate: int) -> None:
        self._hopeless = {at: one for at, one in self._hopeless.items() if one.one.candidate != candidate}

    def _decision(self, entry: Standing) -> PruningDecision:
        one = entry.one
        said = f"after {entry.number} repeats: mean {self._key} {entry.value:.4g}; {entry.why}"
        return PruningDecision(one.sweep, one.cell, one.candidate, one.trial, entry.number, entry.value, said)


class RaceSession:
    """Judges whole rounds alone, in their order: what each repeat gave decides, and not when it came."""

    def __init__(self, key: str, race: Race, *, higher: bool) -> None:
        self._key, self._race, self._higher = key, race, higher
        self._trials: dict[int, dict[int, Competitor]] = {}  # by candidate and repeat
        self._out: set[int] = set()
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to their end
        self._round = race.first  # repeats after which is judged next
        self._due: list[PruningDecision] = []

    def after(self, trial: int) -> int:
        """No evaluations are read."""
        return 0

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation] = ()) -> None:
        """How trials stand now; judges the rounds that have ended."""
        for one in competitors:
            self._trials.setdefault(one.candidate, {})[one.repeat] = one
            if one.spared or one.state is TrialState.PRUNED:
                self._decided.add(one.candidate)
        shared = self._shared()
        while self._round < len(shared) and self._judged(shared[: self._round]):
            self._round += 1

    def decisions(self) -> list[PruningDecision]:
        """Candidates that left the race since this was asked last."""
        due, self._due = self._due, []
        return [one for one in due if one.candidate not in self._decided]

    def decide(self, candidate: int) -> None:
        """Note that a candidate is pruned."""
        self._decided.add(candidate)

    def _shared(self) -> list[int]:
        """The repeats that every candidate has: of the last one there is nothing left to spare."""
        repeats = [set(one) for one in self._trials.values()]
        return sorted(set.intersection(*repeats)) if repeats else []

    def _judged(self, repeats: Sequence[int]) -> bool:
        """Whether the round has ended; those who are beaten, or cannot be selected any more, are out then."""
        racing = {one: [its[at] for at in repeats] for one, its in self._trials.items() if one not in self._out}
        if any(trial.state in TRIAL_ACTIVE for its in racing.values() for trial in its):
            return False
        scores: dict[int, list[float]] = {}
        for candidate, its in racing.items():
            known = [trial.score for trial in its if trial.score is not None]
            if len(known) == len(repeats):
                scores[candidate] = known
            elif lost := [trial for trial in its if trial.state is TrialState.FINISHED and trial.score is None]:
                self._drop(lost[0], known, "one of them diverged, so that it cannot be selected")
        race = self._race
        losers = beaten(scores, len(self._trials) - 1, race.level, race.first, higher=self._higher)
        for candidate, out in losers.items():
            ahead = f"candidate {out.by} is ahead by {out.difference:.4g} (t = {out.t:.3g}, {out.needed:.3g} suffices)"
            self._drop(racing[candidate][-1], scores[candidate], f"raced out: {ahead}")
        return True

    def _drop(self, trial: Competitor, known: Sequence[float], why: str) -> None:
        self._out.add(trial.candidate)
        mean = sum(known) / len(known) if known else float("nan")
        said = f"after {self._round} repeats: mean {self._key} {mean:.4g}; {why}"
        self._due.append(
            PruningDecision(trial.sweep, trial.cell, trial.candidate, trial.trial, self._round, mean, said)
        )


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
            higher = aggregate.direction(spec.select.metric, self._catalog) == "higher"
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
