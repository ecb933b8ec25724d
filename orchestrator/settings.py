"""The settings of a metricsweep installation, read from METRICSWEEP_* variables."""

import os
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from orchestrator.host.function_names import FUNCTION_NAME
from orchestrator.host.logs import LogForm
from orchestrator.host.loopback import is_loopback
from orchestrator.host.storage import parsed
from orchestrator.host.webhook_signature import keys_of
from orchestrator.views.errors import MetricsweepError

LEAST_TOKEN: Final = 16
"""Characters that a token has at least: sixteen random ones are not guessed."""


ENGINES: Final[Mapping[str, str]] = {
    "ray_tune": "orchestrator.run.ray.engine:engine",
    "files": "orchestrator.run.files.engine:engine",
    "inline": "orchestrator.run.inline:engine",
}
"""Those that come with metricsweep, by their short names."""

SECRET_VARIABLES: Final = (
    "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD",
    "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)  # fmt: skip
"""Other programs' variables that hold a secret, which an error of theirs may show."""

_PREFIX: Final = "METRICSWEEP_"


class Settings(BaseModel):
    """Where things are: what is given, else what the environment says. Laptop and cluster differ in three URLs."""

    model_config = ConfigDict(
        extra="ignore",
        validate_default=True,
        hide_input_in_errors=True,  # an address may hold a password
    )

    def __init__(self, **given: Any) -> None:
        # pydantic-settings does the same, and brings asyncio and a command line: a tenth of a short command's time.
        said = {name.upper(): value for name, value in os.environ.items()}
        names = [name for name in type(self).model_fields if _PREFIX + name.upper() in said]
        super().__init__(**{**{name: said[_PREFIX + name.upper()] for name in names}, **given})

    home: Path = Path(".metricsweep")
    """Folder of the SQLite database, MLflow's store, artifacts, checkpoints and logs."""
    database_url: str = ""
    """SQLAlchemy URL; empty: the file `metricsweep.db` in the home folder."""
    ray_address: str = ""
    """host:port of a Ray cluster; empty: `serve` starts a local one."""
    mlflow_url: str = ""
    """Address of an MLflow server; empty: `serve` starts a local one."""
    mlflow_socket: Path | None = None
    """Unix socket of the MLflow server that the API passes on under `/mlflow`; `serve` sets it for its own."""
    mlflow_public_url: str = ""
    """Address by which a person's browser reaches MLflow; empty: the same, or `/mlflow` of the API."""
    storage_url: str = ""
    """Where checkpoints, artifacts and spools go: a folder, file:// or s3://; empty: `storage` in the home folder."""
    data: Path | None = None
    """This machine's folder of data sets; none: the folder `data` in the home folder."""
    parts: Path | None = None
    """A folder of the researcher's own parts, laid out as `workers/` is."""
    host: str = "127.0.0.1"
    """Address that the API listens on; any but loopback needs a token that was set."""
    port: int = Field(default=8787, ge=0, le=65535)
    """Port that the API listens on; where it was not set and is taken, `serve` takes another; 0: any."""
    token: SecretStr | None = None
    """Bearer token of the API, beside the one that the home folder keeps for the commands of its own user."""
    trusted_proxies: str = ""
    """Addresses or networks, with commas, of proxies that log users in: what they ask with METRICSWEEP_TOKEN they ask
    for the user that `X-Actor` names; empty: none."""
    url: str = ""
    """Address by which others reach the API, and that the client commands talk to; empty: where it listens."""
    train: str = "workers.train:train"
    """The training function by name, resolved on the worker."""
    inspect: str | None = None
    """The function that looks at a data root, by name, resolved on the worker; none: that of our own training function,
    where it is ours that trains. Empty: nobody looks."""
    engine: str = "ray_tune"
    """What executes trainings: `ray_tune`, `files` (slots that join by files, such as jobs of Slurm), `inline`, or
    `module:factory` of another one."""
    lease_seconds: float = Field(default=15.0, gt=0)
    """How long a conductor that stopped renewing is still believed alive."""
    request_seconds: float = Field(default=60.0, gt=0)
    """How long the API works on one costly request, such as a dry run or a table, before it gives up with a 503."""
    read_rate: float = Field(default=100.0, ge=0, allow_inf_nan=False)
    """Requests a second that a token may send to read, ten seconds' worth at once; 0: as many as it likes."""
    write_rate: float = Field(default=10.0, ge=0, allow_inf_nan=False)
    """The same of requests that change something."""
    open_rate: float = Field(default=5.0, ge=0, allow_inf_nan=False)
    """The same of what an address sends to where no token is asked for."""
    slots: int | None = Field(default=None, ge=1)
    """Most slots in use at once; none: as many as the cluster holds."""
    log_format: LogForm = "text"
    """How API and conductor log: `text` for people, or `json`, a line of JSON a record with the ids of its sweep."""
    owner_slots: int | None = Field(default=None, ge=1)
    """Most slots in use at once for the sweeps of one owner; none: no limit."""

    traces_url: str = ""
    """An OpenTelemetry collector that is told traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty: nobody."""
    webhook_secret: SecretStr | None = None
    """What the webhook's messages are signed by: `whsec_` and base64; a second one behind a blank signs too."""
    webhook_secret_file: Path | None = None
    """A file that holds it instead; only the conductor reads it."""
    webhook_url: SecretStr | None = None
    """Who is told when a sweep ends, stalls or is hindered: an https address, or http of this machine; none: nobody."""

    slot_growth: float = Field(default=1.5, gt=1)
    """A slot that holds so many times the memory that it held after its second training is replaced."""

    @field_validator("engine")
    @classmethod
    def _is_named(cls, name: str) -> str:
        if name not in ENGINES and not FUNCTION_NAME.fullmatch(name):
            raise ValueError(
                f"expected `ray_tune`, `files`, `inline` or `module:factory` of an engine, found {name[:100]!r}"
            )
        return name

    @field_validator("train", "inspect")
    @classmethod
    def _is_a_function(cls, name: str | None, field: ValidationInfo) -> str | None:
        if (name or field.field_name == "train") and not FUNCTION_NAME.fullmatch(name or ""):
            usual = f"workers.{'train:train' if field.field_name == 'train' else 'data.inspection:inspect'}"
            raise ValueError(f"expected `module:function`, such as `{usual}`, found {(name or '')[:100]!r}")
        return name

    @field_validator("storage_url")
    @classmethod
    def _is_a_storage(cls, url: str) -> str:
        parsed(url)
        return url

    @field_validator("token")
    @classmethod
    def _is_long_enough(cls, token: SecretStr | None) -> SecretStr | None:
        text = token.get_secret_value().strip() if token else ""
        if not text:
            return None
        if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
            raise ValueError(
                f"a token has at least {LEAST_TOKEN} visible ASCII characters without blanks, this one has "
                f"{len(text)}; `openssl rand -hex 24` makes one"
            )
        return SecretStr(text)

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @field_validator("traces_url")
    @classmethod
    def _is_a_collector(cls, url: str) -> str:
        split = urlsplit(url.strip())
        if url.strip() and (split.scheme not in ("http", "https") or not split.hostname or "@" in split.netloc):
            raise ValueError("expected http:// or https://, a host and no password, such as http://127.0.0.1:4318")
        return url.strip()

    @field_validator("webhook_secret")
    @classmethod
    def _signs(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is None or not secret.get_secret_value().strip():
            return None
        keys_of(secret.get_secret_value())
        return secret

    @field_validator("webhook_url")
    @classmethod
    def _can_be_told(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """Nothing of a wrong address is repeated: whoever has one may post to it."""
        if url is None or not url.get_secret_value().strip():
            return None
        try:
            split = urlsplit(url.get_secret_value().strip())
            host = split.hostname or ""
        except ValueError:
            host = ""
        if not host or not (split.scheme == "https" or (split.scheme == "http" and is_loopback(host))):
            raise ValueError("expected an https:// address, or http:// of this machine (127.0.0.1, localhost)")
        if not any(info.data.get(name, "wrong") for name in ("webhook_secret", "webhook_secret_file")):
            raise ValueError(
                f"needs {_PREFIX}WEBHOOK_SECRET or {_PREFIX}WEBHOOK_SECRET_FILE, since messages are signed"
            )
        return SecretStr(split.geturl())

    @property
    def webhook_keys(self) -> tuple[bytes, ...]:
        """What the webhook's messages are signed by; raises MetricsweepError where the file of it says nothing."""
        if self.webhook_secret is not None:
            return keys_of(self.webhook_secret.get_secret_value())
        file = self.webhook_secret_file
        try:
            return keys_of(file.read_text(encoding="ascii") if file else "")
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise MetricsweepError(f"{_PREFIX}WEBHOOK_SECRET_FILE  {file}: {said}") from None

    @property
    def proxies(self) -> list[IPv4Network | IPv6Network]:
        """Where the trusted proxies are."""
        return _networks(self.trusted_proxies)

    @property
    def address(self) -> str:
        """The URL of the API in force."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def resolved_home(self) -> Path:
        """The home folder as an absolute path."""
        return Path(os.path.abspath(self.home))

    @property
    def inspection(self) -> str | None:
        """The inspecting function in force; what another training function reads, nobody knows."""
        if self.inspect is not None:
            return self.inspect or None
        return "workers.data.inspection:inspect" if self.train == "workers.train:train" else None

    @property
    def database(self) -> str:
        """The SQLAlchemy URL in force."""
        return self.database_url or f"sqlite:///{self.resolved_home / 'metricsweep.db'}"

    @property
    def storage(self) -> Path | str:
        """The storage in force: an absolute folder, or the URL of a store."""
        if not self.storage_url:
            return self.resolved_home / "storage"
        found = parsed(self.storage_url)
        return found.absolute() if isinstance(found, Path) else self.storage_url

    @property
    def data_root(self) -> Path:
        """The data folder in force."""
        return self.data or self.resolved_home / "data"

    @property
    def secrets(self) -> list[str]:
        """What no log may show: the token, the webhook, the database's password, and what other programs are told."""
        password = unquote(urlsplit(self.database).password or "")
        named = (os.environ.get(name, "") for name in SECRET_VARIABLES)
        ours = (self.token, self.webhook_url)
        known = [*(secret.get_secret_value() for secret in ours if secret), password, *named]
        if self.webhook_secret:
            known += self.webhook_secret.get_secret_value().split()
        elif self.webhook_secret_file:
            with suppress(OSError, ValueError):
                known += self.webhook_secret_file.read_text(encoding="ascii").split()
        return [secret for secret in known if len(secret) >= 4]

    @property
    def mlflow_pages(self) -> str:
        """Where a person's browser finds MLflow: an address, or a path of the server whose page leads there."""
        return self.mlflow_public_url or ("/mlflow" if self.mlflow_socket else self.mlflow_url)


def _networks(text: str) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(one.strip()) for one in text.split(",") if one.strip()]
    except ValueError as error:
        raise ValueError(f"expected addresses or networks with commas, such as 10.0.0.7,10.1.0.0/16: {error}") from None


def problems(error: ValidationError) -> list[str]:
    """A line for each setting that is wrong: its variable, and what would be right."""
    return [
        f"{_PREFIX}{'_'.join(map(str, one['loc'])).upper()}  {one.get('ctx', {}).get('error', one['msg'])}"
        for one in error.errors()
    ]
