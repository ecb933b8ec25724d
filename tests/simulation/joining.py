"""Slots that join by files, as processes of a world: all of the product's but the thread in which a slot trains."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from orchestrator.run.attempt import Workplace
from orchestrator.run.files.slot import JOINED_FOLDER, FileSlot, Mailbox, State, slots_folder
from orchestrator.views.runs import Order
from tests.simulation.cluster import Actor, Cluster
from tests.simulation.world import Process, World

SLOTS: Final = 3
SILENT: Final = 20.0
"""Seconds after which a slot counts as lost, a third of the product's: longer than any stands still here."""
OFFER: Final = {"CPU": 1.0, "memory": 2.0**40}


class Trainer:
    """In place of the slot actor: trains in a thread of the world."""

    def __init__(self, cluster: Cluster, edition: str) -> None:
        process = cluster.world.process()
        self._cluster, self._actor = cluster, Actor(process.name, "", "joined", 1.0, edition, process)
        cluster.actors[process.name] = self._actor

    def describe(self) -> dict[str, Any]:
        """As the slot actor's."""
        return {**self._cluster.actor_describe(self._actor), "usage": None}

    def start(self, order: Order, workplace: Workplace, fence: int) -> bool:
        """Begin an attempt."""
        return self._cluster.actor_start(self._actor, order, workplace, fence)

    def stop(self, attempt: str) -> None:
        """Ask an attempt to stop."""
        self._cluster.actor_stop(self._actor, attempt)

    def poll(self, attempt: str, seen: int, wait: float) -> list[bytes]:
        """The lines of an attempt's messages after number `seen`."""
        return self._cluster.poll(self._actor, attempt, seen)


class Waker:
    """In place of an event that is waited for."""

    def __init__(self, world: World) -> None:
        self._world, self._set = world, False

    def set(self) -> None:
        """Wake who waits, at its next look."""
        self._set = True

    def clear(self) -> None:
        """Wait again."""
        self._set = False

    def wait(self, seconds: float) -> bool:
        """Whether it was set."""
        if not self._set:
            self._world.sleep(seconds)
        return self._set


class Joining:
    """Whoever keeps slots alive: one that dies or leaves is begun anew, as another."""

    def __init__(self, cluster: Cluster, storage: Path) -> None:
        self._cluster, self._world, self._storage = cluster, cluster.world, storage
        self.leaves = 0.0  # the chance, at each check, that a slot gets notice that its time is up
        self._joined = 0

    @contextmanager
    def laws(self) -> Iterator[None]:
        """Have slots train and wait in this world."""
        threads = SimpleNamespace(Event=lambda: Waker(self._world))
        with ExitStack() as stand_ins:
            for name, stand_in in (
                ("SlotActor", lambda orphaned_after, edition: Trainer(self._cluster, edition)), ("threading", threads),
            ):  # fmt: skip
                stand_ins.enter_context(patch(f"orchestrator.run.files.slot.{name}", stand_in))
            for module in ("pool", "slot"):
                stand_ins.enter_context(patch(f"orchestrator.run.files.{module}.SILENT_SECONDS", SILENT))
            yield

    def begin(self) -> None:
        """As many as there are CPUs elsewhere."""
        for _ in range(SLOTS):
            self._join(0.0)

    def _join(self, after: float) -> None:
        self._joined += 1
        process = Process(f"slot {self._joined}")
        process.farewell.append(lambda: self._ended(process))
        self._world.begin(process, "", lambda: self._serve(process), after)

    def _serve(self, process: Process) -> None:
        there = slots_folder(self._storage)
        state = State(host="hall", resources=OFFER)
        box = Mailbox(there / JOINED_FOLDER / process.name.replace(" ", "-"))
        slot = FileSlot(box, there.parent, state, idle=1e9, poll=1.0)
        turn = slot._turn

        def turned() -> None:
            turn()
            if self._world.chance(self.leaves):
                self._world.fault("slots whose time is up", f"{process.name} is told that its time is up")
                slot.leave("its time is up")

        slot._turn = turned  # type: ignore[method-assign]
        slot.run()
        self._world.kill(process, f"by itself: {slot.why}")

    def _ended(self, process: Process) -> None:
        actor = self._cluster.actors.get(process.name)
        if actor is not None:
            self._cluster._gone(actor)
        self._join(self._world.drawn.choice([1.0, 5.0]))
