"""Tokens of users: how one is made, and the hash that is kept of it."""

import hashlib
import secrets
from typing import Final

PREFIX: Final = "msw_"
"""What a user's token begins with: programs that look for lost secrets know it by that."""


def new_token() -> str:
    """256 random bits. Shown once; only its hash is kept."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What is kept of a token. A slow hash is for what people choose; 256 random bits nobody guesses, however fast."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
