"""The processes of `serve`, as their command lines: MLflow, Ray's head, the API and the conductor."""

import importlib.util
import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from api.local.log_file import KEPT, LOG_BYTES
from api.local.process import ChildSpec
from orchestrator.host.checks import sqlite_url
from orchestrator.host.slot_environment import for_slots
from orchestrator.settings import SECRET_FILES, Settings

PREFIX: Final = "METRICSWEEP_"
WEBHOOK: Final = ("webhook_url", "webhook_secret", "webhook_secret_file")
"""The settings that only who tells the webhook needs."""
OBJECT_STORE_BYTES: Final = 256 * 1024 * 1024  # Ray's least is 75 MiB; recipes and results stay under 1 MiB
GIVING_BACK_SECONDS: Final = 20.0
"""How long slots have, once the conductor has ended, to write a checkpoint of what they train."""
MLFLOW_SWITCHES: Final[Mapping[str, str]] = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS": "false",
    "MLFLOW_ENABLE_AI_GATEWAY": "false",
    "MLFLOW_ENABLE_REMOTE_ASSISTANT": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
"""What of an MLflow server is switched off, beyond what `api.mlflow.rules` lets nobody reach."""

# Ray 2.60 takes 127.0.0.1 as its address only where its clusters are switched off, as they are on macOS and Windows:
# otherwise it replaces it by the machine's own and its servers listen on every interface. Drivers need the same.
LOOPBACK_RAY: Final[Mapping[str, str]] = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def mlflow_server(home: Path, socket: Path) -> ChildSpec:
    """MLflow's server over SQLite: on a Unix socket and no port, one worker, no job runners, no gateway.

    It asks nobody for a password, and every account may write to its socket: the folder of the socket must be closed.
    It takes seconds and hundreds of MB to start, and no training needs it: it starts with the first sweep or when
    somebody opens it.
    """
    # By default uvicorn looks for modules in the current folder first.
    uvicorn = (
        "--uds",
        str(socket),
        "--log-level",
        "info",
        "--no-access-log",
        "--app-dir",
        sysconfig.get_path("purelib"),
    )
    return ChildSpec(
        name="mlflow",
        command=(
            *(sys.executable, "-m", "mlflow", "server"),
            *("--workers", "1"),
            *("--backend-store-uri", sqlite_url(home / "mlflow.db")),
            *("--artifacts-destination", (home / "mlartifacts").absolute().as_uri()),
            *("--uvicorn-opts", shlex.join(uvicorn)),
        ),
        environment=MLFLOW_SWITCHES,
        socket=socket,
        says="Uvicorn running",
        awaited=False,
        on_demand=True,
    )


def ray_head(folder: Path, ports: Mapping[str, int], token: str, settings: Settings) -> ChildSpec:
    """A Ray of one machine: on loopback, with a token, without dashboard, autoscaler and log monitor. Before it ends
    its slots give back what they train.

    `ports` has `ray` and, where Ray Client is installed, `ray_client`; all others Ray takes free ones for, so that
    several heads share a machine. Workers inherit the environment: the data root, and nothing secret but Ray's token.
    """
    client = ("--ray-client-server-port", str(ports["ray_client"])) if "ray_client" in ports else ()
    theirs = {name: value for name, value in settings_environment(settings).items() if name in _FOR_WORKERS}
    return ChildSpec(
        name="ray",
        command=(
            *(sys.executable, "-m", "orchestrator.run.ray", "--grace", f"{GIVING_BACK_SECONDS:g}", "--heard", "0"),
            *("--head", "--block"),
            *("--port", str(ports["ray"]), *client),
            *("--min-worker-port", "0", "--max-worker-port", "0", "--dashboard-agent-listen-port", "0"),
            *("--object-store-memory", str(OBJECT_STORE_BYTES), "--temp-dir", str(folder)),
            *("--include-dashboard", "false", "--include-log-monitor", "false", "--no-monitor"),
            *("--disable-usage-stats", "--log-color", "false"),
        ),
        environment={
            **ray_environment(token),
            **theirs,
            # On SIGTERM Ray otherwise waits 30 s for its actors, which are detached and never end by themselves.
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
            # Each file of its session's logs, those of the slots too: by default 512 MiB, five times, or without end.
            "RAY_ROTATION_MAX_BYTES": str(LOG_BYTES),
            "RAY_ROTATION_BACKUP_COUNT": str(KEPT),
            **for_slots(os.environ),
        },
        port=ports["ray"],
        says="Ray runtime started",  # its first server listens a second before there is a node
        grace=GIVING_BACK_SECONDS + 10.0,
    )


def applications() -> list[ChildSpec]:
    """Our own two. The conductor waits for the API, so that one process migrates the database, and loads meanwhile.

    It ends first, since it writes what MLflow still lacks through the API.
    """
    conduct = (sys.executable, "-m", "orchestrator", "conduct", "--when-told")
    return [
        ChildSpec("api", (sys.executable, "-m", "api"), health="/healthz"),
        ChildSpec(
            "conductor",
            conduct,
            says="serving the queue",
            after=_API,
            needs=_RAY,
            outlived_by=_MLFLOW,
            grace=20.0,
            loads_first=True,
        ),
    ]


def ray_environment(token: str) -> dict[str, str]:
    """What Ray's processes and its drivers share."""
    return {
        **LOOPBACK_RAY,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def has_ray_client() -> bool:
    """Whether Ray would start its client server, which it does wherever grpc happens to be installed."""
    return importlib.util.find_spec("grpc") is not None


def settings_environment(settings: Settings) -> dict[str, str]:
    """Settings as METRICSWEEP_* variables with absolute paths, without what only one child gets."""
    absolute = settings.model_copy(
        update={
            "home": settings.resolved_home,
            "database_url": settings.database,
            "storage_url": str(settings.storage),
            "data": settings.data_root.absolute(),
            "parts": settings.parts and settings.parts.absolute(),
            "mlflow_socket": settings.mlflow_socket and settings.mlflow_socket.absolute(),
        }
    )
    withheld = {"token", "oidc_client_secret", *WEBHOOK, *SECRET_FILES}
    values = {name: getattr(absolute, name) for name in Settings.model_fields if name not in withheld}
    return {PREFIX + name.upper(): str(value) for name, value in values.items() if value is not None}


def own_environments(settings: Settings) -> dict[str, dict[str, str]]:
    """What only one child gets, by its name: the API the token and what it shows the provider, the conductor the
    webhook and MLflow's login.

    Both get the file of the database's password.
    """
    files = {name: file.absolute() for name in SECRET_FILES if (file := getattr(settings, name))}
    both = {"database_password_file": files.get("database_password_file")}
    own: dict[str, dict[str, object]] = {
        "api": {name: getattr(settings, name) for name in ("token", "oidc_client_secret")} | both
    }
    own["api"] |= {name: files.get(name) for name in ("token_file", "oidc_client_secret_file")}
    of_conductor = ("webhook_secret_file", "mlflow_token_file", "mlflow_password_file")
    own["conductor"] = {name: getattr(settings, name) for name in WEBHOOK} | both
    own["conductor"] |= {name: files.get(name) for name in of_conductor}
    environments = {
        child: {PREFIX + name.upper(): _plain(value) for name, value in values.items() if value is not None}
        for child, values in own.items()
    }
    if settings.engine == "inline":  # the conductor itself trains
        environments["conductor"] |= for_slots(os.environ)
    return environments


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def inherited_environment(*, own_mlflow: bool = False) -> dict[str, str]:
    """This process's environment without our settings, another Ray's address and, for our own MLflow, any word to one.
    No process looks for modules in its current folder.

    What a person set for the `mlflow` command (a server with its password, plugins, remote assistants) is not for ours.
    """
    dropped = {PREFIX + name.upper() for name in Settings.model_fields} | {"RAY_ADDRESS"}
    words = ("MLFLOW_", "_MLFLOW_") if own_mlflow else ()
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith(words)}
    folders = kept.get("PYTHONPATH", "").split(os.pathsep)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, folders))  # an empty one is the current folder
    return kept | {"PYTHONSAFEPATH": "1"}


_API: Final = frozenset({"api"})
_RAY: Final = frozenset({"ray"})
_MLFLOW: Final = frozenset({"mlflow"})
_FOR_WORKERS: Final = {PREFIX + name for name in ("HOME", "DATA", "PARTS", "STORAGE_URL", "TRAIN", "TRACES_URL")}
