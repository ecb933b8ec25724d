"""Who a home folder is: its secret, its public name, and the proof by which a server shows that it knows the secret.

The proof names the address at which it is asked for, so that nobody can get it at one address and show it at another.
It needs the home's own random secret, never METRICSWEEP_TOKEN, which a person may have chosen: a proof can be
compared with guesses offline.
"""

import hashlib
import hmac
import http.client
import json
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from orchestrator.host.private import known_secret, own_folder, own_secret
from orchestrator.views.errors import UnavailableError

SECRET_FILE: Final = "api.token"  # noqa: S105  the name of a file
IDENTITY_PATH: Final = "/v1/identity"
_PROOF_SECONDS: Final = 5.0
_PROOF_BYTES: Final = 4096
NONCE: Final = r"^[0-9a-f]{32,128}$"


@dataclass(frozen=True, slots=True)
class Identity:
    """A home's secret: the token of its own commands, and what its proofs are made with."""

    secret: str

    @property
    def name(self) -> str:
        """What may be shown of it; tells two homes apart and nothing of the secret."""
        return seal(self.secret, "identity")[:16]

    @property
    def mlflow_password(self) -> str:
        """What opens MLflow behind this home's server, and nothing else: it goes to notebooks and their logs."""
        return seal(self.secret, "mlflow")

    def proof(self, nonce: str, host: str, port: int) -> str:
        """What only a server of this home can answer, on this machine and at this address."""
        return seal(self.secret, "proof", nonce, host, str(port), socket.gethostname())


def seal(secret: str, purpose: str, *words: str) -> str:
    """A code over words that nobody can make who does not know the secret; each purpose has its own."""
    text = "\n".join(("metricsweep", purpose, *words))
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how far."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def made_for(home: Path) -> Identity:
    """The identity of a home folder, made on first use; raises MetricsweepError where it is somebody else's."""
    own_folder(home)
    return Identity(own_secret(home / SECRET_FILE))


def known_of(home: Path) -> Identity | None:
    """The identity of a home folder that has one."""
    try:
        return Identity(known_secret(home / SECRET_FILE))
    except FileNotFoundError:
        return None


def prove(url: str, identity: Identity) -> None:
    """Have the server at an address of this machine show that it is the home's; raises UnavailableError otherwise."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port
    nonce = secrets.token_hex(32)
    connection = http.client.HTTPConnection(host, port, timeout=_PROOF_SECONDS)
    try:
        connection.request("GET", f"{IDENTITY_PATH}?nonce={nonce}")
        its_host, its_port = connection.sock.getpeername()[:2]
        said = json.loads(connection.getresponse().read(_PROOF_BYTES))["proof"]
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"{url} does not answer: {error}") from error
    except (ValueError, KeyError, TypeError):
        said = ""
    finally:
        connection.close()
    if not same(str(said), identity.proof(nonce, its_host, its_port)):
        raise UnavailableError(f"what answers at {url} is not the server of this home; it was told nothing")
