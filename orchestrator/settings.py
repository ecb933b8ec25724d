"""The settings of a metricsweep installation, read from METRICSWEEP_* variables, and the secrets that they name."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
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
    told_address,
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
"""Those that come with metricsweep, by their short names."""

PREFIX: Final = "METRICSWEEP_"
SECRET_VARIABLES: Final = (
    "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD",
    "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)  # fmt: skip
"""Variables of other programs that hold a secret, which their errors may show."""
SECRET_FILES: Final = (
    "token_file", "database_password_file", "webhook_secret_file", "mlflow_token_file", "mlflow_password_file",
    "oidc_client_secret_file",
)  # fmt: skip
"""Settings that name a file with a secret, which is read anew when it changes."""
LEAST_TOKEN: Final = 16
"""The least number of characters of a token: sixteen random ones are not guessed."""


def _long_enough(text: str) -> str:
    """A token; raises ValueError, which shows nothing of it but its length."""
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(
            f"a token has at least {LEAST_TOKEN} visible ASCII characters without blanks, this one has "
            f"{len(text)}; `openssl rand -hex 24` makes one"
        )
    return text


def _token_pair(text: str) -> tuple[str, ...]:
    """The tokens of a file: one, or two while one replaces the other; raises ValueError."""
    tokens = tuple(map(_long_enough, text.split()))
    if len(tokens) not in (1, 2):
        raise ValueError(f"expected a token, or two while one replaces the other, found {len(tokens)}")
    return tokens


def _visible(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("expected one line of visible ASCII characters")
    return text


def _checked(check: Callable[[str], Any]) -> AfterValidator:
    """Refuse a text of which `check` raises a ValueError; it stays as it is."""

    def validated(text: str) -> str:
        check(text)
        return text

    return AfterValidator(validated)


def _secret(check: Callable[[str], Any]) -> AfterValidator:
    """Refuse a secret of which `check` raises a ValueError; blanks around it are dropped, an empty one is `None`."""

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


def _function(usual: str) -> Callable[[str], None]:
    def check(name: str) -> None:
        if not FUNCTION_NAME.fullmatch(name):
            raise ValueError(f"expected `module:function`, such as `{usual}`, found {name[:100]!r}")

    return check


LocalPath = Annotated[Path, AfterValidator(lambda path: Path(os.path.expanduser(path)))]
Networks = Annotated[str, _checked(networks)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Where things are: what is given, else what the environment says. Laptop and cluster differ in three URLs.

    A `~` at the start of a path is the home folder of the user, who may stand behind it (`~alice`).
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="ignore",
        validate_default=True,
        hide_input_in_errors=True,  # an address may hold a password
    )

    home: LocalPath = Path(".metricsweep")
    """Folder of the SQLite database, MLflow's store, artifacts, checkpoints and logs."""
    database_url: Annotated[str, AfterValidator(of_this_user)] = ""
    """SQLAlchemy URL; empty: the file `metricsweep.db` in the home folder."""
    database_password_file: LocalPath | None = None
    """A file that holds the password of a database URL without one; each new connection reads it anew."""
    ray_address: str = ""
    """host:port of a Ray cluster; empty: `serve` starts a local one."""
    mlflow_url: str = ""
    """Address of an MLflow server; empty: `serve` starts a local one."""
    mlflow_socket: LocalPath | None = None
    """Unix socket of the MLflow server that the API passes on under `/mlflow`; `serve` sets it for its own."""
    mlflow_public_url: str = ""
    """Address by which a person's browser reaches MLflow; empty: the same, or `/mlflow` of the API."""
    storage_url: Annotated[str, AfterValidator(of_this_user), _checked(parsed)] = ""
    """Where checkpoints, artifacts and spools go: a folder, file:// or s3://; empty: `storage` in the home folder."""
    data: LocalPath | None = None
    """This machine's folder of data sets; none: the folder `data` in the home folder."""
    parts: LocalPath | None = None
    """A folder of the researcher's own parts, laid out as `workers/` is."""
    host: str = "127.0.0.1"
    """Address that the API listens on; any but loopback needs a token that was set."""
    port: int = Field(default=8787, ge=0, le=65535)
    """Port that the API listens on; where it was not set and is taken, `serve` takes another; 0: any."""
    token: Annotated[SecretStr | None, _secret(_long_enough)] = None
    """Bearer token of the API, beside the one that the home folder keeps for the commands of its own user."""
    token_file: LocalPath | None = None
    """A file that holds it instead, read anew when it changes; a second one behind a blank opens too."""
    trusted_proxies: Networks = ""
    """Addresses or networks, with commas, of proxies that log users in: what they ask with METRICSWEEP_TOKEN they ask
    for the user that `X-Actor` names; empty: none."""
    oidc_issuer: Annotated[str, AfterValidator(lambda url: checks.issuer(url.strip()))] = ""
    """A provider of OpenID Connect that logs people in, as it names itself; empty: none does."""
    oidc_client_id: str = ""
    """By which name the provider knows this service."""
    oidc_client_secret: Annotated[SecretStr | None, _secret(_visible)] = None
    """What the service shows the provider; none: it is a public client."""
    oidc_client_secret_file: LocalPath | None = None
    """A file that holds it instead, read anew when it changes."""
    oidc_name: str = Field(default="", max_length=80)
    """What the login page calls the provider; empty: by its host."""
    oidc_scopes: Annotated[str, AfterValidator(checks.scopes)] = "openid profile email"
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
    oidc_roles: Annotated[str, _checked(checks.group_roles)] = ""
    """group=role with commas: the highest is the user's role from each login on; empty: administrators give roles."""
    oidc_hours: float = Field(default=12.0, gt=0, le=720)
    """After how many hours a browser that the provider let in logs in again."""
    forwarding_proxies: Networks = ""
    """Addresses or networks, with commas, of proxies of which `X-Forwarded-For` and `X-Forwarded-Proto` are believed;
    empty: of none."""
    url: str = ""
    """Address by which others reach the API, and that the client commands talk to; empty: where it listens."""
    train: Annotated[str, _checked(_function("workers.train:train"))] = "workers.train:train"
    """The training function by name, resolved on the worker."""
    inspect: str | None = None
    """The function that looks at a data root, by name, resolved on the worker; none: that of our own training function,
    where it is ours that trains. Empty: nobody looks."""
    engine: Annotated[str, _checked(_engine)] = "ray_tune"
    """What executes trainings: `ray_tune`, `files` (slots that join by files, such as jobs of Slurm), `inline`, or
    `module:factory` of another one."""
    lease_seconds: float = Field(default=15.0, gt=0)
    """How long a conductor that stopped renewing is still believed alive."""
    request_seconds: float = Field(default=60.0, gt=0)
    """How long the API works on one costly request, such as a table, before it gives up with a 503.

    Of a spec, which is submitted or tried out, the work is counted instead.
    """
    read_rate: Rate = 100.0
    """Requests a second that a token may send to read, ten seconds' worth at once; 0: as many as it likes."""
    write_rate: Rate = 10.0
    """The same of requests that change something."""
    open_rate: Rate = 5.0
    """The same of what an address sends to where no token is asked for."""
    slots: int | None = Field(default=None, ge=1)
    """Most slots in use at once; none: as many as the cluster holds."""
    log_format: LogForm = "text"
    """How API and conductor log: `text` for people, or `json`, a line of JSON a record with the ids of its sweep."""
    owner_slots: int | None = Field(default=None, ge=1)
    """Most slots in use at once for the sweeps of one owner; none: no limit."""
    owner_trials: int = Field(default=200_000, ge=1)
    """Most trials of one owner's sweeps that may wait at once; a sweep that would add more is refused."""

    traces_url: Annotated[str, AfterValidator(collector)] = ""
    """An OpenTelemetry collector that is told traces (OTLP over HTTP), such as http://127.0.0.1:4318; empty: nobody."""
    webhook_secret: Annotated[SecretStr | None, _secret(keys_of)] = None
    """What the webhook's messages are signed by: `whsec_` and base64; a second one behind a blank signs too."""
    webhook_secret_file: LocalPath | None = None
    """A file that holds it instead, read anew when it changes; only the conductor reads it."""
    mlflow_token_file: LocalPath | None = None
    """A file that holds what `MLFLOW_TRACKING_TOKEN` says to the server of `mlflow_url`, read anew when it changes."""
    mlflow_password_file: LocalPath | None = None
    """The same of `MLFLOW_TRACKING_PASSWORD`."""
    webhook_url: SecretStr | None = None
    """Who is told when a sweep ends, stalls or is hindered: an https address, or http of this machine; none: nobody."""

    slot_growth: float = Field(default=1.5, gt=1)
    """A slot that holds so many times the memory that it held after its second training is replaced."""

    @field_validator("inspect")
    @classmethod
    def _inspects(cls, name: str | None) -> str | None:
        if name:
            _function("workers.data.inspection:inspect")(name)
        return name

    @field_validator("token_file", "oidc_client_secret_file")
    @classmethod
    def _stands_alone(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        other = (info.field_name or "").removesuffix("_file")
        if file is not None and info.data.get(other) is not None:
            raise ValueError(f"{PREFIX}{other.upper()} is set too; name one of them")
        return file

    @field_validator("oidc_client_id")
    @classmethod
    def _is_known_there(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("oidc_issuer") and not (name.isascii() and name.isprintable() and name.strip()):
            raise ValueError(f"{PREFIX}OIDC_ISSUER is set: name the client id by which the provider knows this service")
        return name.strip()

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


class Secrets:
    """Those of one installation, each read anew when it is asked for; MetricsweepError where a file never held one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def webhook_keys(self) -> tuple[bytes, ...]:
        """What the webhook's messages are signed by."""
        if self._settings.webhook_secret is not None:
            return keys_of(self._settings.webhook_secret.get_secret_value())
        if self._settings.webhook_secret_file is None:
            raise MetricsweepError(f"{PREFIX}WEBHOOK_SECRET_FILE  names no file")
        return self._of_file("webhook_secret_file", self._settings.webhook_secret_file, keys_of)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the server beside its home's own: none, one, or two while one replaces the other."""
        if self._settings.token_file is not None:
            return self._of_file("token_file", self._settings.token_file, _token_pair)
        return (self._settings.token.get_secret_value(),) if self._settings.token else ()

    @property
    def oidc_client_secret(self) -> str | None:
        """What the service shows the provider that logs people in; none: it shows nothing."""
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
        """What MLflow's client is to be told by its own variables."""
        names = ("mlflow_token_file", "mlflow_password_file")
        files = {name: file for name in names if (file := getattr(self._settings, name))}
        told = {name: self._of_file(name, file, one_line) for name, file in files.items()}
        return {f"MLFLOW_TRACKING_{name.split('_')[1].upper()}": secret for name, secret in told.items()}

    @property
    def hidden(self) -> list[str]:
        """What no log may show: what opens this service, its database and its webhook, and what others are told."""
        settings = self._settings
        password = unquote(urlsplit(settings.database).password or "")
        named = (os.environ.get(name, "") for name in SECRET_VARIABLES)
        ours = (settings.token, settings.webhook_url, settings.webhook_secret, settings.oidc_client_secret)
        known = [part for secret in ours if secret for part in secret.get_secret_value().split()]
        known += [password, *named]
        for name in SECRET_FILES:
            if file := getattr(settings, name):
                with suppress(MetricsweepError):
                    known += self._of_file(name, file, str.split)
        return [secret for secret in known if len(secret) >= 4]

    def _of_file(self, name: str, file: Path, parse: Callable[[str], Secret]) -> Secret:
        return secret_file(f"{PREFIX}{name.upper()}", file.absolute(), parse).value()
