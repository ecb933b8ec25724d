"""A conductor over the inline engine, that runs until it is idle or is killed."""

from collections.abc import Callable
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


def conduct(settings: Settings, orders: int | None = None, catalog: Catalog | None = None) -> None:
    """Conduct until idle, or until so many orders were claimed; `catalog`: that of another release."""
    store = Store.open(settings.database)
    workplace = Workplace(settings.train, settings.storage, settings.data_root, inspect=settings.inspection)
    engine = Wiretapped(workplace, **({} if orders is None else {"next_order": after(orders)}))
    try:
        Conductor(settings, store, engine, catalog or catalogs.load(), None).conduct(until_idle=True)
    except Killed:
        pass
    finally:
        store.close()


def ran(service: Service, settings: Settings, body: bytes, orders: int | None = None) -> int:
    """Submit a spec and conduct; gives the number of the sweep."""
    sweep = service.submissions.submit(body).id
    conduct(settings, orders)
    return sweep
