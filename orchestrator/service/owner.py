"""What the owner of a home does to its users, on its machine: in the database, whether or not anything serves it."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.host.private import own_folder
from orchestrator.record.store import Store
from orchestrator.service.people import People
from orchestrator.settings import Settings
from orchestrator.views.callers import Caller, calling
from orchestrator.views.errors import NotFoundError


@contextmanager
def owning(settings: Settings) -> Iterator[People]:
    """The owner's work on a home that has been served; raises NotFoundError where there is no database."""
    own_folder(settings.resolved_home)
    if not _is_there(settings):
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    store = Store.of(settings)
    try:
        with calling(Caller(name=f"{_account()} on this machine"), socket.gethostname()):
            yield People(store, settings.oidc_issuer)
    finally:
        store.close()


def refuse_newer_database(settings: Settings) -> None:
    """Raise UnavailableError where a newer release has upgraded the database, or it does not answer."""
    if _is_there(settings):
        Store.of(settings, migrate=False).close()


def _is_there(settings: Settings) -> bool:
    """Whether there is a database; of one that is named, it is for whoever opens it to find out."""
    return bool(settings.database_url) or (settings.resolved_home / "metricsweep.db").exists()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.getuid())
