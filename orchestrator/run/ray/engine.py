"""The Ray Tune engine: Tune's trials relay what detached slot actors train."""

import contextlib
import logging
import os
import shutil
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune.search import ConcurrencyLimiter, Searcher

from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.run.ray.actor_reuse import ActorReuse, relay_bundle
from orchestrator.run.ray.cluster import alive_nodes, connect
from orchestrator.run.ray.deferred_error import DeferredError
from orchestrator.run.ray.demand import ClusterDemand
from orchestrator.run.ray.dispatch import Dispatch
from orchestrator.run.ray.inspections import Looks
from orchestrator.run.ray.pool import SlotPool
from orchestrator.run.ray.relay import Relay
from orchestrator.views.errors import UnavailableError
from orchestrator.views.nodes import Inspected, Node
from orchestrator.views.resources import shape_of
from orchestrator.views.slot import MOST_TRAININGS, Slot
from workers.catalog import Need

TRIALS_PER_TUNER: Final = 1_000
"""Tune keeps every trial in memory; a Tuner is replaced after this many, and its slots train on meanwhile."""
LINGER_SECONDS: Final = 60.0
"""How long an idle Tuner waits for more: ending one takes Tune several seconds."""
REACH_SECONDS: Final = 10.0
"""How long a cluster that did not answer is left alone."""

ENVIRONMENT: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "31536000",  # the database is the record; Tune's snapshot costs time and is never read
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_MAX_PENDING_TRIALS_PG": "16",
    "TUNE_WARN_THRESHOLD_S": "10",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "MALLOC_ARENA_MAX": "1",  # for the slots of a local Ray: see docs/decisions/freed-memory.md
}


class Unkept:
    """Tune pickles what it is given, to restore it later. Nothing is ever restored here, so nothing is kept."""

    def __getstate__(self) -> None:
        return None


class BrokerSearcher(Unkept, Searcher):  # type: ignore[misc]
    """What Tune calls its search algorithm: the broker's orders, in the broker's order."""

    def __init__(self, dispatch: Dispatch, broker: Broker, linger: float, trouble: DeferredError) -> None:
        super().__init__()
        self._dispatch, self._desk, self._linger, self._trouble = dispatch, broker, linger, trouble
        self._busy_at = time.monotonic()
        self.suggested = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """A relay's assignment; None: nothing now; FINISHED ends this Tuner.

        While nothing trains Tune only asks here, once a second: that is then the conductor's turn.
        """
        finished: dict[str, Any] | str | None = Searcher.FINISHED
        return self._trouble.guard(lambda: self._suggest(trial_id), finished)

    def _suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        if self._dispatch.busy():
            self._busy_at = time.monotonic()
        else:
            self._desk.tick()
        if self._desk.closing():
            return Searcher.FINISHED  # type: ignore[no-any-return]
        if self.suggested < TRIALS_PER_TUNER:
            assignment = self._dispatch.next_relay(trial_id)
            if assignment is not None:
                self.suggested += 1
                return assignment
        idle = not self._dispatch.busy() and time.monotonic() - self._busy_at >= self._linger
        return Searcher.FINISHED if idle else None

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """News of a relay that goes on."""
        self._trouble.guard(lambda: self._dispatch.take(trial_id, result), None)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """A relay's last news."""
        if result and not error:
            self._trouble.guard(lambda: self._dispatch.take(trial_id, result), None)
        self._dispatch.relay_ended(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the database is the record."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: a Tuner is never restored."""


class Turn(Unkept, tune.Stopper):  # type: ignore[misc]
    """Tune polls a Stopper at every turn of its loop; that is where the conductor gets its own turn."""

    def __init__(self, dispatch: Dispatch, broker: Broker, searcher: BrokerSearcher, trouble: DeferredError) -> None:
        self._dispatch, self._desk, self._searcher, self._trouble = dispatch, broker, searcher, trouble
        self._watched = 0.0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never for one relay: it ends with its attempt."""
        return False

    def stop_all(self) -> bool:
        """Do the conductor's chores; True ends this Tuner, never what trains."""
        if self._trouble.guard(self._chores, True):
            self._dispatch.abandon_relays()
            return True
        return False

    def _chores(self) -> bool:
        self._desk.tick()
        if time.monotonic() - self._watched > 0.5:
            self._watched = time.monotonic()
            self._dispatch.watch()
        return self._desk.closing() or self._searcher.suggested >= TRIALS_PER_TUNER


class RayTune:
    """Runs orders on a Ray cluster. Use it from the main thread of its process: one Tuner lives in one process."""

    def __init__(
        self,
        workplace: Workplace,
        address: str | None,
        scratch: Path,
        limit: int | None = None,
        linger: float = LINGER_SECONDS,
    ) -> None:
        self._workplace, self._address, self._limit = workplace, address, limit
        self._scratch, self._linger = scratch, linger
        self._pool: SlotPool | None = None
        self._dispatch: Dispatch | None = None
        self._demand = ClusterDemand()
        self._looks = Looks(workplace)
        self._tried = float("-inf")
        os.environ.update(ENVIRONMENT)
        logging.getLogger("ray.tune").setLevel(logging.ERROR)  # it would lament the files that we never let it write

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none or the broker is closing."""
        self._connect()
        self._pool = SlotPool(self._limit, broker.installation(), self._workplace.edition)
        dispatch = self._dispatch = Dispatch(broker, self._pool, self._workplace)
        while not broker.closing():
            self._fit(dispatch, broker)
            if not dispatch.busy():
                return

    def nodes(self) -> Sequence[Node] | None:
        """The nodes of the cluster; none while it is not reached. A local one is only started by `run`."""
        if not ray.is_initialized() and not self._reached():
            return None
        with _answering():
            return alive_nodes() if self._pool is None else self._pool.nodes()

    def machines(self) -> Sequence[Node]:
        """The nodes that offer a CPU: a head or a conductor's own node may train nothing."""
        if self._workplace.inspect is None:
            return []
        return [node for node in self.nodes() or () if node.resources.get("CPU")]

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start a task on that node."""
        with _answering():
            self._looks.begin(machine, needs)

    def inspected(self) -> Sequence[Inspected]:
        """What tasks that have ended found."""
        if not ray.is_initialized():
            return []
        with _answering():
            return self._looks.ended()

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Tell an autoscaling cluster of what trains and what is waited for, up to the limit of slots."""
        if ray.is_initialized():
            with _answering():
                self._ask(waiting)

    def rest(self, broker: Broker) -> None:
        """While there is nothing to run: end in time what an earlier conductor left idle, and what nobody wants."""
        if self._pool is None and ray.is_initialized():
            with _answering():
                self._pool = SlotPool(self._limit, broker.installation(), self._workplace.edition)
                self._pool.reap()

    def leave(self) -> None:
        """End the slots that train nothing."""
        if self._pool is not None and ray.is_initialized():
            with _answering():
                self._pool.leave()

    def _ask(self, waiting: Sequence[Slot]) -> None:
        held = self._dispatch.held if self._dispatch is not None else None
        wanted = [*([] if held is None else [held.slot]), *waiting]
        training = []
        if self._pool is not None:
            self._pool.expect(waiting)
            self._pool.rest()
            training = self._pool.training()
        nodes = self.nodes() or ()
        left = len(wanted) if self._limit is None else max(0, self._limit - len(training))
        self._demand.tell(training, [shape_of(slot, nodes) for slot in wanted[:left]])

    def close(self) -> None:
        """Leave the cluster; detached slots train on."""
        if ray.is_initialized():
            with contextlib.suppress(RayError):  # a cluster that is gone has nothing to be told
                self._demand.withdraw()
            ray.shutdown()

    def _connect(self, patience: float = 30.0) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        connect(self._address, patience)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)  # ray.init puts its own in place

    def _reached(self) -> bool:
        """Join a cluster that answers, without waiting for one that does not."""
        host, _, port = (self._address or "").rpartition(":")
        if not port.isdigit() or time.monotonic() - self._tried < REACH_SECONDS:
            return False
        self._tried = time.monotonic()
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            self._connect(patience=0.0)
        except OSError:  # of which ConnectionError is one
            return False
        return True

    def _fit(self, dispatch: Dispatch, broker: Broker) -> None:
        trouble = DeferredError()
        searcher = BrokerSearcher(dispatch, broker, self._linger, trouble)
        name = f"relays-{uuid.uuid4().hex[:12]}"
        tuner = tune.Tuner(
            tune.with_resources(Relay, relay_bundle),
            tune_config=tune.TuneConfig(
                search_alg=ConcurrencyLimiter(searcher, max_concurrent=MOST_TRAININGS),
                scheduler=ActorReuse(),
                num_samples=-1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=name,
                storage_path=str(self._scratch),
                stop=Turn(dispatch, broker, searcher, trouble),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        finally:
            shutil.rmtree(self._scratch / name, ignore_errors=True)
        trouble.raise_again()


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Within Tune's loop an error of Ray's would end the conductor, where it only has to hold."""
    try:
        yield
    except RayError as error:
        raise UnavailableError(f"Ray does not answer: {error}") from error
