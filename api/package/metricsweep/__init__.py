"""metricsweep from Python, in a notebook or a script: `metricsweep.connect()` gives a client of a server."""

import importlib.metadata
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_HOME: Final = next(folder for folder in Path(__file__).absolute().parents if (folder / "orchestrator").is_dir())


def _refuse_others() -> None:
    """Raise ImportError if another package has the name of one of ours, since our names are general.

    `orchestrator.host.checks` does this for our own processes, but here `orchestrator` may be another package. Here
    packages that a notebook has imported already count too.
    """
    for name in ("workers", "orchestrator", "dashboards", "api"):
        spec = find_spec(name)
        places = [*(spec.submodule_search_locations or ()), str(spec.origin)] if spec else []
        if spec and Path(places[0]).resolve() != (_HOME / name).resolve():
            raise ImportError(
                f"{Path(places[0]).absolute()} comes before metricsweep's own package '{name}' in {_HOME}: start "
                "Python in another folder, rename that one, or give metricsweep an environment of its own"
            )


_refuse_others()

from api.client import Client  # noqa: E402 - after the check
from api.connection import ApiError, Unreachable  # noqa: E402
from api.discovery import connect as _connect  # noqa: E402

__all__ = ["ApiError", "Client", "Unreachable", "connect"]
__version__ = importlib.metadata.version("metricsweep")


def connect(url: str | None = None, token: str | None = None, home: str | Path | None = None) -> Client:
    """A client of the server at `url`, or of the server of the folder `home`; close it, or use it in `with`.

    The defaults are METRICSWEEP_URL, METRICSWEEP_TOKEN and METRICSWEEP_HOME, else the server of `.metricsweep`, as
    for the commands. Raises Unreachable if the folder is not served.
    """
    variable = os.environ.get
    folder = home or variable("METRICSWEEP_HOME") or ".metricsweep"
    return _connect(url or variable("METRICSWEEP_URL"), token or variable("METRICSWEEP_TOKEN"), Path(folder))
