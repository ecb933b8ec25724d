"""Refusals: settings with which nothing is started, each with what would be right."""

import os
import sys
from pathlib import Path

from orchestrator.host.checks import is_loopback, missing, refuse_hidden, require
from orchestrator.host.disk import disk_of
from orchestrator.service.accounts import refuse_newer_database
from orchestrator.settings import ENGINES, Secrets, Settings
from orchestrator.views.errors import MetricsweepError
from workers import catalog as catalogs


def refuse_wrong_start(settings: Settings) -> None:
    """Raise MetricsweepError for whatever would end one of the processes as soon as it has started."""
    require("fastapi", "server")
    refuse_open_host(settings)
    home = settings.resolved_home
    if home.exists() and not os.access(home, os.W_OK | os.X_OK):
        raise MetricsweepError(
            unwritable(home, "Read-only file system" if disk_of(home).read_only else "no permission")
        )
    refuse_hidden()
    try:
        catalogs.load(settings.parts)
    except catalogs.PartSourceError as error:
        raise MetricsweepError(f"METRICSWEEP_PARTS: {error}") from error
    refuse_unknown_names(settings, sys.path)
    refuse_newer_database(settings)


def unwritable(home: Path, reason: str | None) -> str:
    """The sentence for a home folder in which nothing can be written."""
    return (
        f"the home folder {home} cannot be written: {reason}; make room or make it writable, "
        "or name another folder by --home or METRICSWEEP_HOME"
    )


def refuse_unknown_names(settings: Settings, path: list[str]) -> None:
    """Raise MetricsweepError where a setting names a function that is not there; a cluster's workers know theirs."""
    names = {"ENGINE": "" if settings.engine in ENGINES else settings.engine}
    if not settings.ray_address:
        names |= {"TRAIN": settings.train, "INSPECT": settings.inspect or ""}
    problems = [
        f"METRICSWEEP_{setting}: no function {name!r}: {reason}; expected `module:function`, the module in a folder of "
        "PYTHONPATH or an installed package"
        for setting, name in names.items()
        if name and (reason := missing(name, path))
    ]
    if problems:
        raise MetricsweepError("\n".join(problems))


def refuse_open_host(settings: Settings) -> None:
    """Raise MetricsweepError where the API would listen beyond this machine with the home's own token alone.

    Those who reach it from elsewhere cannot read that one.
    """
    if Secrets(settings).tokens:
        return
    if is_loopback(settings.host):
        return
    raise MetricsweepError(
        f"the API would listen on {settings.host} for everybody; set METRICSWEEP_TOKEN to a long random text, or "
        "METRICSWEEP_TOKEN_FILE to a file that holds one, or METRICSWEEP_HOST to 127.0.0.1"
    )
