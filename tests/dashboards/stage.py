"""A server of the real pages over a real store, on which a test plays the conductor's part."""

import math
import random

from orchestrator.publish import aggregate
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.views import runs
from orchestrator.views.evidence import ResolutionBudget
from orchestrator.views.runs import Failure, Order
from tests.api import played
from tests.dashboards import specimens
from tests.expanding import expand_queued
from workers.contract import Progress, Result

SPEC = """\
version: 1
name: sec-on-digits
recipe:
  dataset: digits
  backbone: {name: small_cnn, width: 16}
  embedding: 32
  sampler: {name: balanced, classes: 4, per_class: 8}
  iterations: 300
  validation: {name: class_holdout, folds: 3, fold: 0}
compare:
  loss: [triplet, semihard, normalized_npair, multi_similarity]
  regularizer: [none, l2, sec]
tune:
  regularizer.eta:
    - {values: [0.01, 0.001, 0.0001], when: {regularizer: l2}}
    - {values: [0.25, 0.5, 1.0], when: {regularizer: sec}}
repeat: {seed: [0, 1, 2]}
select: {metric: map@r, split: validation}
tables:
  main: {rows: [loss, regularizer], columns: [dataset], metrics: [nmi, f1, recall@1, map@r, norm_var]}
"""
SMALL_SPEC = played.SPEC.replace("iterations: 20", "iterations: 100")
DRAWN_SPEC = (
    SMALL_SPEC
    + """\
figures:
  bars: {kind: bars, metric: recall@1, x: loss, colour: loss}
  traces: {kind: curves, metric: map@r, colour: loss}
"""
)
TRACE = """\
Traceback (most recent call last):
  File "workers/train.py", line 88, in train
    loss = session.step(batch)
ValueError: <script>alert("no such class")</script>"""


class Stage:
    """The conductor's part: claims, reports, ends and settles by the store's own methods."""

    def __init__(self, service: Service, store: Store) -> None:
        self.service, self.store = service, store
        self.random = random.Random(7)
        fence = store.lease.acquire("stage", 36_000.0)
        assert fence is not None
        self.writer = store.writer(fence)

    def submit(self, text: str, begin: bool = True) -> int:
        """A sweep, expanded unless it is to stay queued."""
        sweep = self.service.submissions.submit(text.encode(), actor="ada@lab").id
        if begin:
            self.begin()
        return sweep

    def begin(self) -> None:
        """Expand what is queued."""
        expand_queued(self.store, self.writer)

    def start(self, upto: float = 0.5) -> Order:
        """Claim the next training and report its first part."""
        order = self.writer.claims.next()
        assert order is not None
        self.writer.events.write(runs.Started(order.attempt, "slot-1", "lab-3"))
        total = int(order.recipe["iterations"])
        for seq, step in enumerate(range(total // 10, int(total * upto) + 1, total // 10), start=1):
            self.report(order, seq, step)
        return order

    def report(self, order: Order, seq: int, step: int) -> None:
        """One message of a training."""
        total = int(order.recipe["iterations"])
        loss = math.exp(-2 * step / total) + self.random.random() / 20
        metrics = {
            "train/loss": loss, "train/lr": 1e-3, "train/regularizer": loss / 7, "train/norm_mean": 3 + loss,
            "train/norm_var": loss / 30, "validation/map@r": 0.6 - loss / 3, "validation/recall@1": 0.95 - loss / 4,
        }  # fmt: skip
        log = f"step {step}/{total}  loss {loss:.4f}  map@r {0.6 - loss / 3:.4f}  <b>not bold</b>\n"
        message = Progress(step=step, total=total, metrics=metrics, log=log)
        self.writer.events.write(runs.Progressed(order.attempt, seq, message))

    def finish(self, order: Order | None = None, diverged: bool = False, times: int = 1) -> Order:
        """Finish one or several trainings; returns the last."""
        for _ in range(times - 1):
            self.finish()
        order = order or self.start(1.0)
        total, base = int(order.recipe["iterations"]), 0.5 + self.random.random() / 8
        keys = [
            f"{mark}/{split}/{name}"
            for mark in ("best", "last")
            for split in ("validation", "test")
            for name in played.METRICS
        ]
        metrics = {key: base + self.random.random() / 10 for key in keys}
        curve = [(step, math.exp(-2 * step / total)) for step in range(total // 10, total + 1, total // 10)]
        result = Result(
            outcome="diverged" if diverged else "ok",
            metrics=dict.fromkeys(keys, float("nan")) if diverged else metrics,
            curves={
                "train/loss": curve[:4] + [(step, math.nan) for step, _ in curve[4:]] if diverged else curve,
                "train/norm_var": [(step, value / 30) for step, value in curve],
                "validation/map@r": [(step, 0.7 - value / 3) for step, value in curve],
            },
            best_step=None if diverged else total * 8 // 10,
            steps=total,
            seconds=8.25,
            artifacts=["queries.npz"],
            provenance={
                "device": "cpu",
                "threads": 1,
                "git_commit": "b5bef52",
                "versions": {"torch": "2.6.0"},
                "queries": {"test": {"file": "queries.npz"}},
            },
        )
        self.writer.events.write(runs.Finished(order.attempt, result))
        return order

    def fail(self, order: Order | None = None, message: str = 'ValueError: <script>alert("hi")</script>') -> None:
        """A training that ends without a result."""
        order = order or self.start(0.3)
        self.writer.events.write(runs.Failed(order.attempt, Failure("recipe", message, TRACE), requeue=False))

    def settle(self) -> None:
        """Settle the cells, and then the sweeps, whose trials have all ended."""
        for sweep, cell in self.store.sweeps.cells_to_settle():
            summary = aggregate.summaries(self.store.trial_results.of(sweep), "higher")[cell]
            self.writer.events.write(runs.CellSettled(sweep, summary))
        for sweep in self.writer.sweeps.unsettled():
            self.writer.events.write(runs.SweepSettled(sweep))

    def resolve(self, sweep: int) -> None:
        """A resolution under way."""
        budget = ResolutionBudget(hours=2, seeds=12)
        asked = self.service.resolutions.request(sweep, budget, actor="ada@lab").id
        self.writer.resolutions.begin(sweep, asked, "main", budget, "ada@lab")
        (going,) = self.store.resolutions.going(sweep)
        self.writer.resolutions.grow(going, specimens.resolution(), {})

    def obey(self) -> None:
        """Apply the requests of the pages' forms."""
        for request in self.store.requests.pending():
            act = self.writer.trials.cancel if request.kind == "cancel" else self.writer.trials.retry
            self.writer.requests.applied(request.id, f"{act(request.sweep, request.trial)} trials")
