"""The settings of a metricsweep installation, read from METRICSWEEP_* variables."""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator

from orchestrator.host import oidc_settings
from orchestrator.host.addresses import collector, networks, of_this_user, sqlite_url, told_address
from orchestrator.host.function_names import FUNCTION_NAME
from orchestrator.host.logs import LogForm
from orchestrator.host.oidc_settings import NewUsers
from orchestrator.host.secret_settings import long_enough
from orchestrator.host.storage import parsed
from orchestrator.host.webhook_signature import keys_of

ENGINES: Final[Mapping[str, str]] = {
    "ray_tune": "orchestrator.run.ray.engine:engine",
    "files": "orchestrator.run.files.engine:engine",
    "inline": "orchestrator.run.inline:engine",
}
"""Those that come with metricsweep, by their short names."""

PREFIX: Final = "METRICSWEEP_"


class Settings(BaseModel):
    """Where things are: what is given, else what the environment says. Laptop and cluster differ in three URLs.

    A `~` at the start of a path is the home folder of the user, who may stand behind it (`~alice`).
    """

    model_config = ConfigDict(
        extra="ignore",
        validate_default=True,
        hide_input_in_errors=True,  # an address may hold a password
    )

    def __init__(self, **given: Any) -> None:
        # pydantic-settings does the same, and brings asyncio and a command line: a tenth of a short command's time.
        said = {name.upper(): value for name, value in os.environ.items()}
        names = [name for name in type(self).model_fields if PREFIX + name.upper() in said]
        super().__init__(**{**{name: said[PREFIX + name.upper()] for name in names}, **given})

    home: Path = Path(".metricsweep")
    """Folder of the SQLite database, MLflow's store, artifacts, checkpoints and logs."""
    database_url: str = ""
    """SQLAlchemy URL; empty: the file `metricsweep.db` in the home folder."""
    database_password_file: Path | None = None
    """A file that holds the password of a database URL without one; each new connection reads it anew."""
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
    token_file: Path | None = None
    """A file that holds it instead, read anew when it changes; a second one behind a blank opens too."""
    trusted_proxies: str = ""
    """Addresses or networks, with commas, of proxies that log users in: what they ask with METRICSWEEP_TOKEN they ask
    for the user that `X-Actor` names; empty: none."""
    oidc_issuer: str = ""
    """A provider of OpenID Connect that logs people in, as it names itself; empty: none does."""
    oidc_client_id: str = ""
    """By which name the provider knows this service."""
    oidc_client_secret: SecretStr | None = None
    """What the service shows the provider; none: it is a public client."""
    oidc_client_secret_file: Path | None = None
    """A file that holds it instead, read anew when it changes."""
    oidc_name: str = Field(default="", max_length=80)
    """What the login page calls the provider; empty: by its host."""
    oidc_scopes: str = "openid profile email"
    """What the provider is asked for."""
    oidc_user_claim: str = "preferred_username"
    """Which claim is the name of a user who is made."""
    oidc_new_users: NewUsers = "refused"
    """What becomes of whom the provider logs in, and who is no user: `refused`, or a `viewer` or `member`."""
    oidc_domains: str = ""
    """Domains of verified e-mail addresses, with commas, that may log in; empty: whatever they are."""
    oidc_groups: str = ""
    """Groups, with commas, of which one may log in; empty: whatever they are."""
    oidc_groups_claim: str = "groups"
    """Which claim has somebody's groups."""
    oidc_roles: str = ""
    """group=role with commas: the highest is the user's role from each login on; empty: administrators give roles."""
    oidc_hours: float = Field(default=12.0, gt=0, le=720)
    """After how many hours a browser that the provider let in logs in again."""
    forwarding_proxies: str = ""
    """Addresses or networks, with commas, of proxies of which `X-Forwarded-For` and `X-Forwarded-Proto` are believed;
    empty: of none."""
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
    """How long the API works on one costly request, such as a table, before it gives up with a 503.

    Of a spec, which is submitted or tried out, the work is counted instead.
    """
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
    owner_trials: int = Field(default=200_000, ge=1)
    """Most trials of one owner's sweeps that may wait at once; a sweep that would add more is refused."""

    traces_url: str = ""
    """An OpenTelemetry collector that is told traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty: nobody."""
    webhook_secret: SecretStr | None = None
    """What the webhook's messages are signed by: `whsec_` and base64; a second one behind a blank signs too."""
    webhook_secret_file: Path | None = None
    """A file that holds it instead, read anew when it changes; only the conductor reads it."""
    mlflow_token_file: Path | None = None
    """A file that holds what `MLFLOW_TRACKING_TOKEN` says to the server of `mlflow_url`, read anew when it changes."""
    mlflow_password_file: Path | None = None
    """The same of `MLFLOW_TRACKING_PASSWORD`."""
    webhook_url: SecretStr | None = None
    """Who is told when a sweep ends, stalls or is hindered: an https address, or http of this machine; none: nobody."""

    slot_growth: float = Field(default=1.5, gt=1)
    """A slot that holds so many times the memory that it held after its second training is replaced."""

    @field_validator("*", mode="after")
    @classmethod
    def _is_of_this_user(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, Path):
            return Path(os.path.expanduser(value))
        return of_this_user(value) if info.field_name in {"database_url", "storage_url"} else value

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
        return SecretStr(long_enough(text)) if text else None

    @field_validator("token_file", "oidc_client_secret_file")
    @classmethod
    def _stands_alone(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        other = (info.field_name or "").removesuffix("_file")
        if file is not None and info.data.get(other) is not None:
            raise ValueError(f"{PREFIX}{other.upper()} is set too; name one of them")
        return file

    @field_validator("oidc_issuer", "oidc_scopes", "oidc_roles")
    @classmethod
    def _is_a_provider_s(cls, text: str, info: ValidationInfo) -> str:
        if info.field_name == "oidc_issuer":
            return oidc_settings.issuer(text.strip())
        if info.field_name == "oidc_scopes":
            return oidc_settings.scopes(text)
        oidc_settings.group_roles(text)
        return text

    @field_validator("oidc_client_id")
    @classmethod
    def _is_known_there(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("oidc_issuer") and not (name.isascii() and name.isprintable() and name.strip()):
            raise ValueError(f"{PREFIX}OIDC_ISSUER is set: name the client id by which the provider knows this service")
        return name.strip()

    @field_validator("oidc_client_secret")
    @classmethod
    def _is_one_line(cls, secret: SecretStr | None) -> SecretStr | None:
        text = secret.get_secret_value().strip() if secret else ""
        if not text.isascii() or not text.isprintable():
            raise ValueError("expected one line of visible ASCII characters")
        return SecretStr(text) if text else None

    @field_validator("trusted_proxies", "forwarding_proxies")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        networks(text)
        return text

    @field_validator("traces_url")
    @classmethod
    def _is_a_collector(cls, url: str) -> str:
        return collector(url)

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
        if url is None or not url.get_secret_value().strip():
            return None
        address = told_address(url.get_secret_value())
        if not any(info.data.get(name, "wrong") for name in ("webhook_secret", "webhook_secret_file")):
            raise ValueError(f"messages are signed: needs {PREFIX}WEBHOOK_SECRET or {PREFIX}WEBHOOK_SECRET_FILE")
        return SecretStr(address)

    @property
    def proxies(self) -> list[IPv4Network | IPv6Network]:
        """Where the proxies are that log users in."""
        return networks(self.trusted_proxies)

    @property
    def forwarders(self) -> list[IPv4Network | IPv6Network]:
        """Where the proxies are that say for whom they ask."""
        return networks(self.forwarding_proxies)

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
        return self.database_url or sqlite_url(self.resolved_home / "metricsweep.db")

    @property
    def storage(self) -> Path | str:
        """The storage in force: an absolute folder, or the URL of a store."""
        if not self.storage_url:
            return self.resolved_home / "storage"
        found = parsed(self.storage_url)
        return found.absolute() if isinstance(found, Path) else self.storage_url

    @property
    def places(self) -> dict[str, Path]:
        """The folders of this machine that fill up, by name: home, storage, and a SQLite database elsewhere."""
        folders = {"home": self.resolved_home}
        if isinstance(self.storage, Path):
            folders["storage"] = self.storage
        if self.database.startswith("sqlite:///"):
            database = Path(os.path.abspath(self.database.removeprefix("sqlite:///").partition("?")[0])).parent
            if not database.is_relative_to(self.resolved_home):
                folders["database"] = database
        return folders

    @property
    def data_root(self) -> Path:
        """The data folder in force."""
        return self.data or self.resolved_home / "data"

    @property
    def mlflow_pages(self) -> str:
        """Where a person's browser finds MLflow: an address, or a path of the server whose page leads there."""
        return self.mlflow_public_url or ("/mlflow" if self.mlflow_socket else self.mlflow_url)


def problems(error: ValidationError) -> list[str]:
    """A line for each setting that is wrong: its variable, and what would be right."""
    return [
        f"{PREFIX}{'_'.join(map(str, one['loc'])).upper()}  {one.get('ctx', {}).get('error', one['msg'])}"
        for one in error.errors()
    ]
