"""Which seeds would settle a table's open comparisons: the questions, and the next step of a resolution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.tables import build
from orchestrator.publish.tables.evidence import CellPair, Judgeable, JudgedTable, judged
from orchestrator.publish.verdicts.judge import CellVerdict
from orchestrator.publish.verdicts.rounds import Question, Stock, next_round
from orchestrator.publish.verdicts.significance import MIN_PAIRS
from orchestrator.spec.spec import SeedAxis, Spec, seed_axis
from orchestrator.views.errors import ConflictError
from orchestrator.views.evidence import CellSeeds, CellVerdictView, LeftOut, ResolutionBudget, ResolutionRound
from orchestrator.views.runs import Labels, SweepLook, SweepResults, TrialResult
from orchestrator.views.states import TrialState
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class OpenComparisons:
    """The undecided comparisons of a table: those that more seeds may decide, and those that they will not."""

    questions: tuple[Question[Judgeable], ...]
    hopeless: Mapping[Judgeable, str]
    """The comparisons that seeds do not decide, and why: a baseline is missing, a cell diverged."""
    cells: frozenset[int]
    """The cells that are compared, decided or not."""


def _open_comparisons(judged: JudgedTable, budget: ResolutionBudget, per_seed: int) -> OpenComparisons:
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
        elif verdict.word in ("no clear difference", "untested") and not _known(pair, verdict, budget.within):
            questions.append(_question(place, pair, verdict, budget.within, per_seed))
    cells = {cell for pair in judged.pairs.values() if pair.baseline is not None for cell in (pair.cell, pair.baseline)}
    return OpenComparisons(tuple(questions), hopeless, frozenset(cells))


def stock(results: SweepResults, axis: SeedAxis, since: int | None) -> Stock:
    """The seeds of each cell, and the seeds that it was given from the trial at position `since` on."""
    held: dict[int, set[int]] = {cell.index: set() for cell in results.cells}
    added: dict[int, set[int]] = {cell.index: set() for cell in results.cells}
    for trial in results.trials:
        seed = axis.by_label.get(trial.repeat_labels.get(axis.name, ""))
        if seed is not None:
            (held if since is None or trial.position < since else added)[trial.cell].add(seed)
    pruned = _pruned_candidates(results)
    hours = {
        cell.index: _hours([one for one in results.trials_of(cell.index) if (one.cell, one.candidate) not in pruned])
        for cell in results.cells
    }
    return Stock(
        seeds=tuple(axis.by_label.values()),
        seeds_of={cell: frozenset(seeds | added[cell]) for cell, seeds in held.items()},
        hours=hours,
        added={cell: len(seeds - held[cell]) for cell, seeds in added.items()},
    )


def _pruned_candidates(results: SweepResults) -> set[tuple[int, int]]:
    """The candidates, by cell and index, of which no further repeat is trained since a repeat was pruned."""
    return {(one.cell, one.candidate) for one in results.trials if one.state is TrialState.PRUNED}


def _pairs_a_seed(results: SweepResults, axis: SeedAxis) -> int:
    """How many repeats a seed has: several where another axis is repeated too."""
    others = {tuple(label for name, label in one.repeat_labels.items() if name != axis.name) for one in results.trials}
    return max(1, len(others))


def _spent_hours(results: SweepResults, since: int) -> float:
    """Hours of the finished trainings of the trials from a position on; reused trainings took none."""
    added = (one for one in results.trials if one.position >= since and not one.reused)
    return sum(one.seconds or 0.0 for one in added) / 3600


def _question(
    place: Judgeable, pair: CellPair, verdict: CellVerdict, within: float | None, per_seed: int
) -> Question[Judgeable]:
    assert pair.baseline is not None  # otherwise the comparison is hopeless
    seeds_needed = verdict.seeds_needed
    if seeds_needed is None:  # too few pairs for a test: seeds are needed for it first
        needed = -(-(MIN_PAIRS - verdict.pairs) // per_seed)
        return Question(place, pair.cell, pair.baseline, verdict.pairs // per_seed, needed)
    narrow = None if within is None else seeds_needed.narrow(within / pair.column.scale)
    known = [-(-one // per_seed) for one in (verdict.more, narrow) if one is not None]

    def chance(seeds: int) -> float:
        return 1.0 if narrow is not None and seeds * per_seed >= narrow else seeds_needed.chance(seeds * per_seed)

    return Question(place, pair.cell, pair.baseline, verdict.pairs // per_seed, min(known, default=None), chance)


def _known(pair: CellPair, verdict: CellVerdict, within: float | None) -> bool:
    """Whether the difference is known as closely as was asked for."""
    if within is None or verdict.interval is None:
        return False
    low, high = verdict.interval
    return (high - low) / 2 * pair.column.scale <= within


def _hours(trials: list[TrialResult]) -> float | None:
    """Hours on one slot for one more seed of every candidate of a cell, as long as its trainings took."""
    timed = [one.seconds for one in trials if one.seconds]
    if not timed:
        return None
    repeats = {tuple(sorted(one.repeat_labels.items())) for one in trials}
    return sum(timed) / len(timed) * len(trials) / len(repeats) / 3600


@dataclass(frozen=True, slots=True)
class Added:
    """The trials that a resolution has added to its sweep."""

    since: int  # the position of the first one
    lost: float = 0.0  # hours of their trainings that gave no result


@dataclass(frozen=True, slots=True)
class ResolutionStep:
    """The state of a resolution (seeds added until comparisons are decided) between two rounds."""

    judged: JudgedTable
    open_comparisons: OpenComparisons
    stock: Stock
    labels: Mapping[int, Labels]
    trials_a_seed: Mapping[int, int]
    """By cell: one for each candidate that is not pruned, and each other repeat."""
    spent: float
    """Hours of training since it began."""

    def comparisons(self) -> list[CellVerdictView]:
        """The current verdicts of the table."""
        return self.judged.view(self.labels).comparisons

    def next(self, number: int, budget: ResolutionBudget) -> ResolutionRound:
        """The next round of seeds of the resolution; it has no cells if the budget can decide nothing more."""
        left = budget if budget.hours is None else budget.model_copy(update={"hours": budget.hours - self.spent})
        drawn = next_round(self.open_comparisons.questions, self.stock, left)
        left_out = {**drawn.left_out, **self.open_comparisons.hopeless}
        return ResolutionRound(
            number=number,
            cells=[CellSeeds(cell=cell, labels=dict(self.labels[cell]), seeds=list(seeds))
                   for cell, seeds in drawn.seeds.items()],
            trials=sum(len(seeds) * self.trials_a_seed[cell] for cell, seeds in drawn.seeds.items()),
            hours=drawn.hours,
            open=len(self.open_comparisons.questions),
            left_out=[LeftOut(cell=place[0], labels=dict(self.labels[place[0]]), metric=place[2], why=why)
                      for place, why in left_out.items()],
        )  # fmt: skip

    def saved(self) -> int:
        """The trials saved compared with giving every compared cell as many seeds as the cell with the most."""
        most = max((self.stock.added[cell] for cell in self.open_comparisons.cells), default=0)
        return sum((most - self.stock.added[cell]) * self.trials_a_seed[cell] for cell in self.open_comparisons.cells)

    def summary(self) -> str:
        """A sentence on how many comparisons are decided, and how many will stay undecided."""
        total, still, never = (
            len(self.judged.pairs),
            len(self.open_comparisons.questions),
            len(self.open_comparisons.hopeless),
        )
        if not total:
            return "nothing is compared: no cell has a baseline"
        words = [f"{total - still - never} of {total} comparison{'s' * (total > 1)} decided"]
        words += [f"{still} open"] if still else []
        words += [f"{never} that seeds do not decide"] if never else []
        return ", ".join(words)


def resolution_step(
    results: SweepResults,
    table: str,
    looks: Sequence[SweepLook],
    catalog: Catalog,
    budget: ResolutionBudget,
    added: Added | None = None,
) -> ResolutionStep:
    """The state of a table's resolution; `added` are the trials that it has added so far.

    ConflictError where the sweep does not repeat its trainings by seed.
    """
    axis = seed_axis(Spec.model_validate(results.spec))
    if axis is None:
        raise ConflictError(f"seeds cannot be added to sweep {results.sweep}: it has no repeat axis that sets the seed")
    its_verdicts = judged(build.build(results, table, catalog), results, looks)
    per_seed = _pairs_a_seed(results, axis)
    candidates = dict.fromkeys((cell.index for cell in results.cells), 0)
    pruned = _pruned_candidates(results)
    for candidate in results.candidates:
        candidates[candidate.cell] += (candidate.cell, candidate.index) not in pruned
    return ResolutionStep(
        judged=its_verdicts,
        open_comparisons=_open_comparisons(its_verdicts, budget, per_seed),
        stock=stock(results, axis, None if added is None else added.since),
        labels={cell.index: cell.labels for cell in results.cells},
        trials_a_seed={cell: number * per_seed for cell, number in candidates.items()},
        spent=_spent_hours(results, added.since) + added.lost if added else 0.0,
    )
