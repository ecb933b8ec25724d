"""Secrets of an installation: its identity, the tokens of users, and signatures of webhooks."""

import base64
import binascii
import hashlib
import hmac
import http.client
import json
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from orchestrator.host.files import known_secret, own_folder, own_secret
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


TOKEN_PREFIX: Final = "msw_"  # noqa: S105
"""What a user's token begins with: programs that look for lost secrets know it by that."""


def new_token() -> str:
    """256 random bits. Shown once; only its hash is kept."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_of(secret: str, *said: str) -> str:
    """What a secret of the server's makes of a request: the same again for the same request, which is sent twice.

    As hard to guess as the secret, which has 256 random bits or is of the owner's choice.
    """
    parts = b"".join(len(one.encode()).to_bytes(4, "big") + one.encode() for one in said)
    made = hmac.digest(secret.encode(), b"user token\0" + parts, "sha256")
    return TOKEN_PREFIX + base64.urlsafe_b64encode(made).decode().rstrip("=")


def digest(token: str) -> str:
    """What is kept of a token. A slow hash is for what people choose; 256 random bits nobody guesses, however fast."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


KEY_PREFIX: Final = "whsec_"
KEY_BYTES: Final = range(24, 65)


def keys_of(secret: str) -> tuple[bytes, ...]:
    """The keys of a secret, of which a second one stands behind a blank while receivers change; raises ValueError."""
    keys = tuple(_key(one) for one in secret.split())
    if not keys:
        raise ValueError(f"is empty; {_right()}")
    return keys


def signature(keys: Sequence[bytes], message: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature` of a message."""
    signed = f"{message}.{timestamp}.".encode() + body
    digests = (hmac.digest(key, signed, "sha256") for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def _key(text: str) -> bytes:
    """Of what is wrong nothing is repeated: it may be a secret all the same."""
    try:
        key = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True) if text.startswith(KEY_PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise ValueError(f"expected `{KEY_PREFIX}` and {KEY_BYTES[0]} to {KEY_BYTES[-1]} bytes in base64; {_right()}")
    return key


def _right() -> str:
    return f'`echo "{KEY_PREFIX}$(openssl rand -base64 32)"` makes one'
