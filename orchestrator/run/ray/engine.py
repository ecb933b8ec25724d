"""The engine `ray_tune`: passes orders to detached slot actors, and their messages to the broker."""

import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, cast

import ray
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.host.slot_environment import for_slots
from orchestrator.run.attempt import Inspection, Workplace, inspect, results
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Broker, Engine, Site
from orchestrator.run.ray.pool import NAMESPACE, PooledSlot, SlotPool, alive_nodes
from orchestrator.run.ray.tune import TuneTrials
from orchestrator.run.spool import Message
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, Shape, SlotReport, shape_of
from workers.catalog import Finding, Need

_REACH_SECONDS: Final = 10.0  # the pause before the next attempt to reach a cluster that did not answer

_ENVIRONMENT: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "31536000",  # Tune's snapshots take time and are never read
    "TUNE_WARN_THRESHOLD_S": "10",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}

POLL_SECONDS: Final = 5.0  # how long a request for messages waits for the first
_MOST_BUNDLES: Final = 256  # in one request for resources
AGAIN_SECONDS: Final = 60.0
"""How often the request is repeated: a restarted head forgets it, and an earlier conductor may withdraw it."""


class RayTune(Engine):
    """Runs orders on the slot actors of a Ray cluster. A process has one such engine."""

    def __init__(self, workplace: Workplace, address: str | None, scratch: Path, limit: int | None = None) -> None:
        self._workplace, self._address, self._scratch = workplace, address, scratch
        self._limit = min(limit or MOST_TRAININGS, MOST_TRAININGS)
        self._pool: SlotPool | None = None
        self._dispatch: Dispatch[PooledSlot] | None = None
        self._demand = ClusterDemand()
        self._inspect_task = ray.remote(num_cpus=0, max_retries=0)(inspect)
        self._inspections: list[Inspection] = []
        self._tried = float("-inf")
        os.environ.update(_ENVIRONMENT)
        os.environ.update(for_slots(os.environ))
        logging.getLogger("ray.tune").setLevel(logging.ERROR)

    def run(self, broker: Broker) -> None:
        self._connect()
        pool = self._pool = SlotPool(broker, self._limit, self._workplace.edition)
        dispatch = self._dispatch = Dispatch(broker, pool, self._workplace)
        trials = TuneTrials(self._scratch, pool.namespace, dispatch.running)
        listening = Listening()

        def follow(execution: Execution[PooledSlot]) -> None:
            listening.follow(execution)
            trials.follow(execution)

        try:
            dispatch.serve(follow, listening.reports)
        finally:
            trials.end(closing=broker.closing())

    def nodes(self) -> Sequence[Node] | None:
        """The nodes of the cluster, or `None` while it is not connected. Only `run` starts a local cluster."""
        if not ray.is_initialized() and not self._reached():
            return None
        with _answering():
            return alive_nodes() if self._pool is None else self._pool.nodes()

    def slots(self) -> Sequence[SlotReport]:
        if self._pool is None or not ray.is_initialized():
            return []
        with _answering():
            return self._pool.reports(self._dispatch.seen if self._dispatch is not None else {})

    def machines(self) -> Sequence[Node]:
        """The nodes that offer CPUs, and so can inspect data; a head or the conductor's node may offer none."""
        if self._workplace.inspect is None:
            return []
        return [node for node in self.nodes() or () if node.resources.get("CPU")]

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Start a task that inspects data sets on a node; it fails if the node is gone."""
        there = NodeAffinitySchedulingStrategy(machine.uid, soft=False)
        with _answering():
            answer = self._inspect_task.options(scheduling_strategy=there).remote(self._workplace, list(needs))
        ended = partial(ray.wait, [answer], timeout=0)
        self._inspections.append(Inspection(machine, needs, lambda: ended()[0], partial(_findings, answer)))

    def inspected(self) -> Sequence[Inspected]:
        if not ray.is_initialized():
            return []
        with _answering():
            return results(self._inspections)

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Request the resources of running and waiting trainings from an autoscaler, up to the limit of slots."""
        if not ray.is_initialized():
            return
        held = self._dispatch.claimed if self._dispatch is not None else None
        needed = [*([] if held is None else [held.slot]), *waiting]
        with _answering():
            training = []
            if self._pool is not None:
                self._pool.expect(waiting)
                self._pool.rest()
                training = self._pool.training()
            nodes = self.nodes() or ()
            left = max(0, self._limit - len(training))
            self._demand.request(training, [shape_of(slot, nodes) for slot in needed[:left]])

    def rest(self, broker: Broker) -> None:
        """Adopt the slots of an earlier conductor, and end attempts without an order."""
        if self._pool is None and ray.is_initialized():
            with _answering():
                self._pool = SlotPool(broker, self._limit, self._workplace.edition)
                self._pool.reap()

    def leave(self) -> None:
        if self._pool is not None and ray.is_initialized():
            with _answering():
                self._pool.rest(0.0)

    def close(self) -> None:
        """Disconnect from the Ray cluster; detached slots continue to train."""
        if ray.is_initialized():
            with contextlib.suppress(RayError):  # the cluster may be gone
                self._demand.withdraw()
            ray.shutdown()

    def _connect(self, patience: float = 30.0) -> None:
        """Connect to the cluster, or start a local one; raises ConnectionError if it does not answer."""
        if ray.is_initialized():
            return
        handler = signal.getsignal(signal.SIGTERM)
        deadline = time.monotonic() + patience
        while not ray.is_initialized():
            try:
                # Ray's workers import modules from the current folder of the driver; nobody can write to the root.
                with contextlib.chdir("/"):
                    ray.init(
                        address=self._address or "local",
                        namespace=NAMESPACE,
                        log_to_driver=False,
                        logging_level="error",
                        include_dashboard=False if not self._address else None,
                    )
            except (ConnectionError, RuntimeError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise ConnectionError(f"Ray at {self._address} does not answer: {error}") from error
                time.sleep(1.0)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)  # ray.init replaces it

    def _reached(self) -> bool:
        """Connect to the cluster if it answers at once."""
        host, _, port = (self._address or "").rpartition(":")
        if not port.isdigit() or time.monotonic() - self._tried < _REACH_SECONDS:
            return False
        self._tried = time.monotonic()
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            self._connect(patience=0.0)
        except OSError:  # of which ConnectionError is one
            return False
        return True


def engine(site: Site) -> RayTune:
    """Make the engine `ray_tune` for an installation."""
    return RayTune(site.workplace, site.address, site.scratch, site.slots)


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Turn an error of Ray into an UnavailableError, on which the conductor waits instead of ending."""
    try:
        yield
    except RayError as error:
        raise UnavailableError(f"Ray does not answer: {error}") from error


class Listening:
    """Requests the next messages of each training slot, one request at a time."""

    def __init__(self) -> None:
        self._requests: dict[ray.ObjectRef, tuple[Execution[PooledSlot], bool]] = {}

    def follow(self, execution: Execution[PooledSlot]) -> None:
        """Begin to request the messages of an attempt; its first report comes at once and names its host."""
        self._request(execution, 0.0, first=True)

    def reports(self, wait: float) -> Iterator[Report]:
        """The news of all followed attempts that have come; waits up to `wait` seconds for the first."""
        if not self._requests:
            time.sleep(wait)
            return
        requests = list(self._requests)
        if ray.wait(requests, timeout=wait)[0]:
            for answer in ray.wait(requests, num_returns=len(requests), timeout=0)[0]:
                yield from self._reported(answer)

    def _request(self, execution: Execution[PooledSlot], wait: float, *, first: bool = False) -> None:
        answer = execution.slot.actor.listen.remote(execution.order.attempt, execution.seen, wait)
        self._requests[answer] = (execution, first)

    def _reported(self, answer: ray.ObjectRef) -> Iterator[Report]:
        execution, first = self._requests.pop(answer)
        try:
            found = ray.get(answer)
        except RayError as error:  # the actor is gone, or its answer was lost with its node
            yield Report(execution.order.attempt, lost=_cause(error))
            return
        lines = found["lines"]
        host = found["host"] if first else None
        yield Report(execution.order.attempt, lines, host, replace_reason=found["replace_reason"])
        if not (lines and Message.of(lines[-1]).final):
            self._request(execution, POLL_SECONDS)


class ClusterDemand:
    """The request for resources that Ray's autoscaler counts as demand until it is withdrawn."""

    def __init__(self) -> None:
        self._requested: str | None = None
        self._at = 0.0

    def request(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Request the resources of training and waiting slots, since a request includes what is in use."""
        bundles = [shape.bundle for shape in (*training, *waiting)][:_MOST_BUNDLES]
        bundles.sort(key=lambda bundle: sorted(bundle.items()))
        request = json.dumps(bundles)
        if request != self._requested or (bundles and time.monotonic() - self._at > AGAIN_SECONDS):
            request_resources(bundles=bundles)
            self._requested, self._at = request, time.monotonic()

    def withdraw(self) -> None:
        """Withdraw the request for resources."""
        if self._requested not in (None, "[]"):
            request_resources(bundles=[])
        self._requested = None


def _findings(answer: ray.ObjectRef) -> list[Finding]:
    """What an inspection has found; cancels it and raises GetTimeoutError if it has not ended."""
    try:
        return cast("list[Finding]", ray.get(answer, timeout=0))
    except ray.exceptions.GetTimeoutError:
        ray.cancel(answer, force=True)
        raise


def _cause(error: Exception) -> str:
    # Without the lines of the actor's fields, since the cause comes last.
    sentences = " ".join(line for line in str(error).splitlines() if not line.startswith("\t"))
    return f"{type(error).__name__}: {' '.join(sentences.split())}"[:500]
