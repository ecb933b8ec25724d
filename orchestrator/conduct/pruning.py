"""Early stopping: judges the candidates of each cell by the reports of their trainings, and prunes some."""

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from math import ceil
from typing import Any, Final

from orchestrator.conduct.upkeep import Renewal
from orchestrator.cost.estimate import models
from orchestrator.publish import aggregate
from orchestrator.publish.verdicts.significance import beaten
from orchestrator.record.searches import Competitor, RecordedEvaluation
from orchestrator.record.store import Store, Writer
from orchestrator.record.transitions import PruningDecision
from orchestrator.run.optuna import OptunaPruner
from orchestrator.spec.spec import Hyperband, Prune, Race, Spec, Wilcoxon
from orchestrator.views.errors import FATAL
from orchestrator.views.runs import Order
from orchestrator.views.states import TRIAL_ACTIVE, TrialState
from workers.catalog import Catalog
from workers.contract import Progress, Recipe

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class TrialProgress:
    """The evaluations of a trial that a pruning session has read."""

    competitor: Competitor
    row: int = 0  # the last evaluation that was read
    step: int = -1  # its step
    number: int = 0  # how many evaluations it has
    value: float = math.nan  # the last of them
    decided_at: int = 0  # how many evaluations it had at the last decision
    why: str = ""  # the latest decision, if it was to prune
    over: bool = False  # whether its end is known


class PruningSession:
    """Prunes the candidates of a cell by evaluations: each repeat is a competition of its own.

    The same rows give the same decisions, so that a session can be rebuilt after a crash.
    """

    _unit = "evaluation {}: {}"

    def __init__(self, key: str, make: Callable[[], OptunaPruner]) -> None:
        self._key = key
        self._pruners: defaultdict[int, OptunaPruner] = defaultdict(make)  # by repeat
        self._entries: dict[int, TrialProgress] = {}  # by trial
        self._repeats: Counter[int] = Counter()  # by candidate
        self._hopeless: dict[int, TrialProgress] = {}  # by trial, if its latest decision is to prune
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to the end

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation]) -> None:
        """Read the states of trials, and all evaluations that their trainings reported."""
        self._follow([self._enter(competitor) for competitor in competitors], rows)

    def decisions(self) -> list[PruningDecision]:
        """The candidates to prune by the latest decision on one of their trials; each is returned once."""
        found: dict[int, PruningDecision] = {}
        for entry in self._hopeless.values():
            trial = entry.competitor
            # The additional repeats that reproduce a search's winner do not compete.
            if trial.candidate not in self._decided and trial.repeat < self._shared() and trial.candidate not in found:
                why = f"after {self._unit.format(entry.number, self._key)} {entry.value:.4g}; {entry.why}"
                found[trial.candidate] = PruningDecision(
                    trial.sweep, trial.cell, trial.candidate, trial.trial, entry.number, entry.value, why
                )
        self._hopeless.clear()
        return list(found.values())

    def decide(self, candidate: int) -> None:
        """Record that a candidate is pruned."""
        self._decided.add(candidate)

    def _enter(self, competitor: Competitor) -> TrialProgress:
        if competitor.trial not in self._entries:
            self._repeats[competitor.candidate] += 1
        entry = self._entries.setdefault(competitor.trial, TrialProgress(competitor))
        entry.competitor = competitor
        if competitor.spared or competitor.state is TrialState.PRUNED:
            self._decided.add(competitor.candidate)
        return entry

    def _follow(self, entries: Sequence[TrialProgress], rows: Iterable[RecordedEvaluation]) -> None:
        by_training: defaultdict[int, list[TrialProgress]] = defaultdict(list)
        for entry in entries:
            by_training[entry.competitor.training].append(entry)
        ends = [entry for entry in entries if entry.competitor.state is TrialState.FINISHED and not entry.over]
        ends.sort(key=lambda entry: entry.competitor.ended or _NEVER, reverse=True)
        for row in rows:
            while ends and (ends[-1].competitor.ended or _NEVER) < row.at:
                self._end(ends.pop())
            for entry in by_training[row.training]:
                self._evaluated(entry, row)
        while ends:
            self._end(ends.pop())

    def _evaluated(self, entry: TrialProgress, row: RecordedEvaluation) -> None:
        competitor = entry.competitor
        if row.id <= entry.row or entry.over:  # the second: conductors' clocks differ, so that an end seems earlier
            return
        entry.row = row.id
        if row.step <= entry.step:
            return  # a resumed attempt passed it again
        if competitor.state is TrialState.PRUNED and (competitor.ended or _NEVER) < row.at:
            return  # it trained until it was stopped, or for another sweep
        if competitor.state is TrialState.WAITING and competitor.trial in self._hopeless:
            return  # reported for an earlier sweep, and hopeless in this sweep
        entry.step, entry.number, entry.value = row.step, entry.number + 1, row.value
        self._pruners[competitor.repeat].report(competitor.candidate, entry.number, row.value)
        if row.step < competitor.total:  # at the last step the result is about to come
            self._ask(entry)

    def _end(self, entry: TrialProgress) -> None:
        entry.over = True
        if entry.number > entry.decided_at:
            self._ask(entry)
        if entry.competitor.score is not None:
            self._pruners[entry.competitor.repeat].finish(entry.competitor.candidate, entry.competitor.score)

    def _ask(self, entry: TrialProgress) -> None:
        entry.decided_at = entry.number
        self._note(entry, self._pruners[entry.competitor.repeat].decision(entry.competitor.candidate))

    def _note(self, entry: TrialProgress, why: str | None) -> None:
        self._hopeless.pop(entry.competitor.trial, None)
        if why is not None:
            entry.why = why
            self._hopeless[entry.competitor.trial] = entry

    def _shared(self) -> int:
        """How many repeats every candidate has."""
        return min(self._repeats.values(), default=0)


class RepeatPruningSession(PruningSession):
    """Prunes by repeats: the whole cell is one competition, in which a finished repeat is an evaluation."""

    _unit = "{} repeats: mean {}"

    def __init__(self, key: str, make: Callable[[], OptunaPruner]) -> None:
        super().__init__(key, make)
        self._scores: defaultdict[int, list[float]] = defaultdict(list)  # by candidate

    def _follow(self, entries: Sequence[TrialProgress], rows: Iterable[RecordedEvaluation]) -> None:
        shared, pruner = self._shared(), self._pruners[0]
        for entry in sorted(entries, key=lambda one: (one.competitor.ended or _NEVER, one.competitor.trial)):
            candidate, score = entry.competitor.candidate, entry.competitor.score
            if score is None or entry.over or entry.competitor.repeat >= shared:
                continue
            entry.over = True
            scores = self._scores[candidate]
            scores.append(score)
            pruner.report(candidate, entry.competitor.repeat + 1, score)
            entry.number, entry.value = len(scores), sum(scores) / len(scores)
            if len(scores) == shared:
                pruner.finish(candidate, entry.value)
                continue
            # Drop the decisions after fewer repeats.
            known = self._hopeless.items()
            self._hopeless = {trial: other for trial, other in known if other.competitor.candidate != candidate}
            self._note(entry, pruner.decision(candidate))


class RaceSession:
    """Prunes the candidates of a cell by a race: judges whole rounds of repeats, in the order of rounds."""

    def __init__(self, key: str, race: Race, *, higher: bool) -> None:
        self._key, self._race, self._higher = key, race, higher
        self._trials: dict[int, dict[int, Competitor]] = {}  # by candidate and repeat
        self._out: set[int] = set()
        self._decided: set[int] = set()  # candidates that are pruned, or were and are trained to the end
        self._round = race.first  # the number of repeats after which the next round ends
        self._due: list[PruningDecision] = []

    def take(self, competitors: Sequence[Competitor], rows: Iterable[RecordedEvaluation] = ()) -> None:
        """Read the present state of trials and judge the rounds that have ended."""
        for competitor in competitors:
            self._trials.setdefault(competitor.candidate, {})[competitor.repeat] = competitor
            if competitor.spared or competitor.state is TrialState.PRUNED:
                self._decided.add(competitor.candidate)
        shared = self._shared()
        while self._round < len(shared) and self._judged(shared[: self._round]):
            self._round += 1

    def decisions(self) -> list[PruningDecision]:
        """The candidates that left the race since the last call."""
        due, self._due = self._due, []
        return [decision for decision in due if decision.candidate not in self._decided]

    def decide(self, candidate: int) -> None:
        """Record that a candidate is pruned."""
        self._decided.add(candidate)

    def _shared(self) -> list[int]:
        """The repeats that every candidate has."""
        repeats = [set(its) for its in self._trials.values()]
        return sorted(set.intersection(*repeats)) if repeats else []

    def _judged(self, repeats: Sequence[int]) -> bool:
        """Judge a round; False if it has not ended. Candidates that are beaten or not selectable leave the race."""
        trials = self._trials.items()
        racing = {candidate: [its[at] for at in repeats] for candidate, its in trials if candidate not in self._out}
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
        why = f"after {self._round} repeats: mean {self._key} {mean:.4g}; {why}"
        self._due.append(PruningDecision(trial.sweep, trial.cell, trial.candidate, trial.trial, self._round, mean, why))


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
        return isinstance(self.prune, (Wilcoxon, Race))


class Pruning:
    """Prunes candidates of running sweeps. Only decisions are stored; the rest is rebuilt from the database."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog, renewal: Renewal) -> None:
        self._store, self._writer, self._catalog, self._renewal = store, writer, catalog, renewal
        self._rules: dict[int, _Rule | None] = {}  # by going sweep; `None` if it does not prune
        self._sessions: dict[tuple[int, int], Session] = {}

    def refresh(self) -> None:
        """Read which sweeps run; in new ones, decide what an earlier conductor did not."""
        going = self._store.sweeps.going()
        for gone in self._rules.keys() - set(going):
            del self._rules[gone]
            self._sessions = {at: session for at, session in self._sessions.items() if at[0] != gone}
        for sweep in going:
            if sweep in self._rules:
                continue
            rule = self._rule(sweep)
            if rule is not None:
                for cell in self._store.pruning.cells_under_way(sweep):
                    self._decide(rule, cell)
            self._rules.setdefault(sweep, rule)

    def forget(self) -> None:
        """Rebuild all sessions, after a request changed which trials compete."""
        self._rules.clear()
        self._sessions.clear()

    def grown(self) -> None:
        """Decide on candidates that searches have added, since earlier sweeps may have trained them."""
        for rule in [rule for rule in self._rules.values() if rule is not None and rule.grows]:
            for cell in dict.fromkeys(competitor.cell for competitor in self._append(rule)):
                session = self._sessions.get((rule.sweep, cell))
                if session is None:
                    self._decide(rule, cell)
                else:
                    self._settle(session)

    def progressed(self, order: Order, progress: Progress) -> None:
        """Decide which candidates to prune after an evaluation was recorded."""
        rules = [rule for rule in self._rules.values() if rule and not rule.by_repeats and rule.key in progress.metrics]
        if rules:
            self._follow(order)

    def ended(self, order: Order) -> None:
        """Decide which candidates to prune after a result or a failure was recorded."""
        if any(self._rules.values()):
            self._follow(order)

    @property
    def racing(self) -> dict[int, int]:
        """The sweeps whose candidates race, with the number of repeats that every candidate gets."""
        rules = [rule for rule in self._rules.values() if rule is not None]
        return {rule.sweep: rule.prune.first for rule in rules if isinstance(rule.prune, Race)}

    def _follow(self, order: Order) -> None:
        for competitor in self._store.pruning.competitors_of(order.attempt):
            rule = self._rules.get(competitor.sweep)
            if rule is not None:
                self._decide(rule, competitor.cell, competitor)

    def _decide(self, rule: _Rule, cell: int, reported: Competitor | None = None) -> None:
        """Decide by what one trial reported, or by everything on record."""
        at = (rule.sweep, cell)
        try:
            session = self._sessions.get(at)
            if session is None and reported is not None and self._over(rule, reported):
                return  # the training continues for another sweep
            if session is None or reported is None:
                session = self._sessions[at] = self._session(rule, cell)
            else:
                self._append(rule)
                self._tell(rule, session, [reported])
            self._settle(session)
            if reported is not None and self._over(rule, reported):
                del self._sessions[at]
        except FATAL:
            self._sessions.pop(at, None)  # its decisions may not be written: rebuild it
            raise
        except Exception:  # a fault of pruning does not stop trainings
            log.exception("sweep %d: nothing more is pruned", rule.sweep)
            self._rules[rule.sweep] = None

    def _over(self, rule: _Rule, reported: Competitor) -> bool:
        """Whether nothing is left to prune in the reported trial's cell."""
        ended = reported.ended is not None and not rule.grows
        return ended and not self._store.trials.has_active(reported.sweep, reported.cell)

    def _settle(self, session: Session) -> None:
        for decision in session.decisions():
            pruned = self._writer.pruning.prune(decision)
            if pruned is None:
                continue  # it is the last candidate that can be selected
            session.decide(decision.candidate)
            if pruned:
                at = f"sweep {decision.sweep}, cell {decision.cell}, candidate {decision.candidate}"
                log.info("%s: pruned (%d of its trials) %s", at, pruned, decision.why)

    def _append(self, rule: _Rule) -> list[Competitor]:
        """Add the candidates of a search that are new to their sessions, and return them."""
        if not rule.grows:
            return []
        added = self._store.pruning.appended(rule.sweep, rule.position)
        for cell in dict.fromkeys(competitor.cell for competitor in added):
            session = self._sessions.get((rule.sweep, cell))
            if session is not None:
                self._tell(rule, session, [competitor for competitor in added if competitor.cell == cell])
        if added:
            rule.position = self._store.trials.last_position(rule.sweep)
        return added

    def _session(self, rule: _Rule, cell: int) -> Session:
        """The session of a cell, rebuilt from the record."""
        competitors = self._store.pruning.competitors(rule.sweep, cell)
        options: dict[str, float] = {
            name: value for name, value in rule.prune.model_dump(exclude={"name"}).items() if value is not None
        }
        if isinstance(rule.prune, Hyperband) and rule.prune.max_evaluations is None:
            options["max_evaluations"] = evaluations(competitors[0].recipe or {})
        pruner = partial(OptunaPruner, rule.prune.name, options, higher=rule.higher)
        session: Session
        if isinstance(rule.prune, Race):
            session = RaceSession(rule.key, rule.prune, higher=rule.higher)
        else:
            session = (RepeatPruningSession if rule.by_repeats else PruningSession)(rule.key, pruner)
        self._tell(rule, session, competitors)
        return session

    def _tell(self, rule: _Rule, session: Session, competitors: list[Competitor]) -> None:
        # Scores of older versions cannot be compared with today's.
        outdated = self._renewal.outdated
        competitors = [competitor for competitor in competitors if competitor.stamp not in outdated]
        trainings = () if rule.by_repeats else [competitor.training for competitor in competitors]
        session.take(competitors, self._store.pruning.evaluations(trainings, rule.key))

    def _rule(self, sweep: int) -> _Rule | None:
        try:
            posted = self._store.pruning.spec(sweep)
            spec = Spec.model_validate(posted) if posted else None
            if spec is None or spec.prune is None:
                return None
            higher = aggregate.direction(spec.select.metric, self._catalog) == "higher"
            key = spec.select.key.partition("/")[2]
            position = self._store.trials.last_position(sweep)
        except FATAL:
            raise
        except Exception as error:  # such as a metric that the catalog no longer has
            log.warning("sweep %d: nothing is pruned: %s", sweep, error)
            return None
        return _Rule(sweep, spec.prune, key, higher, spec.search.adaptive, position)


def evaluations(recipe: Mapping[str, Any]) -> int:
    """The number of evaluations in a training of the recipe, over all its models."""
    read = Recipe.model_validate(recipe)
    length = read.iterations or read.epochs or 0
    return max(1, ceil(length / read.evaluates_every)) * models(read)
