"""The settings of a metricsweep installation, from METRICSWEEP_* variables, and its secrets."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from orchestrator.host import checks
from orchestrator.host.checks import (
    FUNCTION_NAME,
    NewUsers,
    collector,
    networks,
    of_this_user,
    sqlite_url,
    webhook_address,
)
from orchestrator.host.files import one_line, secret_file
from orchestrator.host.identity import keys_of
from orchestrator.host.logs import LogForm
from orchestrator.host.storage import parsed
from orchestrator.views.errors import MetricsweepError

Secret = TypeVar("Secret")
ENGINES: Final[Mapping[str, str]] = {
    "ray_tune": "orchestrator.run.ray.engine:engine",
    "files": "orchestrator.run.files.engine:engine",
    "inline": "orchestrator.run.inline:engine",
}
"""Our engines by their short names."""

PREFIX: Final = "METRICSWEEP_"
SECRET_VARIABLES: Final = (
    "RAY_AUTH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_PASSWORD",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)
"""Variables of other programs with a secret, which their errors may show."""
LEAST_TOKEN: Final = 16  # the least number of characters of a token


def _long_enough(text: str) -> str:
    """Check a token; raises ValueError with its length only."""
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(
            f"a token has at least {LEAST_TOKEN} visible ASCII characters without blanks, this one has "
            f"{len(text)}; `openssl rand -hex 24` makes one"
        )
    return text


def _token_pair(text: str) -> tuple[str, ...]:
    """Parse the tokens of a file: one, or two while one replaces the other; raises ValueError."""
    tokens = tuple(map(_long_enough, text.split()))
    if len(tokens) not in (1, 2):
        raise ValueError(f"expected a token, or two while one replaces the other, found {len(tokens)}")
    return tokens


def _visible(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("expected one line of visible ASCII characters")
    return text


def _checked(check: Callable[[str], Any]) -> AfterValidator:
    """A validator that calls `check`, which may raise ValueError, and keeps the text."""

    def validated(text: str) -> str:
        check(text)
        return text

    return AfterValidator(validated)


def _secret(check: Callable[[str], Any]) -> AfterValidator:
    """A validator that strips a secret and calls `check`, which may raise ValueError; an empty secret is `None`."""

    def validated(secret: SecretStr | None) -> SecretStr | None:
        text = secret.get_secret_value().strip() if secret else ""
        if not text:
            return None
        check(text)
        return SecretStr(text)

    return AfterValidator(validated)


def _engine(name: str) -> None:
    if name not in ENGINES and not FUNCTION_NAME.fullmatch(name):
        raise ValueError(
            f"expected `ray_tune`, `files`, `inline` or `module:factory` of an engine, found {name[:100]!r}"
        )


def _function(usual: str, *, optional: bool = False) -> Callable[[str], None]:
    def check(name: str) -> None:
        if not (optional and not name) and not FUNCTION_NAME.fullmatch(name):
            raise ValueError(f"expected `module:function`, such as `{usual}`, found {name[:100]!r}")

    return check


LocalPath = Annotated[Path, AfterValidator(lambda path: Path(os.path.expanduser(path)))]
Networks = Annotated[str, _checked(networks)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """The settings: arguments, else variables of the environment. Laptop and cluster differ in three URLs.

    A `~` or `~alice` at the start of a path is the home folder of a user.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="ignore",
        validate_default=True,
        hide_input_in_errors=True,  # an address may have a password
    )

    home: LocalPath = Path(".metricsweep")
    """The folder of the SQLite database, MLflow's store, artifacts, checkpoints and logs."""
    database_url: Annotated[str, AfterValidator(of_this_user)] = ""
    """SQLAlchemy URL; empty: the file `metricsweep.db` in the home folder."""
    database_password_file: LocalPath | None = None
    """A file with the password of a database URL without one; each new connection reads it again."""
    ray_address: str = ""  # host:port of a Ray cluster; empty: `serve` starts a local one
    mlflow_url: str = ""  # address of an MLflow server; empty: `serve` starts a local one
    mlflow_socket: LocalPath | None = None
    """Unix socket of the MLflow server that the API forwards under `/mlflow`; `serve` sets it for its own server."""
    mlflow_public_url: str = ""  # address of MLflow for browsers; empty: `mlflow_url`, or `/mlflow` of the API
    storage_url: Annotated[str, AfterValidator(of_this_user), _checked(parsed)] = ""
    """Storage of checkpoints, artifacts and spools: a folder, file:// or s3://; empty: `storage` in the home folder."""
    data: LocalPath | None = None  # folder of data sets on this machine; None: `data` in the home folder
    parts: LocalPath | None = None  # a folder of your own parts, with the layout of `workers/`
    host: str = "127.0.0.1"  # address on which the API listens; all except loopback need a token
    port: int = Field(default=8787, ge=0, le=65535)
    """Port on which the API listens; 0: any. If the default port is in use, `serve` takes another one."""
    token: Annotated[SecretStr | None, _secret(_long_enough)] = None
    """Bearer token of the API, in addition to that of the home folder for local commands."""
    token_file: LocalPath | None = None
    """A file with the token, read again when it changes; it may have two tokens, separated by a blank."""
    trusted_proxies: Networks = ""
    """Addresses or networks, with commas, of proxies that log users in and send METRICSWEEP_TOKEN with the user's name
    in `X-Actor`."""
    oidc_issuer: Annotated[str, AfterValidator(lambda url: checks.issuer(url.strip()))] = ""
    """The issuer of an OpenID Connect provider that logs people in; empty: none."""
    oidc_client_id: str = ""  # the client id of this service at the provider
    oidc_client_secret: Annotated[SecretStr | None, _secret(_visible)] = None
    """The client secret; None: a public client."""
    oidc_client_secret_file: LocalPath | None = None  # a file with the client secret, read again when it changes
    oidc_name: str = Field(default="", max_length=80)  # the provider's name on the login page; empty: its host
    oidc_scopes: Annotated[str, AfterValidator(checks.scopes)] = "openid profile email"  # the requested scopes
    oidc_user_claim: str = "preferred_username"  # the claim with the name of a new user
    oidc_new_users: NewUsers = "refused"  # the role of new users, `viewer` or `member`, or `refused`
    oidc_domains: str = ""  # domains, with commas, of verified e-mail addresses that may log in; empty: all
    oidc_groups: str = ""  # groups, with commas, that may log in; empty: all
    oidc_groups_claim: str = "groups"  # the claim with a user's groups
    oidc_roles: Annotated[str, _checked(checks.group_roles)] = ""
    """group=role with commas: each login sets the highest of these roles; empty: administrators set roles."""
    oidc_hours: float = Field(default=12.0, gt=0, le=720)  # hours after which a browser must log in again
    forwarding_proxies: Networks = ""
    """Addresses or networks, with commas, of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    url: str = ""  # public address of the API, also for client commands; empty: the address on which it listens
    train: Annotated[str, _checked(_function("workers.train:train"))] = "workers.train:train"
    """The training function by name, resolved on the worker."""
    inspect: Annotated[str | None, _checked(_function("workers.data.inspection:inspect", optional=True))] = None
    """The function that inspects a data root, by name, resolved on the worker; None: ours if `train` is ours; empty: no
    inspection."""
    engine: Annotated[str, _checked(_engine)] = "ray_tune"
    """The engine: `ray_tune`, `files` (slots that join by files, such as jobs of Slurm), `inline`, or
    `module:factory`."""
    lease_seconds: float = Field(default=15.0, gt=0)
    """How long the lease of a conductor is valid without being renewed."""
    request_seconds: float = Field(default=60.0, gt=0)
    """How long the API works on an expensive request, such as a table, before it answers 503; specs have their own
    limit."""
    read_rate: Rate = 100.0  # reading requests a second of a token, with bursts of ten seconds' worth; 0: no limit
    write_rate: Rate = 10.0  # the same for requests that change something
    open_rate: Rate = 5.0  # the same for requests of a network address that need no token
    slots: int | None = Field(default=None, ge=1)  # most slots in use at once; None: as many as the cluster can hold
    log_format: LogForm = "text"
    """The form of logs: `text`, or `json`, a line for each record with the ids of its sweep."""
    owner_slots: int | None = Field(default=None, ge=1)
    """Most slots in use at once for the sweeps of one owner; None: no limit."""
    owner_trials: int = Field(default=200_000, ge=1)
    """Most waiting trials of one owner; a sweep that would exceed it is refused."""

    traces_url: Annotated[str, AfterValidator(collector)] = ""
    """An OpenTelemetry collector for traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty: none."""
    webhook_secret: Annotated[SecretStr | None, _secret(keys_of)] = None
    """The secret that signs the webhook's messages: `whsec_` and base64; or two, separated by a blank."""
    webhook_secret_file: LocalPath | None = None  # a file with the secret, read again by the conductor when it changes
    mlflow_token_file: LocalPath | None = None
    """A file with `MLFLOW_TRACKING_TOKEN` for the server of `mlflow_url`, read again when it changes."""
    mlflow_password_file: LocalPath | None = None  # the same for `MLFLOW_TRACKING_PASSWORD`
    webhook_url: SecretStr | None = None
    """An https address, or http of this machine, that is notified when a sweep ends, stalls or is blocked."""

    slot_growth: float = Field(default=1.5, gt=1)
    """A slot is replaced when it has this multiple of the memory that it had after its second training."""

    @field_validator("token_file", "oidc_client_secret_file")
    @classmethod
    def _check_alone(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        other = (info.field_name or "").removesuffix("_file")
        if file is not None and info.data.get(other) is not None:
            raise ValueError(f"{PREFIX}{other.upper()} is set too; name one of them")
        return file

    @field_validator("oidc_client_id")
    @classmethod
    def _check_client_id(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("oidc_issuer") and not (name.isascii() and name.isprintable() and name.strip()):
            raise ValueError(f"{PREFIX}OIDC_ISSUER is set: name the client id by which the provider knows this service")
        return name.strip()

    @field_validator("webhook_url")
    @classmethod
    def _check_webhook(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if url is None or not url.get_secret_value().strip():
            return None
        address = webhook_address(url.get_secret_value())
        if not any(info.data.get(name, "wrong") for name in ("webhook_secret", "webhook_secret_file")):
            raise ValueError(f"webhook messages are signed: set {PREFIX}WEBHOOK_SECRET or {PREFIX}WEBHOOK_SECRET_FILE")
        return SecretStr(address)

    @property
    def address(self) -> str:
        """The URL at which the API listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def resolved_home(self) -> Path:
        """The home folder as an absolute path."""
        return Path(os.path.abspath(self.home))

    @property
    def inspection(self) -> str | None:
        """The name of the function that inspects data folders, or `None`."""
        if self.inspect is not None:
            return self.inspect or None
        return "workers.data.inspection:inspect" if self.train == "workers.train:train" else None

    @property
    def database(self) -> str:
        """The SQLAlchemy URL of the database."""
        return self.database_url or sqlite_url(self.resolved_home / "metricsweep.db")

    @property
    def storage(self) -> Path | str:
        """The storage: an absolute folder, or the URL of a bucket."""
        if not self.storage_url:
            return self.resolved_home / "storage"
        found = parsed(self.storage_url)
        return found.absolute() if isinstance(found, Path) else self.storage_url

    @property
    def places(self) -> dict[str, Path]:
        """The folders of this machine that grow, by name: home, storage, and that of a SQLite database elsewhere."""
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
        """The folder with the data sets of this machine."""
        return self.data or self.resolved_home / "data"

    @property
    def mlflow_pages(self) -> str:
        """The address of MLflow for browsers, or its path on this server."""
        return self.mlflow_public_url or ("/mlflow" if self.mlflow_socket else self.mlflow_url)


SECRET_FILES: Final = tuple(name for name in Settings.model_fields if name.endswith("_file"))
"""Settings of files with secrets."""


def problems(error: ValidationError) -> list[str]:
    """A line for each wrong setting: its variable, and what would be right."""
    return [
        f"{PREFIX}{'_'.join(map(str, each['loc'])).upper()}  {each.get('ctx', {}).get('error', each['msg'])}"
        for each in error.errors()
    ]


class Secrets:
    """The present secrets of an installation. Raises MetricsweepError if a file never had a valid secret."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def webhook_keys(self) -> tuple[bytes, ...]:
        """The keys that sign the webhook's messages."""
        if self._settings.webhook_secret is not None:
            return keys_of(self._settings.webhook_secret.get_secret_value())
        if self._settings.webhook_secret_file is None:
            raise MetricsweepError(f"{PREFIX}WEBHOOK_SECRET_FILE does not name a file")
        return self._of_file("webhook_secret_file", self._settings.webhook_secret_file, keys_of)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The server's tokens without that of its home folder; two while one replaces the other."""
        if self._settings.token_file is not None:
            return self._of_file("token_file", self._settings.token_file, _token_pair)
        return (self._settings.token.get_secret_value(),) if self._settings.token else ()

    @property
    def oidc_client_secret(self) -> str | None:
        """The client secret of OpenID Connect, or `None`."""
        if (file := self._settings.oidc_client_secret_file) is not None:
            return self._of_file("oidc_client_secret_file", file, one_line)
        return secret.get_secret_value() if (secret := self._settings.oidc_client_secret) else None

    @property
    def database_password(self) -> str | None:
        """The password that the database's URL lacks."""
        file = self._settings.database_password_file
        return None if file is None else self._of_file("database_password_file", file, one_line)

    @property
    def mlflow_login(self) -> dict[str, str]:
        """The environment variables of MLflow's client with the login."""
        return {
            f"MLFLOW_TRACKING_{kind.upper()}": self._of_file(name, file, one_line)
            for kind in ("token", "password")
            if (file := getattr(self._settings, name := f"mlflow_{kind}_file"))
        }

    @property
    def hidden(self) -> list[str]:
        """All secrets of the installation, which logs must not show."""
        settings = self._settings
        password = unquote(urlsplit(settings.database).password or "")
        ours = (settings.token, settings.webhook_url, settings.webhook_secret, settings.oidc_client_secret)
        known = [part for secret in ours if secret for part in secret.get_secret_value().split()]
        known += [password, *(os.environ.get(name, "") for name in SECRET_VARIABLES)]
        for name in SECRET_FILES:
            if file := getattr(settings, name):
                with suppress(MetricsweepError):
                    known += self._of_file(name, file, str.split)
        return [secret for secret in known if len(secret) >= 4]

    def _of_file(self, name: str, file: Path, parse: Callable[[str], Secret]) -> Secret:
        return secret_file(f"{PREFIX}{name.upper()}", file.absolute(), parse).value()
