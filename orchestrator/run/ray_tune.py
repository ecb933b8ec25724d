"""The Ray Tune engine: Tune's trials relay what detached slot actors train."""

import contextlib
import json
import logging
import os
import shutil
import signal
import time
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import ray
from ray import tune
from ray.exceptions import RayActorError
from ray.tune.search import ConcurrencyLimiter, Searcher

from orchestrator.run import slots
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Desk
from orchestrator.run.relay import hand_on, settle_from_spool
from orchestrator.run.slots import HeldSlot, SlotPool
from orchestrator.run.spool import Message
from orchestrator.trial import Order

POLL_SECONDS: Final = 1.0
STOP_SECONDS: Final = 30.0
"""An attempt that has not stopped this long after it was asked loses its slot actor."""
TRIALS_PER_TUNER: Final = 1_000
"""Tune keeps every trial in memory; a Tuner is replaced after this many, and its slots train on meanwhile."""
MOST_RELAYS: Final = 256
RELAY_BUNDLE: Final = {"memory": 2**20}
"""Tune refuses a bundle of nothing, and slots hold all CPUs; every node has a megabyte of Ray's `memory`."""

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
}


class Relay(tune.Trainable):  # type: ignore[misc]
    """A Tune trial: no torch, no resources; asks its slot actor for news and passes them on."""

    def setup(self, config: dict[str, Any]) -> None:
        """Attach to the slot actor that `config` names; nothing but names and a number stands in it."""
        self._attempt, self._seen = str(config["attempt"]), int(config["seen"])
        self._slot = str(config["slot"])
        self._actor: Any = None

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Serve another attempt in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """The attempt's next messages; a slot actor that died is news too."""
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self._slot, namespace=slots.NAMESPACE)
            messages = ray.get(self._actor.poll.remote(self._attempt, self._seen, POLL_SECONDS))
        except (ValueError, RayActorError) as error:
            return {"messages": "[]", "lost": f"{type(error).__name__}: {error}"[:500], "done": True}
        if messages:
            self._seen = messages[-1]["seq"]
        final = bool(messages) and messages[-1]["kind"] != "progress"
        return {"messages": json.dumps(messages), "lost": None, "done": final}


@dataclass(slots=True)
class Execution:
    """An order that a slot actor trains."""

    order: Order
    slot: HeldSlot
    seen: int
    relay: str | None = None  # Tune's trial id
    asked_to_stop: float | None = None


class Dispatch:
    """Joins the desk, the slots and Tune's trials; outlives any one Tuner."""

    def __init__(self, desk: Desk, pool: SlotPool, workplace: Workplace) -> None:
        self._desk, self._pool, self._workplace = desk, pool, workplace
        self._running: dict[str, Execution] = {}  # by attempt
        self._relays: dict[str, str] = {}  # Tune's trial id -> attempt
        self._unattended: deque[str] = deque()  # attempts that train and have no relay
        self._held: Order | None = None  # claimed, but its slot is not free yet

    def busy(self) -> bool:
        """Whether anything trains or waits for its slot."""
        return bool(self._running) or self._held is not None

    def next_relay(self, relay: str) -> dict[str, Any] | None:
        """What Tune's trial `relay` shall follow; none: nothing now."""
        if not self._unattended:
            self._dispatch()
        if not self._unattended:
            return None
        execution = self._running[self._unattended.popleft()]
        execution.relay = relay
        self._relays[relay] = execution.order.attempt
        return {"attempt": execution.order.attempt, "slot": execution.slot.name, "seen": execution.seen}

    def take(self, relay: str, result: dict[str, Any]) -> None:
        """News from a relay."""
        execution = self._running.get(self._relays.get(relay, ""))
        if execution is None or execution.relay != relay:
            return
        for raw in json.loads(result.get("messages") or "[]"):
            message = Message(**raw)
            if message.seq <= execution.seen:
                continue
            execution.seen = message.seq
            hand_on(self._desk, execution.order, message)
            if message.final:
                self._end(execution)
        if result.get("lost"):
            self._lose(execution, str(result["lost"]))

    def relay_ended(self, relay: str) -> None:
        """A relay is gone; if its attempt goes on, another relay will follow it."""
        execution = self._running.get(self._relays.pop(relay, ""))
        if execution is not None and execution.relay == relay:
            execution.relay = None
            self._unattended.append(execution.order.attempt)

    def abandon_relays(self) -> None:
        """Before a Tuner ends with attempts still training."""
        for relay in list(self._relays):
            self.relay_ended(relay)

    def watch(self) -> None:
        """Stop what is no longer wanted; end a slot actor that does not obey."""
        for execution in list(self._running.values()):
            if execution.asked_to_stop is None:
                if not self._desk.wanted(execution.order):
                    execution.asked_to_stop = time.monotonic()
                    execution.slot.actor.stop.remote(execution.order.attempt)
            elif time.monotonic() - execution.asked_to_stop > STOP_SECONDS:
                self._lose(execution, "it did not stop when asked")

    def _dispatch(self) -> None:
        """Start the next order if a slot is free."""
        if self._held is None and not self._pool.full():
            self._held = self._desk.next_order()
        if self._held is None:
            return
        order = self._held
        if order.holder is not None:
            self._held = None
            self._adopt(order)
        elif (slot := self._pool.take(order)) is not None:
            self._held = None
            slot.actor.start.remote(order, self._workplace)
            self._begin(order, slot)
            self._desk.started(order, slot.name, "")

    def _adopt(self, order: Order) -> None:
        slot = self._pool.holding(order.holder, order.attempt)
        if slot is None:
            settle_from_spool(self._desk, order, self._workplace, order.seen, f"slot {order.holder} is gone")
        else:
            self._begin(order, slot)

    def _begin(self, order: Order, slot: HeldSlot) -> None:
        self._running[order.attempt] = Execution(order, slot, order.seen)
        self._unattended.append(order.attempt)

    def _end(self, execution: Execution) -> None:
        self._running.pop(execution.order.attempt, None)
        self._pool.release(execution.slot)

    def _lose(self, execution: Execution, reason: str) -> None:
        self._running.pop(execution.order.attempt, None)
        with contextlib.suppress(ValueError):
            self._unattended.remove(execution.order.attempt)
        self._pool.drop(execution.slot)
        if not self._desk.wanted(execution.order):
            self._desk.stopped(execution.order)
        else:
            settle_from_spool(self._desk, execution.order, self._workplace, execution.seen, f"slot lost: {reason}")


class DeskSearcher(Searcher):  # type: ignore[misc]
    """What Tune calls its search algorithm: the desk's orders, in the desk's order."""

    def __init__(self, dispatch: Dispatch, desk: Desk) -> None:
        super().__init__()
        self._dispatch, self._desk = dispatch, desk
        self.suggested = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """A relay's assignment; FINISHED once nothing trains, since Tune would sleep through an idle None."""
        if self._desk.closing():
            return Searcher.FINISHED  # type: ignore[no-any-return]
        if self.suggested < TRIALS_PER_TUNER:
            assignment = self._dispatch.next_relay(trial_id)
            if assignment is not None:
                self.suggested += 1
                return assignment
        return None if self._dispatch.busy() else Searcher.FINISHED

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """News of a relay that goes on."""
        self._dispatch.take(trial_id, result)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """A relay's last news."""
        if result and not error:
            self._dispatch.take(trial_id, result)
        self._dispatch.relay_ended(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the database is the record."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: a Tuner is never restored."""


class Turn(tune.Stopper):  # type: ignore[misc]
    """Tune polls a Stopper at every turn of its loop; that is where the conductor gets its own turn."""

    def __init__(self, dispatch: Dispatch, desk: Desk, searcher: DeskSearcher) -> None:
        self._dispatch, self._desk, self._searcher = dispatch, desk, searcher
        self._watched = 0.0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never for one relay: it ends with its attempt."""
        return False

    def stop_all(self) -> bool:
        """Do the conductor's chores; True ends this Tuner, never what trains."""
        self._desk.tick()
        if time.monotonic() - self._watched > 0.5:
            self._watched = time.monotonic()
            self._dispatch.watch()
        if self._desk.closing() or self._searcher.suggested >= TRIALS_PER_TUNER:
            self._dispatch.abandon_relays()
            return True
        return False


class RayTune:
    """Runs orders on a Ray cluster. Use it from the main thread of its process: one Tuner lives in one process."""

    def __init__(self, workplace: Workplace, address: str | None, scratch: Path, limit: int | None = None) -> None:
        self._workplace, self._address, self._limit = workplace, address, limit
        self._scratch = scratch
        self._pool: SlotPool | None = None
        os.environ.update(ENVIRONMENT)
        logging.getLogger("ray.tune").setLevel(logging.ERROR)  # it would lament the files that we never let it write

    def run(self, desk: Desk) -> None:
        """Execute orders until there are none or the desk is closing."""
        handler = signal.getsignal(signal.SIGTERM)
        slots.connect(self._address)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)  # ray.init puts its own in place
        if self._pool is None:
            self._pool = SlotPool(self._limit)
        dispatch = Dispatch(desk, self._pool, self._workplace)
        while not desk.closing():
            self._fit(dispatch, desk)
            if not dispatch.busy():
                return

    def close(self) -> None:
        """Leave the cluster; detached slots train on."""
        if ray.is_initialized():
            ray.shutdown()

    def _fit(self, dispatch: Dispatch, desk: Desk) -> None:
        searcher = DeskSearcher(dispatch, desk)
        name = f"relays-{uuid.uuid4().hex[:12]}"
        tuner = tune.Tuner(
            tune.with_resources(Relay, tune.PlacementGroupFactory([RELAY_BUNDLE])),
            tune_config=tune.TuneConfig(
                search_alg=ConcurrencyLimiter(searcher, max_concurrent=MOST_RELAYS),
                num_samples=-1,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                name=name,
                storage_path=str(self._scratch),
                stop=Turn(dispatch, desk, searcher),
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        finally:
            shutil.rmtree(self._scratch / name, ignore_errors=True)
