"""The background threads of a conductor, as threads of its process in the world."""

from collections.abc import Callable
from threading import Event

from orchestrator.views.errors import MetricsweepError
from tests.simulation.world import Process, World


def of(world: World, current: Callable[[], Process]) -> type:
    """What stands for the class of heartbeats: those that are made belong to the process that is current."""

    class Heartbeat:
        """Calls `beat` every so many seconds until it is ended, or until that answers False."""

        def __init__(self, name: str, beat: Callable[[], bool], seconds: float) -> None:
            self._name, self._beat, self._seconds = name, beat, seconds
            self._ended = False
            self._returned = True
            self.lost = Event()

        def start(self) -> None:
            """Begin a thread of the process that makes it."""
            self._returned = False
            world.begin(current(), self._name, self._run, self._seconds)

        def _run(self) -> None:
            self._beats()
            self._returned = True

        def _beats(self) -> None:
            while not self._ended:
                try:
                    if not self._beat():
                        self.lost.set()
                        return
                except MetricsweepError:
                    pass
                world.sleep(self._seconds)

        def end(self, patience: float) -> bool:
            """Stop beating, and wait for the thread: it may have to leave to a successor what it was telling."""
            self._ended = True
            until = world.now + patience
            while not self._returned and world.now < until:
                world.sleep(min(0.1, patience))
            return self._returned

    return Heartbeat
