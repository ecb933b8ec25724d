"""The ID token: what a provider signed of who logged in, checked as OpenID Connect Core 1.0, section 3.1.3.7, asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from orchestrator.views.errors import LoginRefusedError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures that the provider alone can make: `none` and those by a shared secret are not among them."""
LEEWAY_SECONDS: Final = 30
"""By which the clocks may differ."""
MOST_CHARACTERS: Final = 64 * 1024


class UnknownKeyError(Exception):
    """It is signed by a key that is not in the list."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Of whom an ID token has to be, for whom, and of which login."""

    issuer: str
    client: str
    nonce: str
    access_token: str | None


def claims_of(text: str, keys: KeySet, expected: Expected) -> Mapping[str, Any]:
    """What a token says, once it is proven; LoginRefusedError, and UnknownKeyError."""
    if len(text) > MOST_CHARACTERS:
        raise LoginRefusedError("the provider's ID token is too long")
    try:
        token = jwt.decode(text, keys, algorithms=list(ALGORITHMS))
        claims = CodeIDToken(
            token.claims, token.header,
            {
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client},
            },
            {"nonce": expected.nonce, "client_id": expected.client, "access_token": expected.access_token},
        )  # fmt: skip
        claims.validate(leeway=LEEWAY_SECONDS)
    except (InvalidKeyIdError, BadSignatureError):
        raise UnknownKeyError from None
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        # An error of joserfc's says which claim, and nothing of what it held.
        said = error.error if isinstance(error, JoseError) else type(error).__name__
        which = getattr(error, "claim", None)
        raise LoginRefusedError(f"the provider's ID token is refused: {said}{f' {which}' if which else ''}") from None
    return dict(claims)
