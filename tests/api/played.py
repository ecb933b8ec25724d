"""A spec of four trials, and a conductor that a test plays by hand: it writes what a real one would."""

import io
from pathlib import Path
from typing import TextIO

from fastapi.testclient import TestClient

from api.commands.terminal import Output
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.upkeep import Renewal
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.store import Store
from orchestrator.views import runs
from orchestrator.views.runs import Failure, Order
from tests.expanding import expand_queued
from workers import catalog
from workers.contract import Progress, Result

YAML = {"Content-Type": "application/yaml"}
SPEC = """\
version: 1
name: four-trials
recipe:
  dataset: digits
  backbone: {name: mlp, width: 16}
  embedding: 16
  sampler: {name: balanced, classes: 4, per_class: 4}
  iterations: 20
  validation: {name: class_holdout, folds: 3, fold: 0}
compare:
  loss: [triplet, semihard]
repeat: {seed: [0, 1]}
select: {metric: map@r, split: validation}
tables:
  main: {rows: [loss], columns: [dataset], metrics: [recall@1, map@r]}
"""
METRICS = ("recall@1", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var", "s_mu")


def result(value: float = 0.5, diverged: bool = False) -> Result:
    """What a training gives whose every metric is `value`."""
    keys = [
        f"{mark}/{split}/{name}" for mark in ("best", "last") for split in ("validation", "test") for name in METRICS
    ]
    return Result(
        outcome="diverged" if diverged else "ok",
        metrics={} if diverged else dict.fromkeys(keys, value),
        curves={"train/loss": [(10, 0.4), (20, float("nan") if diverged else 0.2)]},
        best_step=None if diverged else 20,
        steps=20,
        seconds=1.5,
        provenance={"device": "cpu"},
    )


class Conductor:
    """Holds the lease and writes through the store's own methods."""

    def __init__(self, store: Store) -> None:
        self.store = store
        fence = store.lease.acquire("played", 3600.0)
        assert fence is not None
        self.writer = store.writer(fence)

    def submit(self, http: TestClient, text: str = SPEC) -> int:
        """Have a client submit a sweep, and expand it."""
        answer = http.post("/v1/sweeps", content=text, headers=YAML)
        assert answer.status_code == 201, answer.text
        self.begin()
        return int(answer.json()["id"])

    def begin(self) -> None:
        """Expand every queued sweep, as the real one does."""
        expand_queued(self.store, self.writer)

    def start(self) -> Order:
        """Claim the next training and report half of it."""
        order = self.writer.claims.next()
        assert order is not None
        self.writer.events.write(runs.Started(order.attempt, "slot-0", "lab"))
        half = Progress(step=10, total=20, metrics={"train/loss": 0.4}, log="step 10/20 <half>\n")
        self.writer.events.write(runs.Progressed(order.attempt, 1, half))
        return order

    def finish(self, value: float = 0.5, diverged: bool = False, times: int = 1) -> None:
        """Train the next trainings to their end."""
        for _ in range(times):
            self.writer.events.write(runs.Finished(self.start().attempt, result(value, diverged)))

    def fail(self, message: str = "ValueError: no such thing") -> None:
        """Let the next training fail."""
        failure = Failure("recipe", message, "Traceback ...")
        self.writer.events.write(runs.Failed(self.start().attempt, failure, requeue=False))

    def settle(self) -> None:
        """Settle the sweeps whose trials have all ended."""
        for sweep in self.writer.sweeps.unsettled():
            self.writer.events.write(runs.SweepSettled(sweep))

    def obey(self, mirror: Mirror | None = None) -> None:
        """Apply the requests of clients."""
        for request in self.store.requests.pending():
            renewal = Renewal(self.store, self.writer, catalog.load())
            Requests(self.store, self.writer, catalog.load(), mirror, Path("nowhere"), renewal).apply(request)


class Into(Output):
    """What commands print, into a text; a terminal's, or a file's."""

    def __init__(self, text: io.StringIO, terminal: bool = False) -> None:
        super().__init__()
        self._text, self._looked_at = text, terminal
        text.isatty = lambda: terminal  # type: ignore[method-assign]

    @property
    def stream(self) -> TextIO:
        return self._text

    @property
    def is_terminal(self) -> bool:
        return self._looked_at
