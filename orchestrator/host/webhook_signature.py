"""How webhooks are signed, as Standard Webhooks has it: HMAC-SHA256 over id, time and body, once for each key."""

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
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
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise ValueError(f"expected `{PREFIX}` and {KEY_BYTES[0]} to {KEY_BYTES[-1]} bytes in base64; {_right()}")
    return key


def _right() -> str:
    return f'`echo "{PREFIX}$(openssl rand -base64 32)"` makes one'
