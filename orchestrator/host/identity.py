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

_SECRET_FILE: Final = "api.token"  # noqa: S105  the name of a file
IDENTITY_PATH: Final = "/v1/identity"
_PROOF_SECONDS: Final = 5.0
_PROOF_BYTES: Final = 4096
NONCE: Final = r"^[0-9a-f]{32,128}$"


@dataclass(frozen=True, slots=True)
class Identity:
    """The secret of a home folder: the token of its commands, and the key of its proofs."""

    secret: str

    @property
    def name(self) -> str:
        """A public name of the home, which reveals nothing of the secret."""
        return seal(self.secret, "identity")[:16]

    @property
    def mlflow_password(self) -> str:
        """The password of MLflow behind this server, and of nothing else, since notebooks and their logs have it."""
        return seal(self.secret, "mlflow")

    def proof(self, nonce: str, host: str, port: int) -> str:
        """The answer to a nonce that only a server of this home can give, for this machine and address."""
        return seal(self.secret, "proof", nonce, host, str(port), socket.gethostname())


def seal(secret: str, purpose: str, *words: str) -> str:
    """An HMAC of words, made with a secret, separate for each purpose."""
    text = "\n".join(("metricsweep", purpose, *words))
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())


def ensure_identity(home: Path) -> Identity:
    """The identity of a home folder, made on first use; raises MetricsweepError if it belongs to another user."""
    own_folder(home)
    return Identity(own_secret(home / _SECRET_FILE))


def find_identity(home: Path) -> Identity | None:
    """The identity of a home folder, or `None`."""
    try:
        return Identity(known_secret(home / _SECRET_FILE))
    except FileNotFoundError:
        return None


def prove(url: str, identity: Identity) -> None:
    """Check that the server at an address of this machine is the one of the home; raises UnavailableError."""
    host, port = urlsplit(url).hostname or "", urlsplit(url).port
    nonce = secrets.token_hex(32)
    connection = http.client.HTTPConnection(host, port, timeout=_PROOF_SECONDS)
    try:
        connection.request("GET", f"{IDENTITY_PATH}?nonce={nonce}")
        its_host, its_port = connection.sock.getpeername()[:2]
        proof = json.loads(connection.getresponse().read(_PROOF_BYTES))["proof"]
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"{url} does not answer: {error}") from error
    except (ValueError, KeyError, TypeError):
        proof = ""
    finally:
        connection.close()
    if not same(str(proof), identity.proof(nonce, its_host, its_port)):
        raise UnavailableError(f"what answers at {url} is not the server of this home; no secret was sent to it")


TOKEN_PREFIX: Final = "msw_"  # noqa: S105
"""The prefix of users' tokens, by which secret scanners recognize them."""


def new_token() -> str:
    """A token of 256 random bits, of which only the hash is stored."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_of(secret: str, *words: str) -> str:
    """A token from a secret of the server and the words of a request: the same for a repeated request."""
    parts = b"".join(len(word.encode()).to_bytes(4, "big") + word.encode() for word in words)
    made = hmac.digest(secret.encode(), b"user token\0" + parts, "sha256")
    return TOKEN_PREFIX + base64.urlsafe_b64encode(made).decode().rstrip("=")


def digest(token: str) -> str:
    """The hash of a token, which is stored instead of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


_KEY_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)
_EXAMPLE: Final = f'`echo "{_KEY_PREFIX}$(openssl rand -base64 32)"` makes one'


def keys_of(secret: str) -> tuple[bytes, ...]:
    """The signing keys of a secret, two separated by a blank while one replaces the other; raises ValueError."""
    keys = tuple(map(_key, secret.split()))
    if not keys:
        raise ValueError(f"is empty; {_EXAMPLE}")
    return keys


def signature(keys: Sequence[bytes], message: str, timestamp: int, body: bytes) -> str:
    """The value of the header `webhook-signature` of a webhook message."""
    signed = f"{message}.{timestamp}.".encode() + body
    digests = (hmac.digest(key, signed, "sha256") for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def _key(text: str) -> bytes:
    # The error does not show the text, which may be a secret even if it is not valid.
    try:
        key = base64.b64decode(text.removeprefix(_KEY_PREFIX), validate=True) if text.startswith(_KEY_PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _KEY_BYTES:
        raise ValueError(
            f"expected `{_KEY_PREFIX}` and {_KEY_BYTES[0]} to {_KEY_BYTES[-1]} bytes in base64; {_EXAMPLE}"
        )
    return key
