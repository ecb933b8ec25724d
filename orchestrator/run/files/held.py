"""A slot that has joined, as its pool holds it: what was last heard of it, and what it was last told."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from orchestrator.run.attempt import Workplace
from orchestrator.run.files.json_file import DamagedFileError
from orchestrator.run.files.post import SILENT_SECONDS, Box, Instruction, State
from orchestrator.run.files.slot import ORDERS, WORKPLACES
from orchestrator.views.operations import Node, Shape
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)


class JoinedSlot:
    """One slot. It is judged by this process's monotonic clock, never by the times of another machine."""

    def __init__(self, box: Box, greeting: Instruction, now: Callable[[], float] = time.monotonic) -> None:
        self.box, self.name, self._now = box, box.name, now
        self.state = State()
        self.attempt: str | None = None  # of the order that it was given
        self._ended: str | None = None  # the attempt that it had before
        self.since = self.heard = now()
        self.gone: str | None = None  # why it can be followed no more
        self._told = greeting
        self._posted = False

    @property
    def here(self) -> bool:
        """Whether it is there and stays."""
        return self.gone is None and self.state.phase == "here" and self.state.beat > 0

    @property
    def node(self) -> Node:
        """What it offers, as a node of its own: a scheduler has set that aside for it."""
        return Node(self.name, self.state.host, dict(self.state.resources))

    @property
    def shape(self) -> Shape:
        """All of what it offers: it trains one at a time."""
        offers = dict(self.state.resources)
        cpus, gpus, memory = (offers.pop(name, 0.0) for name in ("CPU", "GPU", "memory"))
        return Shape(cpus, gpus, int(memory), tuple(sorted(offers.items())))

    @property
    def answers(self) -> bool:
        """Whether it has taken the latest instruction: from then on it obeys no earlier conductor."""
        return (self.state.fence, self.state.taken) == (self._told.fence, self._told.number) and self.state.beat > 0

    @property
    def begun(self) -> bool:
        """Whether it has taken what it was given."""
        return self.answers

    @property
    def free(self) -> bool:
        """Whether it waits for an order."""
        return self.here and self.answers and self.attempt is None and not self.state.busy

    @property
    def stray(self) -> str | None:
        """The attempt that it trains though no order stands for that, unless it has been asked to stop it."""
        trains = self.state.attempt if self.answers and self.state.busy else None
        known = trains in (self.attempt, self._ended) or (self._told.do == "stop" and self._told.attempt == trains)
        return None if known else trains

    def has(self, attempt: str) -> bool:
        """Whether it trains an attempt, has just trained it, or is told to and has not answered yet."""
        told = self._told.order or {}
        return self.state.attempt == attempt or (not self.answers and told.get("attempt") == attempt)

    def forget(self) -> None:
        """What it trains is to be claimed anew."""
        self.attempt = self._ended = None

    def give_back(self) -> None:
        """Its attempt has ended."""
        self.attempt, self._ended, self.since = None, self.attempt, self._now()

    def look(self) -> None:
        """Read what it says; one that says nothing for long is gone, as is one that has left."""
        try:
            state = self.box.state()
        except FileNotFoundError:
            self.gone = self.gone or "its folder is gone"
            return
        except OSError:
            state = self.state
        if state is None:
            self.gone = "it is of another release"
            return
        if state.beat != self.state.beat:
            self.state, self.heard = state, self._now()
        if state.phase == "left":
            self.gone = "it has left: its job ended, or was about to"
        elif self._now() - self.heard > SILENT_SECONDS:
            self.gone = f"it has told nothing for {SILENT_SECONDS:g} s"
        elif not self.answers:
            self._post()

    def start(self, order: Order, workplace: Workplace) -> None:
        """Have it train an order."""
        given = ORDERS.dump_python(order, mode="json"), WORKPLACES.dump_python(workplace, mode="json")
        self.tell(Instruction(do="train", order=given[0], workplace=given[1]))

    def stop(self, attempt: str) -> None:
        """Ask it to stop an attempt at its next step."""
        self.tell(Instruction(do="stop", attempt=attempt))

    def tell(self, instruction: Instruction) -> None:
        """Give it its next instruction, under our fence; one that cannot be written now is written at the next look."""
        fence, number, look, needs = self._told.fence, self._told.number + 1, self._told.look, self._told.needs
        workplace = instruction.workplace or self._told.workplace
        self._told = replace(instruction, fence=fence, number=number, look=look, needs=needs, workplace=workplace)
        self._posted = False
        self._post()

    def renew(self, reason: str) -> None:
        """Have it go on as another process, between two trainings."""
        log.info("slot %s is replaced: %s", self.name, reason)
        self.tell(Instruction(do="renew"))

    def inspect(self, needs: list[object], workplace: Workplace) -> int:
        """Have it look at its data root; gives the number of the inspection."""
        given = WORKPLACES.dump_python(workplace, mode="json")
        self._told = replace(self._told, look=self._told.look + 1, needs=needs, workplace=given)
        self._posted = False
        self._post()
        return self._told.look

    def _post(self) -> None:
        """Write the instruction, unless it stands there: a former conductor may have written over it."""
        with suppress(OSError):
            if self._posted and self._stands():
                return
            self.box.instruct(self._told)
            self._posted = True

    def _stands(self) -> bool:
        try:
            return _heads(self.box.instruction()) == _heads(self._told)
        except DamagedFileError:
            return False


def _heads(instruction: Instruction) -> tuple[int, int, int]:
    return instruction.fence, instruction.number, instruction.look
