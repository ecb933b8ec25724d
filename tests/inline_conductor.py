"""A conductor over the inline engine, that runs until it is idle or is killed."""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

from orchestrator.conduct.conductor import Conductor
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Broker
from orchestrator.run.inline import Inline
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from workers import catalog as catalogs
from workers.catalog import Catalog

Replaced = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives what is called for a method of the broker, which it is given."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing that runs in between may clean up after itself."""


class Wiretapped(Inline):
    """The inline engine, where a test stands between it and its broker."""

    def __init__(self, workplace: Workplace, **replaced: Replaced) -> None:
        super().__init__(workplace)
        self._replaced = replaced

    def run(self, broker: Broker) -> None:
        """Replace the broker's methods, and work for it."""
        while self._replaced:  # once: the broker stays the same
            name, replacement = self._replaced.popitem()
            setattr(broker, name, replacement(getattr(broker, name)))
        super().run(broker)


def after(orders: int) -> Replaced:
    """For `next_order`: kills the conductor once so many orders were claimed."""
    left = iter(range(orders))

    def dying(claim: Callable[..., Any]) -> Callable[..., Any]:
        def claim_or_die() -> Any:
            if next(left, None) is None:
                raise Killed
            return claim()

        return claim_or_die

    return dying


def stealing(thief: Store) -> Replaced:
    """For a method that reports: another conductor takes the lease before what it reports is written."""

    def robbed(report: Callable[..., Any]) -> Callable[..., Any]:
        def stolen(*given: Any) -> None:
            while thief.lease.acquire("thief", 60, thief.lease.held()) is None:  # it was renewed in between
                pass
            report(*given)

        return stolen

    return robbed


def workplace(settings: Settings) -> Workplace:
    """Where the engines of an installation train."""
    return Workplace(settings.train, settings.storage, settings.data_root, settings.parts, inspect=settings.inspection)


def inline(settings: Settings, store: Store, **replaced: Replaced) -> Conductor:
    """A conductor over the inline engine, with methods of its broker replaced."""
    return Conductor(settings, store, Wiretapped(workplace(settings), **replaced), catalogs.load(), None)


def conduct(
    settings: Settings, orders: int | None = None, catalog: Catalog | None = None, **replaced: Replaced
) -> None:
    """Conduct until idle, or until so many orders were claimed; `catalog` is that of another release."""
    if orders is not None:
        replaced["next_order"] = after(orders)
    engine = Wiretapped(workplace(settings), **replaced)
    with closing(Store.open(settings.database)) as store, suppress(Killed):
        Conductor(settings, store, engine, catalog or catalogs.load(), None).conduct(until_idle=True)


def ran(service: Service, settings: Settings, body: bytes, orders: int | None = None) -> int:
    """Submit a spec and conduct; gives the number of the sweep."""
    sweep = service.submissions.submit(body).id
    conduct(settings, orders)
    return sweep


def whole_and_killed(settings: Settings, body: bytes, orders: int) -> Iterator[tuple[Service, int]]:
    """A finished sweep of a conductor that lives, then one of conductors that are killed after so many orders."""
    for every in (None, orders):
        home = settings.resolved_home / str(every)
        own = settings.model_copy(update={"home": home, "lease_seconds": 1})
        with closing(Service.open(own)) as service:
            sweep = service.submissions.submit(body).id
            while service.sweeps.get(sweep).state != "finished":
                conduct(own, every)
            yield service, sweep
