"""A slot that joins by files: tells what it is, trains what it is given, and leaves when it is asked to."""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from orchestrator.run.attempt import Workplace
from orchestrator.run.files.post import SILENT_SECONDS, Box, Instruction, Phase, State
from orchestrator.run.inspection import inspect
from orchestrator.run.message import Message
from orchestrator.run.slot_actor import SlotActor
from orchestrator.views.runs import Order
from workers.catalog import Finding, Need

POLL_SECONDS: Final = 1.0
"""How often a slot looks for an instruction."""
BEAT_SECONDS: Final = 5.0
"""How often it tells of itself while nothing changes."""
ORDERS: Final = TypeAdapter(Order)
WORKPLACES: Final = TypeAdapter(Workplace)
NEEDS: Final = TypeAdapter(list[Need])
FINDINGS: Final = TypeAdapter(list[Finding])


class FileSlot:
    """One slot. What it trains, how, and what it holds afterwards is the slot actor's; here is how it is reached."""

    def __init__(
        self,
        box: Box,
        storage: Path,
        state: State,
        *,
        idle: float,
        poll: float = POLL_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._box, self._storage, self._state = box, storage, state
        self._idle, self._poll, self._now = idle, poll, now
        self._actor = SlotActor(lonely=1e9, edition=state.edition)
        self._wake = threading.Event()
        self._why: str | None = None  # it leaves
        self._renew = False
        self._looking, self._looked = 0, dict[str, Any]()  # the number of the inspection, and what the last one found
        self._beat, self._shown = 0, State()
        self._told = self._heard = self._used = now()

    def leave(self, why: str) -> None:
        """Give back what it trains, from its last checkpoint on, and end. Also for signal handlers."""
        self._why = self._why or why
        self._wake.set()

    def run(self) -> bool:
        """Serve until it is to leave; whether another process is to take its place."""
        self._box.make(self._state)
        while True:
            self._turn()
            described = self._actor.describe()
            if self._why is not None:
                if not described["busy"]:
                    break
                self._actor.stop(described["attempt"])
            elif described["busy"]:
                self._used = self._now()
            elif self._now() - self._used > self._idle:
                self.leave(f"it had nothing to train for {self._idle:g} s")
            if self._wake.wait(self._poll):
                self._wake.clear()
                if self._why is not None:
                    time.sleep(min(self._poll, 0.1))  # what it trains needs a moment to stop
        self._end()
        return self._renew

    def _turn(self) -> None:
        """Read the instruction and tell of itself; a storage that is away for long, or gave it up, ends the slot."""
        try:
            self._obey(self._box.instruction())
            self._tell()
            self._heard = self._now()
        except FileNotFoundError:
            self.leave("it was given up")
        except OSError as error:
            if self._now() - self._heard > SILENT_SECONDS / 2:
                self.leave(f"the storage does not answer: {error}")
        except ValueError as error:  # an order of another release, say: a slot that ends is noticed, a mute one late
            self.leave(f"what it is told cannot be read: {' '.join(str(error).split())[:500]}")

    def _obey(self, given: Instruction) -> None:
        if given.fence < self._state.fence:
            return  # of a conductor whose lease another one has taken
        if given.look > self._looking:
            self._looking = given.look
            threading.Thread(target=self._look, args=(given,), daemon=True).start()
        if (given.fence, given.number) <= (self._state.fence, self._state.taken):
            return
        if given.do == "train" and self._why is None:
            self._used = self._now()
            self._actor.start(ORDERS.validate_python(given.order), self._workplace(given), given.fence)
        elif given.do == "stop" and given.attempt:
            self._actor.stop(given.attempt)
        elif given.do in ("end", "renew"):
            self._renew = given.do == "renew"
            self.leave("it was asked to")
        self._state = replace(self._state, fence=given.fence, taken=given.number)

    def _workplace(self, given: Instruction) -> Workplace:
        """The conductor's, but for where the storage and one's own parts are on this machine."""
        parts = os.path.expanduser(os.environ.get("METRICSWEEP_PARTS", ""))
        told = WORKPLACES.validate_python(given.workplace)
        return replace(told, storage=self._storage, parts=Path(parts) if parts else told.parts)

    def _tell(self) -> None:
        """Write the state, where it has changed or where it is time to."""
        described = self._actor.describe()
        named = {key: described[key] for key in ("attempt", "busy", "worn")}
        phase: Phase = "here" if self._why is None else "leaving"
        self._state = replace(self._state, phase=phase, **named, **self._looked)
        if self._state != self._shown or self._now() - self._told >= BEAT_SECONDS:
            self._write(described)

    def _write(self, described: Mapping[str, Any]) -> None:
        self._beat += 1
        told = {key: described[key] for key in ("said", "ages", "usage")}
        self._box.tell(replace(self._state, beat=self._beat, last=self._last(described), **told))
        self._shown, self._told = self._state, self._now()

    def _last(self, described: Mapping[str, Any]) -> str | None:
        """The failure in which the attempt ended: the slot's own is in no spool."""
        if described["attempt"] is None or described["busy"] or not described["said"]:
            return None
        lines = self._actor.poll(described["attempt"], described["said"] - 1, 0)
        return lines[-1].decode() if lines and Message.of(lines[-1]).kind == "failed" else None

    def _look(self, given: Instruction) -> None:
        """Inspect this machine's data root; the state tells it at the next turn."""
        told: dict[str, Any]
        try:
            found = inspect(self._workplace(given), NEEDS.validate_python(given.needs))
            told = {"found": FINDINGS.dump_python(found, mode="json"), "problem": None}
        except Exception as error:  # whatever keeps it from looking: the conductor says so
            told = {"found": None, "problem": f"{type(error).__name__}: {error}"[:1000]}
        self._looked = {"looked": given.look, **told}
        self._wake.set()

    def _end(self) -> None:
        """Say that it has left; where that cannot be said, its silence does."""
        try:
            described = self._actor.describe()
            self._state = replace(self._state, phase="left", attempt=described["attempt"], busy=False)
            self._write(described)
        except OSError:
            return

    @property
    def why(self) -> str | None:
        """Why it leaves."""
        return self._why


def state_of(resources: Mapping[str, float], edition: str, job: str) -> State:
    """What a slot says of itself at first."""
    return State(host=socket.gethostname(), pid=os.getpid(), job=job, resources=dict(resources), edition=edition)
