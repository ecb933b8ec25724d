"""What resolving a table saves beside as many seeds for every cell: on drawn numbers, and on digits.

    python -m benchmarks.resolving --drawn [--tables 1000] [--plan 5] [--seeds 20]
    python -m benchmarks.resolving --foreseen [--tables 60] [--plan 5] [--seeds 20]
    python -m benchmarks.resolving --digits FOLDER [--plan 5] [--seeds 20] [--losses triplet] [--beside widths]
        [--engine inline]

Drawn: tables of two losses and three regularizers, each compared with `none` of its loss, whose true differences are
known, in standard deviations of a paired difference. Foreseen: how many comparisons of such tables are foreseen to be
decided, from a plan that was seen before, and how many are, of new seeds. Digits: a sweep of one loss or several
through `metricsweep serve`, resolved over REST, and then the same sweep with all seeds for all cells: what the
resolution left out.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from api.client import Client
from api.discovery import connect
from api.local.serve import Stack
from orchestrator.publish.statistics import statistic
from orchestrator.publish.verdicts.boundary import boundary
from orchestrator.publish.verdicts.replay import Design, Played, Supposed, World, for_all, resolved
from orchestrator.publish.verdicts.rounds import Limits
from orchestrator.publish.verdicts.shrinkage import Shrinkage
from orchestrator.publish.verdicts.spending import ANY
from orchestrator.settings import Settings
from orchestrator.views.foresight import SupposedTruth
from orchestrator.views.outcomes import Statistic
from orchestrator.views.resolutions import ResolutionBudget, ResolutionView
from orchestrator.views.verdicts import CellVerdictView

LOSSES, REGULARIZERS, PLAYS = 2, 3, 10
WORLDS: Final[Mapping[str, Sequence[float]]] = {
    "0 (nothing differs)": (0,) * 6,
    "0.5": (0.5,) * 6,
    "1": (1,) * 6,
    "1.5": (1.5,) * 6,
    "2": (2,) * 6,
    "3": (3,) * 6,
    "0, 0.5, 1, 1.5, 2, 3": (0, 0.5, 1, 1.5, 2, 3),
}
"""The true differences of the six comparisons."""

BESIDE: Final[Mapping[str, tuple[str, Sequence[Any], str]]] = {
    "regularizers": (
        "regularizer",
        ("none", {"name": "l2", "eta": 0.01}, {"name": "sec", "eta": 0.5}, {"name": "svmax", "eta": 0.5}),
        "none",
    ),
    "widths": ("embedding", (32, 2, 4, 8, 64), "32"),
}
"""What the cells of a loss are told apart by: the axis, its values, and the label that the others are compared with."""
SEEN: Final[Mapping[str, tuple[int, Sequence[tuple[float, float]]]]] = {
    "one loss, 0 of 3 decided": (10, ((0.92, 2.76), (2.83, 7.03), (1.69, 5.70))),
    "two losses, 1 of 6 decided": (
        15, ((0.92, 3.40), (2.83, 8.66), (1.69, 7.02), (0.95, 5.41), (3.75, 6.21), (1.74, 9.10)),
    ),
}  # fmt: skip
"""Of docs/results/resolved_digits.md after five seeds: the seeds that were allowed beyond them, and by comparison the
difference and the half width of its interval, in points."""
Play = Callable[[Any, Sequence[Supposed]], Played]


def supposed(effects: Sequence[float]) -> list[Supposed]:
    places = [(loss, which) for loss in range(LOSSES) for which in range(1, REGULARIZERS + 1)]
    cells = [(loss * (REGULARIZERS + 1), loss * (REGULARIZERS + 1) + which) for loss, which in places]
    return [Supposed(cell, baseline, effect, 1.0) for (baseline, cell), effect in zip(cells, effects, strict=True)]


def plays(plan: int, seeds: int) -> Iterator[tuple[str, Play]]:
    for says, any_time in (("planned", False), ("any", True)):
        design = Design(plan, Limits(seeds=seeds - plan), any_time=any_time)
        yield f"resolved, `looks: {says}`", partial(resolved, design=design)
        together = partial(for_all, design=design, seeds=seeds, until_decided=True)
        yield f"all cells seed by seed until all is decided, `looks: {says}`", together
    fixed = partial(for_all, design=Design(plan, Limits()), seeds=seeds, until_decided=False)
    yield f"{seeds} seeds for all, one look", fixed


def drawn(tables: int, plan: int, seeds: int) -> None:
    print(f"{tables} tables of {LOSSES * REGULARIZERS} comparisons, {plan} to {seeds} seeds, {os.cpu_count()} cores\n")
    print("| true differences | who is given seeds | tables with a false verdict | decided | trainings | rounds |")
    print("|---|---|--:|--:|--:|--:|")
    for name, effects in WORLDS.items():
        for says, play in plays(plan, seeds):
            random = np.random.default_rng(20_261_123)
            found = [play(random, supposed(effects)) for _ in range(tables)]
            false = np.mean([not all(one.right) for one in found])
            decided = np.mean([word in ("better", "worse") for one in found for word in one.words])
            trainings = np.mean([one.trainings for one in found])
            rounds = np.mean([one.rounds for one in found])
            print(f"| {name} | {says} | {false:.1%} | {decided:.0%} | {trainings:.0f} | {rounds:.1f} |", flush=True)


def foreseen(tables: int, plan: int, seeds: int) -> None:
    """By what was seen as it is (a flat prior), and shrunk; each is played as often as what is true."""
    print(f"{tables} tables of {LOSSES * REGULARIZERS} comparisons, {plan} to {seeds} seeds, {os.cpu_count()} cores\n")
    print("| true differences | | decided, of 6 | off, of one comparison | trainings |\n|---|---|--:|--:|--:|")
    design = Design(plan, Limits(seeds=seeds - plan))
    ways = ("decided", "foreseen, as seen", "**foreseen, shrunk**")
    for name, effects in WORLDS.items():
        random = np.random.default_rng(20_261_123)
        shares: dict[str, list[Any]] = {way: [] for way in ways}
        trainings: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(tables):
            truth = supposed(effects)
            seen = [statistic(one) for one in World(random, truth).differences(plan)]
            shrunk = Shrinkage(seen)
            draws: dict[str, Callable[[], list[Supposed]]] = {
                "decided": partial(list, truth),
                "foreseen, as seen": partial(as_seen, random, truth, seen),
                "**foreseen, shrunk**": partial(as_shrunk, random, truth, seen, shrunk),
            }
            for way, draw in draws.items():
                found = [resolved(random, draw(), design) for _ in range(PLAYS)]
                shares[way].append(np.mean([[one in ("better", "worse") for one in play.words] for play in found], 0))
                trainings[way].append(float(np.mean([play.trainings for play in found])))
        for way in ways:
            decided = np.mean(np.sum(shares[way], axis=1))
            off = np.mean(np.abs(np.array(shares[way]) - np.mean(shares["decided"], axis=0)))
            said = "" if way == "decided" else f"{off:.0%}"
            print(f"| {name} | {way} | {decided:.1f} | {said} | {np.mean(trainings[way]):.0f} |", flush=True)


def foreseen_on_digits() -> None:
    """What is foreseen of the digits of docs/results/resolved_digits.md, by what their first five seeds showed."""
    for name, (further, shown) in SEEN.items():
        critical = boundary(0.05 / len(shown), ANY).at(5)
        seen = [Statistic(mean, half / critical * 5**0.5, 5) for mean, half in shown]
        truth = [replace(one, margin=2.0) for one in supposed((0.0,) * 6)[: len(seen)]]
        design, shrunk, random = (
            Design(5, Limits(seeds=further), any_time=True),
            Shrinkage(seen),
            np.random.default_rng(1),
        )
        for way in ("as seen", "shrunk"):
            drawn_ones = [
                as_seen(random, truth, seen) if way == "as seen" else as_shrunk(random, truth, seen, shrunk)
                for _ in range(PLAYS * 12)
            ]
            found = [resolved(random, one, design) for one in drawn_ones]
            decided = np.mean([sum(word in ("better", "worse", "equivalent") for word in one.words) for one in found])
            low, middle, high = np.quantile([one.trainings for one in found], [0.1, 0.5, 0.9])
            print(f"{name}; {way}: {decided:.1f}, {middle:.0f} trainings ({low:.0f} to {high:.0f})", flush=True)


def as_seen(random: Any, truth: Sequence[Supposed], seen: Sequence[Statistic]) -> list[Supposed]:
    """What was foreseen by before: each comparison for itself, normal, by a flat prior."""
    drawn_ones = []
    for one, it in zip(truth, seen, strict=True):
        std = (it.std or 0.0) * ((it.n - 1) / random.chisquare(it.n - 1)) ** 0.5
        drawn_ones.append(replace(one, effect=random.normal(it.mean, std / it.n**0.5), std=std))
    return drawn_ones


def as_shrunk(random: Any, truth: Sequence[Supposed], seen: Sequence[Statistic], shrunk: Shrinkage) -> list[Supposed]:
    width = shrunk.width(random)
    found = [shrunk.drawn(random, width, it) for it in seen]
    return [replace(one, effect=it.effect, std=it.std) for one, it in zip(truth, found, strict=True)]


def spec(plan: Sequence[int], name: str, losses: Sequence[str], beside: str = "regularizers") -> bytes:
    """The demo's recipe with a smaller network; eta is fixed, so that a cell is one candidate."""
    axis, values, against = BESIDE[beside]
    return json.dumps({
        "version": 1, "name": name,
        "recipe": {
            "task": "retrieval", "dataset": "digits", "backbone": {"name": "mlp", "width": 32}, "head": "bn_fc",
            "embedding": 32, "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
            "optimizer": {"name": "adam", "lr": 1.0e-3}, "iterations": 100, "evaluate_every": 100,
            "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
        },
        "compare": {
            "loss": list(losses),
            axis: list(values),
        },
        "repeat": {"seed": list(plan)},
        "tables": {"main": {
            "rows": ["loss", axis], "columns": [], "metrics": ["map@r"],
            "verdicts": {"margin": 2, "looks": "any", "against": {axis: against}},
        }},
    }).encode()  # fmt: skip


def digits(home: Path, plan: int, seeds: int, engine: str, losses: Sequence[str], beside: str) -> None:
    config = Settings(home=home, host="127.0.0.1", engine=engine)
    with Stack(config) as stack, ExitStack() as closing:
        stack.start()
        client = closing.enter_context(connect(stack.addresses["api"], None, config.resolved_home))
        sweep = client.submit(spec(range(plan), "resolved-digits", losses, beside)).id
        began = time.monotonic()
        ended(client, sweep)
        print(f"plan of {plan} seeds: {client.sweep(sweep).counts.finished} trainings, {clock(began)}")
        budget = ResolutionBudget(seeds=seeds - plan)
        foreseen = client.resolutions.foresee(
            spec(range(plan), "foreseen", losses, beside), budget, SupposedTruth(like=sweep)
        )
        for one in foreseen.comparisons:
            print(f"foreseen: {', '.join(one.labels.values())}: {one.supposed}; decided {one.decided:.0%}, "
                  f"{one.seeds:.1f} seeds")  # fmt: skip
        print(f"foreseen: {foreseen.said}, {foreseen.trials:.0f} trials ({foreseen.low_trials} to "
              f"{foreseen.high_trials})")  # fmt: skip
        began = time.monotonic()
        found = waited(client, sweep, budget)
        print(f"resolved: {found.trials} trials in {len(found.rounds)} rounds, {clock(began)}: {found.said}\n")
        print("| cell | before | after | seeds |\n|---|---|---|--:|")
        held = {tuple(one.labels.values()): one for one in client.grid(sweep)}
        for before, after in zip(found.before, found.after, strict=True):
            labels = tuple(before.labels.values())
            number = sum(len(one.trials) for one in held[labels].candidates)
            print(f"| {', '.join(labels)} | {said(before)} | {said(after)} | {number} |")
        for step in found.rounds:
            given = "; ".join(f"{', '.join(c.labels.values())}: {c.seeds[0]} to {c.seeds[-1]}" for c in step.cells)
            print(f"\nround {step.number}: {step.open} open, {step.trials} trials, {given}")
        print(client.verdicts(sweep).said)
        most = max(sum(len(one.trials) for one in cell.candidates) for cell in held.values())
        whole = client.submit(spec(range(most), "all-seeds-digits", losses, beside)).id
        ended(client, whole)
        print(f"\nwith {most} seeds for all: {client.sweep(whole).counts.finished} trainings")
        for verdict in client.verdicts(whole).comparisons:
            print(f"| {', '.join(verdict.labels.values())} | {said(verdict)} |")
        trained = client.sweep(sweep).counts.finished
        print(f"\n{trained} trainings instead of {client.sweep(whole).counts.finished}")


def waited(client: Client, sweep: int, budget: ResolutionBudget) -> ResolutionView:
    asked = client.resolutions.ask(sweep, budget)
    while client.request(asked.request).state == "waiting":
        time.sleep(0.5)
    while (found := client.resolutions.get(sweep)).state == "going":
        time.sleep(1)
    return found


def said(one: CellVerdictView) -> str:
    difference = "" if one.difference is None else f", {100 * one.difference:+.2f}"
    interval = "" if not one.interval else f" [{100 * one.interval[0]:+.2f}, {100 * one.interval[1]:+.2f}]"
    return f"{one.said}{difference}{interval}"


def ended(client: Client, sweep: int) -> None:
    while client.sweep(sweep).state in ("queued", "running"):
        time.sleep(1)


def clock(began: float) -> str:
    return f"{(time.monotonic() - began) / 60:.1f} min"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", action="store_true")
    parser.add_argument("--foreseen", action="store_true")
    parser.add_argument("--digits", type=Path, metavar="FOLDER")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--plan", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--losses", nargs="+", default=["triplet", "multi_similarity"])
    parser.add_argument("--beside", choices=list(BESIDE), default="regularizers", help="what is compared in each loss")
    parser.add_argument("--engine", default="ray_tune", help="or inline: one training after the other")
    asked = parser.parse_args()
    if asked.drawn:
        drawn(asked.tables, asked.plan, asked.seeds)
    if asked.foreseen:
        foreseen_on_digits()
        foreseen(min(asked.tables, 60), asked.plan, asked.seeds)
    if asked.digits:
        digits(asked.digits, asked.plan, asked.seeds, asked.engine, asked.losses, asked.beside)


if __name__ == "__main__":
    main()
