"""A conductor over the inline engine, that runs until it is idle or is killed."""

from typing import Any

from orchestrator.conduct.conductor import Conductor
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.inline import Inline
from orchestrator.settings import Settings
from workers import catalog as catalogs
from workers.catalog import Catalog


class Killed(BaseException):
    """Stands for SIGKILL: nothing that runs in between may clean up after itself."""


def conduct(settings: Settings, orders: int | None = None, catalog: Catalog | None = None) -> None:
    """Conduct until idle, or until so many orders were claimed; `catalog`: that of another release."""
    store = Store.open(settings.database)
    workplace = Workplace(settings.train, settings.storage, settings.data_root, inspect=settings.inspection)
    conductor = Conductor(settings, store, Inline(workplace), catalog or catalogs.load(), None)
    if orders is not None:
        left, claim = iter(range(orders)), conductor.next_order

        def claim_or_die() -> Any:
            if next(left, None) is None:
                raise Killed
            return claim()

        conductor.next_order = claim_or_die  # type: ignore[method-assign]
    try:
        conductor.conduct(until_idle=True)
    except Killed:
        pass
    finally:
        store.close()
