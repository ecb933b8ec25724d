"""The first error of ours within Tune's loop: kept, and raised once the loop has ended."""

from collections.abc import Callable
from typing import TypeVar

from orchestrator.views.errors import MetricsweepError

Answer = TypeVar("Answer")


class DeferredError:
    """Tune wraps what is raised within its loop, and then nobody could tell a database that is away from a bug."""

    def __init__(self) -> None:
        self.error: MetricsweepError | None = None

    def guard(self, act: Callable[[], Answer], otherwise: Answer) -> Answer:
        """What `act` returns; `otherwise` when it raises, and from then on without asking it again."""
        if self.error is not None:
            return otherwise
        try:
            return act()
        except MetricsweepError as error:
            self.error = error
            return otherwise

    def raise_again(self) -> None:
        """Raise what was kept, if anything was."""
        if self.error is not None:
            raise self.error
