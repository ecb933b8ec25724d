"""Engines by name: `module:factory`, or the short name of one of ours."""

import importlib

from orchestrator.run.engine import Engine, Site
from orchestrator.settings import ENGINES
from orchestrator.views.errors import NotFoundError


def engine_named(name: str, site: Site) -> Engine:
    """The engine that a factory of this name makes; NotFoundError says what is wrong with the name.

    Its module is imported only here, since Ray takes seconds.
    """
    module, _, factory = ENGINES.get(name, name).partition(":")
    try:
        make = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError, ValueError) as error:
        short = " and ".join(f"`{one}`" for one in ENGINES)
        raise NotFoundError(
            f"METRICSWEEP_ENGINE: no engine {name!r}: {error}; expected `module:factory`; {short} come with metricsweep"
        ) from error
    made = make(site)
    if isinstance(made, Engine):
        return made
    lacking = [one for one in _asked() if not callable(getattr(made, one, None))]
    raise NotFoundError(f"METRICSWEEP_ENGINE: {name!r} gives no engine: it has no `{'`, no `'.join(lacking)}`")


def _asked() -> list[str]:
    """What an engine must have."""
    return sorted(one for one in vars(Engine) if not one.startswith("_"))
