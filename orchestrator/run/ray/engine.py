"""The engine `ray_tune`: gives orders to detached slot actors and hands their messages to the broker."""

import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ray
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.host.slot_environment import for_slots
from orchestrator.run.attempt import Workplace, inspect, seen
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Broker, Site
from orchestrator.run.ray import require_tokens
from orchestrator.run.ray.pool import NAMESPACE, HeldSlot, SlotPool, alive_nodes
from orchestrator.run.ray.tune import TuneTrials
from orchestrator.run.spool import Message
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, Shape, SlotReport, shape_of
from workers.catalog import Finding, Need

TURN_SECONDS: Final = 0.25
"""How long a turn of the loop waits for reports."""
WATCH_SECONDS: Final = 0.5
LINGER_SECONDS: Final = 60.0
"""How long it goes on while nothing trains: ending Tune takes several seconds."""
REACH_SECONDS: Final = 10.0
"""How long a cluster that did not answer is left alone."""

ENVIRONMENT: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "31536000",  # the database is the record; Tune's snapshot costs time and is never read
    "TUNE_WARN_THRESHOLD_S": "10",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}

POLL_SECONDS: Final = 5.0
"""How long a slot holds a question while there is nothing to say; a message is answered at once."""
MOST_BUNDLES: Final = 256
"""More than that is told once these have come."""
AGAIN_SECONDS: Final = 60.0
"""A head that was started anew forgets it, and a conductor that lost its lease withdraws it behind our back."""
PATIENCE_SECONDS: Final = 120.0
"""An inspection that takes longer is given up; a training then says itself what it lacks."""


class RayTune:
    """Runs orders on a Ray cluster, on slot actors. A process has one of these."""

    def __init__(
        self,
        workplace: Workplace,
        address: str | None,
        scratch: Path,
        limit: int | None = None,
        linger: float = LINGER_SECONDS,
    ) -> None:
        self._workplace, self._address = workplace, address
        self._limit = min(limit or MOST_TRAININGS, MOST_TRAININGS)
        self._scratch, self._linger = scratch, linger
        self._pool: SlotPool | None = None
        self._dispatch: Dispatch[HeldSlot] | None = None
        self._demand = ClusterDemand()
        self._inspections = Inspections(workplace)
        self._tried = float("-inf")
        os.environ.update(ENVIRONMENT)
        os.environ.update(for_slots(os.environ))
        logging.getLogger("ray.tune").setLevel(logging.ERROR)

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none or the broker is closing."""
        self._connect()
        pool = self._pool = SlotPool(broker, self._limit, self._workplace.edition)
        dispatch = self._dispatch = Dispatch(broker, pool, self._workplace)
        trials = TuneTrials(self._scratch, pool.namespace)
        try:
            self._serve(broker, dispatch, trials)
        finally:
            trials.training = dispatch.seen
            trials.end(closing=broker.closing())

    def _serve(self, broker: Broker, dispatch: Dispatch[HeldSlot], trials: TuneTrials) -> None:
        """Give orders to slots, and hand on to the broker what they say, until nothing has come for a while."""
        listening = Listening()
        busy = watched = time.monotonic()
        while not broker.closing():
            broker.tick()
            for begun in dispatch.begun():
                listening.follow(begun)
                trials.follow(begun.order, begun.slot.name, begun.seen)
            trials.training = dispatch.seen
            now = time.monotonic()
            if dispatch.busy():
                busy = now
            elif now - busy >= self._linger:
                return
            for report in listening.reports(TURN_SECONDS):
                dispatch.take(report)
            if now - watched > WATCH_SECONDS:
                watched = now
                dispatch.watch()

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
        left = max(0, self._limit - len(training))
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


class Listening:
    """Asks each slot that trains for its next messages, one request at a time, answered once there are some."""

    def __init__(self) -> None:
        self._asked: dict[ray.ObjectRef, tuple[Execution[HeldSlot], bool]] = {}

    def follow(self, execution: Execution[HeldSlot]) -> None:
        """Listen to another training; its first report comes at once and names its host."""
        self._ask(execution, 0.0, first=True)

    def reports(self, wait: float) -> Iterator[Report]:
        """What has come; waits up to `wait` seconds for the first."""
        if not self._asked:
            time.sleep(wait)
            return
        asked = list(self._asked)
        if ray.wait(asked, timeout=wait)[0]:
            for answer in ray.wait(asked, num_returns=len(asked), timeout=0)[0]:
                yield from self._heard(answer)

    def _ask(self, execution: Execution[HeldSlot], wait: float, *, first: bool = False) -> None:
        answer = execution.slot.actor.listen.remote(execution.order.attempt, execution.seen, wait)
        self._asked[answer] = (execution, first)

    def _heard(self, answer: ray.ObjectRef) -> Iterator[Report]:
        execution, first = self._asked.pop(answer)
        try:
            heard = ray.get(answer)
        except RayError as error:  # the actor is gone, or its answer went with its node
            yield Report(execution.order.attempt, lost=_cause(error))
            return
        lines, host = heard["lines"], heard["host"] if first else None
        yield Report(execution.order.attempt, lines, host, worn=heard["worn"])
        if not (lines and Message.of(lines[-1]).final):
            self._ask(execution, POLL_SECONDS)


class ClusterDemand:
    """Ray's standing request for resources, which its autoscaler counts as pending demand until it is withdrawn."""

    def __init__(self) -> None:
        self._told: str | None = None
        self._at = 0.0

    def tell(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Ask for room for both; the request is for all of it, since what trains takes of the same nodes."""
        bundles = [shape.bundle for shape in (*training, *waiting)][:MOST_BUNDLES]
        bundles.sort(key=lambda bundle: sorted(bundle.items()))
        said = json.dumps(bundles)
        if said != self._told or (bundles and time.monotonic() - self._at > AGAIN_SECONDS):
            request_resources(bundles=bundles)
            self._told, self._at = said, time.monotonic()

    def withdraw(self) -> None:
        """Ask for nothing any more."""
        if self._told not in (None, "[]"):
            request_resources(bundles=[])
        self._told = None


@dataclass(frozen=True, slots=True)
class _Inspection:
    machine: Node
    needs: Sequence[Need]
    answer: Any
    began: float


class Inspections:
    """The inspections that are under way."""

    def __init__(self, workplace: Workplace, patience: float = PATIENCE_SECONDS) -> None:
        self._workplace, self._patience = workplace, patience
        self._task = ray.remote(num_cpus=0, max_retries=0)(inspect)
        self._begun: list[_Inspection] = []

    def begin(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start one; it goes to that node or fails."""
        there = NodeAffinitySchedulingStrategy(machine.uid, soft=False)
        answer = self._task.options(scheduling_strategy=there).remote(self._workplace, list(needs))
        self._begun.append(_Inspection(machine, needs, answer, time.monotonic()))

    def ended(self) -> list[Inspected]:
        """What those have found that have ended since, or that nobody waits for any more."""
        found: list[Inspected] = []
        for one in list(self._begun):
            if ray.wait([one.answer], timeout=0)[0] or time.monotonic() - one.began > self._patience:
                self._begun.remove(one)
                found += seen(one.machine, one.needs, lambda one=one: _answer(one))  # type: ignore[misc]
        return found


def _answer(one: _Inspection) -> Iterable[Finding]:
    """What an inspection found; one that has not ended is, and raises GetTimeoutError."""
    try:
        answer: list[Finding] = ray.get(one.answer, timeout=0)
    except ray.exceptions.GetTimeoutError:
        ray.cancel(one.answer, force=True)
        raise
    return answer


def connect(address: str | None, patience: float = 30.0) -> None:
    """Join the Ray cluster at `address`, or start a local one; ConnectionError when it does not answer."""
    if ray.is_initialized():
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            # Ray has all workers search the current folder of its driver for modules; the root is nobody's to write to.
            with contextlib.chdir("/"):
                ray.init(
                    address=address or "local",
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level="error",
                    include_dashboard=False if not address else None,
                )
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"Ray at {address} does not answer: {error}") from error
            time.sleep(1.0)


def _cause(error: Exception) -> str:
    """Ray's sentences about a slot that died, without the lines of the actor's fields: what may have killed it comes
    last."""
    sentences = " ".join(line for line in str(error).splitlines() if not line.startswith("\t"))
    return f"{type(error).__name__}: {' '.join(sentences.split())}"[:500]
