"""Tokens of users: how one is made, and the hash that is kept of it."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

PREFIX: Final = "msw_"
"""What a user's token begins with: programs that look for lost secrets know it by that."""


def new_token() -> str:
    """256 random bits. Shown once; only its hash is kept."""
    return PREFIX + secrets.token_urlsafe(32)


def token_of(secret: str, *said: str) -> str:
    """What a secret of the server's makes of a request: the same again for the same request, which is sent twice.

    As hard to guess as the secret, which has 256 random bits or is of the owner's choice.
    """
    parts = b"".join(len(one.encode()).to_bytes(4, "big") + one.encode() for one in said)
    made = hmac.digest(secret.encode(), b"user token\0" + parts, "sha256")
    return PREFIX + base64.urlsafe_b64encode(made).decode().rstrip("=")


def digest(token: str) -> str:
    """What is kept of a token. A slow hash is for what people choose; 256 random bits nobody guesses, however fast."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
