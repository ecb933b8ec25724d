"""What would settle a table's open comparisons: its agenda, and the next step of a resolution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.tables import build
from orchestrator.publish.tables.evidence import CellPair, Judgeable, JudgedTable, judged
from orchestrator.publish.verdicts.judge import CellVerdict
from orchestrator.publish.verdicts.rounds import Limits, Question, Round, Stock, next_round
from orchestrator.publish.verdicts.significance import MIN_PAIRS
from orchestrator.spec.spec import SeedAxis, Spec, seed_axis
from orchestrator.views.errors import ConflictError
from orchestrator.views.evidence import CellSeeds, CellVerdictView, LeftOut, ResolutionBudget, ResolutionRound
from orchestrator.views.runs import Labels, SweepLook, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TrialState
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Agenda:
    """The comparisons of a table that further seeds may decide, and those of which they will not."""

    questions: tuple[Question[Judgeable], ...]
    hopeless: Mapping[Judgeable, str]
    """Those that seeds do not help, and why: a baseline that is missing, a cell that diverged."""
    cells: frozenset[int]
    """All that are compared, decided or not."""

    def round(self, stock: Stock, budget: ResolutionBudget, spent: float) -> Round[Judgeable]:
        """What to train next, after so many hours."""
        hours = None if budget.hours is None else budget.hours - spent
        return next_round(self.questions, stock, Limits(hours, budget.seeds))


def agenda(judged: JudgedTable, budget: ResolutionBudget, per_seed: int) -> Agenda:
    """What is open of a table; each seed gives `per_seed` pairs."""
    questions, hopeless = [], {}
    for place, verdict in judged.verdicts.items():
        pair = judged.pairs[place]
        if (
            pair.baseline is None
            or pair.evidence.obstacle
            or (verdict.word == "untested" and verdict.pairs >= MIN_PAIRS)
        ):
            hopeless[place] = verdict.reason
        elif verdict.word in ("unresolved", "untested") and not _known(pair, verdict, budget.within):
            questions.append(_question(place, pair, verdict, budget.within, per_seed))
    cells = {cell for pair in judged.pairs.values() if pair.baseline is not None for cell in (pair.cell, pair.baseline)}
    return Agenda(tuple(questions), hopeless, frozenset(cells))


def stock(outcomes: SweepOutcomes, axis: SeedAxis, since: int | None) -> Stock:
    """The seeds that each cell has, and was given from the trial at position `since` on."""
    held: dict[int, set[int]] = {cell.index: set() for cell in outcomes.cells}
    added: dict[int, set[int]] = {cell.index: set() for cell in outcomes.cells}
    for trial in outcomes.trials:
        seed = axis.by_label.get(trial.repeat_labels.get(axis.name, ""))
        if seed is not None:
            (held if since is None or trial.position < since else added)[trial.cell].add(seed)
    pruned = pruned_candidates(outcomes)
    hours = {
        cell.index: _hours([one for one in outcomes.trials_of(cell.index) if (one.cell, one.candidate) not in pruned])
        for cell in outcomes.cells
    }
    return Stock(
        seeds=tuple(axis.by_label.values()),
        held={cell: frozenset(seeds | added[cell]) for cell, seeds in held.items()},
        hours=hours,
        added={cell: len(seeds - held[cell]) for cell, seeds in added.items()},
    )


def pruned_candidates(outcomes: SweepOutcomes) -> set[tuple[int, int]]:
    """Cells with their candidates of which no further repeat is trained, as one of theirs was pruned."""
    return {(one.cell, one.candidate) for one in outcomes.trials if one.state is TrialState.PRUNED}


def pairs_a_seed(outcomes: SweepOutcomes, axis: SeedAxis) -> int:
    """How many repeats one seed has: more than one where another axis is repeated too."""
    beside = {tuple(label for name, label in one.repeat_labels.items() if name != axis.name) for one in outcomes.trials}
    return max(1, len(beside))


def spent_hours(outcomes: SweepOutcomes, since: int) -> float:
    """What the trainings of the trials from a position on took that finished; what was reused took none."""
    added = (one for one in outcomes.trials if one.position >= since and not one.reused)
    return sum(one.seconds or 0.0 for one in added) / 3600


def _question(
    place: Judgeable, pair: CellPair, verdict: CellVerdict, within: float | None, per_seed: int
) -> Question[Judgeable]:
    assert pair.baseline is not None  # such a one is hopeless
    prospect = verdict.prospect
    if prospect is None:  # too few pairs for a test: first of all so many
        needed = -(-(MIN_PAIRS - verdict.pairs) // per_seed)
        return Question(place, pair.cell, pair.baseline, verdict.pairs // per_seed, needed)
    narrow = None if within is None else prospect.narrow(within / pair.column.scale)
    known = [-(-one // per_seed) for one in (verdict.more, narrow) if one is not None]

    def chance(seeds: int) -> float:
        return 1.0 if narrow is not None and seeds * per_seed >= narrow else prospect.chance(seeds * per_seed)

    return Question(place, pair.cell, pair.baseline, verdict.pairs // per_seed, min(known, default=None), chance)


def _known(pair: CellPair, verdict: CellVerdict, within: float | None) -> bool:
    """Whether the difference is known as closely as was asked for."""
    if within is None or verdict.interval is None:
        return False
    low, high = verdict.interval
    return (high - low) / 2 * pair.column.scale <= within


def _hours(trials: list[TrialOutcome]) -> float | None:
    """That one more seed of a cell takes on one slot: of each of its candidates, as long as its trainings took."""
    timed = [one.seconds for one in trials if one.seconds]
    if not timed:
        return None
    repeats = {tuple(sorted(one.repeat_labels.items())) for one in trials}
    return sum(timed) / len(timed) * len(trials) / len(repeats) / 3600


@dataclass(frozen=True, slots=True)
class Added:
    """The trials that a resolution added."""

    since: int  # the position of the first one
    lost: float = 0.0  # hours of those of their trainings that gave nothing


@dataclass(frozen=True, slots=True)
class ResolutionStep:
    """A resolution between two rounds."""

    judged: JudgedTable
    agenda: Agenda
    stock: Stock
    labels: Mapping[int, Labels]
    trials_a_seed: Mapping[int, int]
    """By cell: one for each candidate that is not pruned, and each other repeat."""
    spent: float
    """Hours of training since it began."""

    def comparisons(self) -> list[CellVerdictView]:
        """The verdicts as they are now."""
        return self.judged.view(self.labels).comparisons

    def next(self, number: int, budget: ResolutionBudget) -> ResolutionRound:
        """The round that comes next; without cells where nothing more can be decided within the budget."""
        drawn = self.agenda.round(self.stock, budget, self.spent)
        left_out = {**drawn.left_out, **self.agenda.hopeless}
        return ResolutionRound(
            number=number,
            cells=[CellSeeds(cell=cell, labels=dict(self.labels[cell]), seeds=list(seeds))
                   for cell, seeds in drawn.seeds.items()],
            trials=sum(len(seeds) * self.trials_a_seed[cell] for cell, seeds in drawn.seeds.items()),
            hours=drawn.hours,
            open=len(self.agenda.questions),
            left_out=[LeftOut(cell=place[0], labels=dict(self.labels[place[0]]), metric=place[2], why=why)
                      for place, why in left_out.items()],
        )  # fmt: skip

    def saved(self) -> int:
        """Trials less than if each compared cell had been given as many seeds as the one that got most."""
        most = max((self.stock.added[cell] for cell in self.agenda.cells), default=0)
        return sum((most - self.stock.added[cell]) * self.trials_a_seed[cell] for cell in self.agenda.cells)

    def said(self) -> str:
        """How much is decided, and how much will not be."""
        total, still, never = len(self.judged.pairs), len(self.agenda.questions), len(self.agenda.hopeless)
        if not total:
            return "nothing is compared: no cell has a baseline"
        words = [f"{total - still - never} of {total} comparison{'s' * (total > 1)} decided"]
        words += [f"{still} open"] if still else []
        words += [f"{never} that seeds do not decide"] if never else []
        return ", ".join(words)


def resolution_step(
    outcomes: SweepOutcomes,
    table: str,
    looks: Sequence[SweepLook],
    catalog: Catalog,
    budget: ResolutionBudget,
    added: Added | None = None,
) -> ResolutionStep:
    """Where the resolution of a table stands that has added these trials, or none yet.

    ConflictError where the sweep repeats its trainings by no seed.
    """
    axis = seed_axis(Spec.model_validate(outcomes.spec))
    if axis is None:
        raise ConflictError(f"sweep {outcomes.sweep} repeats its trainings by no seed, so that none can be added")
    its_verdicts = judged(build.build(outcomes, table, catalog), outcomes, looks)
    per_seed = pairs_a_seed(outcomes, axis)
    candidates = dict.fromkeys((cell.index for cell in outcomes.cells), 0)
    pruned = pruned_candidates(outcomes)
    for candidate in outcomes.candidates:
        candidates[candidate.cell] += (candidate.cell, candidate.index) not in pruned
    return ResolutionStep(
        judged=its_verdicts,
        agenda=agenda(its_verdicts, budget, per_seed),
        stock=stock(outcomes, axis, None if added is None else added.since),
        labels={cell.index: cell.labels for cell in outcomes.cells},
        trials_a_seed={cell: number * per_seed for cell, number in candidates.items()},
        spent=spent_hours(outcomes, added.since) + added.lost if added else 0.0,
    )
