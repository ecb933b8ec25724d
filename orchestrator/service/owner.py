"""What the owner of a home does to its users, on its machine: in the database, whether or not anything serves it.

Where there is no database nobody waits for its libraries: a first `serve` would, before it starts anything.
"""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.host.files import own_folder
from orchestrator.settings import Settings
from orchestrator.views.accounts import Caller, calling
from orchestrator.views.errors import NotFoundError

if TYPE_CHECKING:
    from orchestrator.service.people import People


@contextmanager
def owning(settings: Settings) -> "Iterator[People]":
    """The owner's work on a home that has been served; raises NotFoundError where there is no database."""
    own_folder(settings.resolved_home)
    if not _is_there(settings):
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    from orchestrator.record.store import Store
    from orchestrator.service.people import People

    store = Store.of(settings)
    try:
        with calling(Caller(name=f"{_account()} on this machine"), socket.gethostname()):
            yield People(store, settings.oidc_issuer)
    finally:
        store.close()


def refuse_newer_database(settings: Settings) -> None:
    """Raise UnavailableError where a newer release has upgraded the database, or it does not answer."""
    if _is_there(settings):
        from orchestrator.record.store import Store

        Store.of(settings, migrate=False).close()


def _is_there(settings: Settings) -> bool:
    """Whether there is a database; of one that is named, it is for whoever opens it to find out."""
    return bool(settings.database_url) or (settings.resolved_home / "metricsweep.db").exists()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.getuid())
