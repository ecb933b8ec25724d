"""The secrets in force: what settings hold, or what the files say now that settings name."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from orchestrator.host.secret_file import one_line, secret_file
from orchestrator.host.secret_settings import SECRET_FILES, SECRET_VARIABLES, token_pair
from orchestrator.host.webhook_signature import keys_of
from orchestrator.settings import PREFIX, Settings
from orchestrator.views.errors import MetricsweepError

Secret = TypeVar("Secret")


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
            return self._of_file("token_file", self._settings.token_file, token_pair)
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
