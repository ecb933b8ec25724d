"""The transactions of a world: each one step, before and after which others may act, and at which faults strike."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import sqlalchemy as sa

from orchestrator.record import database as product
from orchestrator.record.database import Database, FencedDatabase
from orchestrator.views.errors import UnavailableError
from tests.simulation.ground import Ground
from tests.simulation.world import BrokenWorldError, Killed, Thread, World

PATIENCE: Final = 30.0
"""Seconds for which a writer waits for another, as SQLite's in the product."""
_FENCE: Final = "SELECT fence FROM lease"


@dataclass(frozen=True, slots=True)
class Blow:
    """What befalls one operation on the database: a statement, or a commit."""

    number: int
    """Counted from 1 over all mortal processes."""
    deadly: bool
    """Whether its process dies there; else the database does not answer it."""


class Transactions:
    """In place of those of the product's `Database`; what a process that dies had not committed never was."""

    def __init__(self, world: World, ground: Ground) -> None:
        self._world, self._ground = world, ground
        self.refusals = 0.0  # the chance that the database refuses a transaction
        self.unacknowledged = 0.0  # the chance that one is committed, and seems not to be
        self.stops = 0.0  # the chance that a process stands still in the middle of one that writes
        self.blow: Blow | None = None
        self.operations = 0
        self._writer: Thread | None = None
        """Who has begun to write, and stands still."""

    @contextmanager
    def laws(self) -> Iterator[None]:
        """Have the product's code begin these."""
        with ExitStack() as laws:
            for name, begin in (("reading", "BEGIN"), ("writing", "BEGIN IMMEDIATE")):
                laws.enter_context(patch.object(Database, name, self._one(name, begin, getattr(Database, name))))
            laws.enter_context(patch.object(FencedDatabase, "writing", _fenced(FencedDatabase.writing)))
            if self.blow is not None:
                laws.enter_context(patch.object(sa.Connection, "execute", self._counted(sa.Connection.execute)))
            yield

    def _one(self, name: str, begin: str, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        writes, world = name == "writing", self._world

        @contextmanager
        def transaction(database: Any) -> Iterator[sa.Connection]:
            if database is not self._ground.database or not world.here:
                with real(database) as connection:  # of another thread of this process, and none of the world's
                    yield connection
                return
            thread = world.thread()
            world.point(f"before a transaction ({name})")
            self._refuse(thread)
            if writes:
                self._wait(thread)
            with product._unavailable(), self._ground.transaction(begin) as connection:
                changes = raw(connection).total_changes
                with self._held(thread if writes else None):
                    yield connection
                    if writes:
                        world.strike_within("before its commit")
                        self._stop(thread)
                        self._operate("commit")
            if writes:
                world.wrote |= raw(connection).total_changes != changes
                world.strike_within("after its commit")
                self._forget(thread)

        return transaction

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def execute(connection: sa.Connection, statement: Any, *given: Any, **named: Any) -> Any:
            self._operate(statement.__visit_name__)
            return real(connection, statement, *given, **named)

        return execute

    def _operate(self, what: str) -> None:
        thread = self._world.thread()
        if self.blow is None or thread is None or not thread.process.mortal:
            return
        self.operations += 1
        if self.operations != self.blow.number:
            return
        if self.blow.deadly:
            self._world.faults["crashes"] += 1
            self._world.kill(thread.process, f"at operation {self.operations} ({what})")
            raise Killed
        self._world.fault("failed operations", f"operation {self.operations} ({what}) of {thread.name} fails")
        raise sa.exc.OperationalError(what, None, sqlite3.OperationalError("disk I/O error"))

    @contextmanager
    def _held(self, thread: Thread | None) -> Iterator[None]:
        """The database is written by nobody else."""
        if thread is None:
            yield
            return
        thread.writing += 1
        self._writer = thread
        try:
            yield
        finally:
            thread.writing -= 1
            self._writer = None

    def _wait(self, thread: Thread | None) -> None:
        until = self._world.now + PATIENCE
        while self._writer is not None and thread is not None:
            if self._world.now > until:
                self._world.tell(f"{thread.name} finds the database locked")
                raise UnavailableError("the database cannot be used: database is locked")
            self._world.sleep(0.5)

    def _stop(self, thread: Thread | None) -> None:
        """Stand still with all that is written and not committed."""
        if thread is None or not thread.process.mortal or not self._world.chance(self.stops):
            return
        seconds = self._world.drawn.choice([2.0, 10.0, 45.0])
        self._world.stand_still(seconds, "in the middle of a transaction", "stops in a transaction")

    def _forget(self, thread: Thread | None) -> None:
        if thread is not None and thread.process.mortal and self._world.chance(self.unacknowledged):
            self._world.fault("lost acknowledgements", f"{thread.name} does not hear that its transaction is committed")
            raise UnavailableError("the database cannot be used: a test")

    def _refuse(self, thread: Thread | None) -> None:
        if thread is not None and thread.process.mortal and self._world.chance(self.refusals):
            self._world.fault("refused transactions", f"the database refuses a transaction of {thread.name}")
            raise UnavailableError("the database cannot be used: a test")


def raw(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's connection."""
    driver: Any = connection.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _fenced(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Checks independently of the product who holds the lease under which a conductor writes."""

    @contextmanager
    def writing(fenced: FencedDatabase) -> Iterator[Any]:
        with real(fenced) as connection:
            fence = raw(connection).execute(_FENCE).fetchone()[0]
            if fence != fenced.fence:
                raise BrokenWorldError(f"a conductor writes with fence {fenced.fence}, and the lease has {fence}")
            yield connection

    return writing
