"""The Ray Tune engine: Tune's trials relay what detached slot actors train."""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import ray
from ray.exceptions import RayError

from orchestrator.host.slot_environment import for_slots
from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Dispatch
from orchestrator.run.engine import Broker, Site
from orchestrator.run.ray import require_tokens
from orchestrator.run.ray.assignment import Assignment
from orchestrator.run.ray.cluster import alive_nodes, connect
from orchestrator.run.ray.demand import ClusterDemand
from orchestrator.run.ray.inspections import Inspections
from orchestrator.run.ray.pool import SlotPool
from orchestrator.run.ray.slot_handle import HeldSlot
from orchestrator.run.ray.tuner import TunerThread
from orchestrator.spec.slot import Slot
from orchestrator.views.cluster import SlotReport
from orchestrator.views.errors import UnavailableError
from orchestrator.views.nodes import Inspected, Node
from orchestrator.views.resources import shape_of
from workers.catalog import Need

TURN_SECONDS: Final = 0.25
"""How long a turn of the loop waits for reports."""
WATCH_SECONDS: Final = 0.5
LINGER_SECONDS: Final = 60.0
"""How long an idle Tuner waits for more: ending one takes Tune several seconds."""
REACH_SECONDS: Final = 10.0
"""How long a cluster that did not answer is left alone."""

ENVIRONMENT: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "31536000",  # the database is the record; Tune's snapshot costs time and is never read
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_MAX_PENDING_TRIALS_PG": "16",
    "TUNE_WARN_THRESHOLD_S": "10",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class RayTune:
    """Runs orders on a Ray cluster: on slot actors, which Tune's trials follow. One of it lives in a process."""

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
        self._dispatch: Dispatch[HeldSlot] | None = None
        self._tuner = TunerThread(scratch)
        self._demand = ClusterDemand()
        self._inspections = Inspections(workplace)
        self._tried = float("-inf")
        os.environ.update(ENVIRONMENT)
        os.environ.update(for_slots(os.environ))
        logging.getLogger("ray.tune").setLevel(logging.ERROR)  # it would lament the files that we never let it write

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none or the broker is closing."""
        self._connect()
        pool = self._pool = SlotPool(broker, self._limit, self._workplace.edition)
        dispatch = self._dispatch = Dispatch(broker, pool, self._workplace)
        self._renew_tuner()  # an earlier one may have hung
        try:
            self._serve(broker, dispatch, pool)
        finally:
            self._tuner.end()

    def _serve(self, broker: Broker, dispatch: Dispatch[HeldSlot], pool: SlotPool) -> None:
        """The conductor's own loop: its chores, orders to slots, what trains to relays, reports to the broker."""
        busy = watched = time.monotonic()
        while not broker.closing():
            broker.tick()
            if self._tuner.spent:
                self._renew_tuner()
                dispatch.leave_all()
            for begun in dispatch.begun():
                self._tuner.follow(Assignment(begun.order, begun.slot.name, pool.namespace, begun.seen))
            now = time.monotonic()
            if dispatch.busy():
                busy = now
            elif now - busy >= self._linger:
                return
            for report in self._tuner.reports(TURN_SECONDS):
                dispatch.take(report)
            if now - watched > WATCH_SECONDS:
                watched = now
                dispatch.watch()

    def _renew_tuner(self) -> None:
        """Another Tuner in place of the present one; raises UnavailableError where that does not end."""
        self._tuner.end()
        self._tuner = TunerThread(self._scratch)

    def nodes(self) -> Sequence[Node] | None:
        """The nodes of the cluster; none while it is not reached. A local one is only started by `run`."""
        if not ray.is_initialized() and not self._reached():
            return None
        with _answering():
            return alive_nodes() if self._pool is None else self._pool.nodes()

    def slots(self) -> Sequence[SlotReport]:
        """The slot actors that this conductor knows."""
        if self._pool is None or not ray.is_initialized():
            return []
        with _answering():
            return self._pool.look(self._dispatch.seen if self._dispatch is not None else {})

    def machines(self) -> Sequence[Node]:
        """The nodes that offer a CPU: a head or a conductor's own node may train nothing."""
        if self._workplace.inspect is None:
            return []
        return [node for node in self.nodes() or () if node.resources.get("CPU")]

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start a task on that node."""
        with _answering():
            self._inspections.begin(machine, needs)

    def inspected(self) -> Sequence[Inspected]:
        """What tasks that have ended found."""
        if not ray.is_initialized():
            return []
        with _answering():
            return self._inspections.ended()

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Tell an autoscaling cluster of what trains and what is waited for, up to the limit of slots."""
        if ray.is_initialized():
            with _answering():
                self._ask(waiting)

    def rest(self, broker: Broker) -> None:
        """While there is nothing to run: end in time what an earlier conductor left idle, and what nobody wants."""
        if self._pool is None and ray.is_initialized():
            with _answering():
                self._pool = SlotPool(broker, self._limit, self._workplace.edition)
                self._pool.reap()

    def leave(self) -> None:
        """End the slots that train nothing."""
        if self._pool is not None and ray.is_initialized():
            with _answering():
                self._pool.rest(0.0)

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


def engine(site: Site) -> RayTune:
    """The engine `ray_tune`; raises MetricsweepError where the installed Ray knows no token."""
    require_tokens()
    return RayTune(site.workplace, site.address, site.scratch, site.slots, LINGER_SECONDS)


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Beside what trains an error of Ray's would end the conductor, where it only has to hold."""
    try:
        yield
    except RayError as error:
        raise UnavailableError(f"Ray does not answer: {error}") from error
