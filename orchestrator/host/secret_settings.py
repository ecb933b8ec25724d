"""Which settings and variables hold secrets, and what is long enough to be a token."""

from typing import Final

SECRET_VARIABLES: Final = (
    "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD",
    "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)  # fmt: skip
"""Other programs' variables that hold a secret, which an error of theirs may show."""

SECRET_FILES: Final = (
    "token_file", "database_password_file", "webhook_secret_file", "mlflow_token_file", "mlflow_password_file",
    "oidc_client_secret_file",
)  # fmt: skip
"""Settings that name a file with a secret, which is read anew when it changes."""
LEAST_TOKEN: Final = 16
"""Characters that a token has at least: sixteen random ones are not guessed."""


def long_enough(text: str) -> str:
    """A token; raises ValueError, which says nothing of it but its length."""
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError(
            f"a token has at least {LEAST_TOKEN} visible ASCII characters without blanks, this one has "
            f"{len(text)}; `openssl rand -hex 24` makes one"
        )
    return text


def token_pair(text: str) -> tuple[str, ...]:
    """The tokens of a file: one, or two while one replaces the other. ValueError."""
    tokens = tuple(map(long_enough, text.split()))
    if len(tokens) not in (1, 2):
        raise ValueError(f"expected a token, or two while one replaces the other, found {len(tokens)}")
    return tokens
