"""What the owner of a home does to its users, on its machine: in the database, whether or not anything serves it."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    file = settings.resolved_home / "metricsweep.db"
    if not settings.database_url and not Path(file).exists():
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    store = Store.of(settings)
    try:
        with calling(Caller(name=f"{_account()} on this machine"), socket.gethostname()):
            yield People(store, settings.oidc_issuer)
    finally:
        store.close()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.getuid())
