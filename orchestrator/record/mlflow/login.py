"""Who we are to the MLflow that our own API passes on, and who it must be before it is told."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_OTHERS: Final = (
    "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4", "MLFLOW_TRACKING_CLIENT_CERT_PATH",
)  # fmt: skip
"""Ways of logging in at some other server, which the client would use here."""


@dataclass(frozen=True, slots=True)
class OwnServer:
    """The MLflow behind the API of our own home."""

    password: str = field(repr=False)
    """Opens MLflow there, and nothing else of the API."""
    prove: Callable[[], None]
    """Has the server show whose it is; raises UnavailableError for anything else that answers at the address."""

    def log_in(self) -> None:
        """Tell this process's MLflow client."""
        for name in _OTHERS:
            os.environ.pop(name, None)
        # A name and a password, since those of a file in the user's home folder would win over a token.
        os.environ |= {"MLFLOW_TRACKING_USERNAME": "metricsweep", "MLFLOW_TRACKING_PASSWORD": self.password}
