"""Login through an OpenID Connect provider, with Authlib; the settings say who may log in, and with which role."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import httpx2
from authlib.integrations.base_client import MismatchingStateError
from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import Request
from fastapi.responses import Response
from joserfc.errors import JoseError
from starlette.middleware.sessions import SessionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.host import checks
from orchestrator.host.checks import is_loopback, proxy_fault, proxy_variable
from orchestrator.host.identity import seal
from orchestrator.settings import Secrets, Settings
from orchestrator.views.accounts import ACCOUNT_NAME, SUBJECT, LoginTerms, Person, Role
from orchestrator.views.errors import BusyError, LoginRefusedError, UnavailableError

PATH: Final = "/login/oidc"
ATTEMPT_SECONDS: Final = 600
"""How long a browser may take for a login."""
SECONDS: Final = 15.0
"""How long one of our requests waits for the provider, in all."""
MOST_WAITING: Final = 32
"""How many requests may wait for the provider at the same time."""
_KNOWN_SECONDS: Final = 3600.0
"""How long the provider's discovery document is kept."""
_LEEWAY_SECONDS: Final = 30
"""How far the provider's clock may differ from ours."""
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Accepted signatures of ID tokens: only those that need the provider's private key, so neither `none` nor HS256."""
_ISSUER_IN_ANSWER: Final = "authorization_response_iss_parameter_supported"
"""A provider with this field in its discovery document names itself in its answer."""
NOT_BEGUN: Final = "this login was not begun in this browser within the last ten minutes, or was used before"


class LoginSession:
    """ASGI middleware that gives the pages of this login a `request.session`, in which Authlib keeps the attempt.

    The session is a signed cookie of ten minutes and takes no room on the server, since anybody may begin any number
    of logins. With https, only this host can set a cookie of its name.
    """

    def __init__(self, app: ASGIApp, secret: Callable[[], str]) -> None:
        self.app, self._secret = app, secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, with a session if the path belongs to this login."""
        if scope["type"] != "http" or not scope["path"].startswith(PATH):
            await self.app(scope, receive, send)
            return
        secure, secret = scope.get("scheme") == "https", self._secret()
        session = SessionMiddleware(
            self.app,
            secret_key=seal(secret, "oidc session"),
            session_cookie=f"{'__Host-' if secure else ''}metricsweep_oidc_{seal(secret, 'cookie')[:16]}",
            max_age=ATTEMPT_SECONDS,
            path="/" if secure else PATH,  # `__Host-` asks for `/`
            same_site="lax",
            https_only=secure,
        )
        await session(scope, receive, send)


class ProviderLogin:
    """Login through the OpenID provider of the settings; raises UnavailableError if it does not answer correctly."""

    def __init__(self, settings: Settings) -> None:
        """Raises MetricsweepError if the file of the client's secret cannot be read."""
        self.issuer = settings.oidc_issuer
        self._host = urlsplit(self.issuer).hostname or ""
        self.name = settings.oidc_name or self._host
        new_users = None if settings.oidc_new_users == "refused" else Role(settings.oidc_new_users)
        self.terms = LoginTerms(new_users, settings.oidc_hours * 3600)
        self._settings, self._secrets = settings, Secrets(settings)
        self._domains = {domain.lower() for domain in checks.names(settings.oidc_domains)}
        self._groups = checks.names(settings.oidc_groups)
        self._roles = checks.group_roles(settings.oidc_roles)
        self._certificates = httpx.create_ssl_context()
        self._metadata: dict[str, Any] = {}
        self._metadata_until = 0.0
        self._waiting = 0
        _ = self._secrets.oidc_client_secret  # so that a file without a secret fails at the start, not at a login

    @property
    def logs_out(self) -> bool:
        """Whether the provider is known to offer a logout."""
        return "end_session_endpoint" in self._metadata

    async def begin(self, request: Request, back: str) -> Response:
        """Redirect the browser to the OpenID provider, which sends it to `back` afterwards."""
        async with self._client() as client:
            answer: Response = await client.authorize_redirect(request, back)
        return answer

    async def logout_url(self, back: str) -> str | None:
        """The address at which the provider logs out and then redirects to `back`; `None` if it offers no logout."""
        async with self._client() as client:
            if not self.logs_out:
                return None
            logout = await client.create_logout_url(back, client_id=self._settings.oidc_client_id)
        return str(logout["url"])

    async def person(self, request: Request) -> Person:
        """The person whom the OpenID provider has logged in, from its redirect; raises LoginRefusedError."""
        given = request.query_params
        if not given.get("code") and "error" not in given:
            raise LoginRefusedError("the provider sent the browser back without a code")
        expected = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self._settings.oidc_client_id},
        }
        async with self._client() as client:
            names_itself = "iss" in given or _ISSUER_IN_ANSWER in self._metadata
            if names_itself and given.get("iss") != self.issuer:  # RFC 9207
                raise LoginRefusedError(
                    "the answer comes from another OpenID provider than METRICSWEEP_OIDC_ISSUER names"
                )
            try:
                token = await client.authorize_access_token(request, claims_options=expected, leeway=_LEEWAY_SECONDS)
            except MismatchingStateError:
                raise LoginRefusedError(NOT_BEGUN) from None
            except OAuthError as error:
                raise _refusal(error, by_provider="error" in given) from None
            except JoseError as error:
                # The name of the error and of the claim, but no value, since anybody may have written it.
                detail = " ".join(filter(None, (error.error, getattr(error, "claim", None))))
                raise LoginRefusedError(f"the provider's ID token is not valid: {detail}") from None
            if "id_token" not in token:  # `userinfo` alone is not signed
                raise LoginRefusedError("the provider sent no ID token")
            claims = token["userinfo"]
            if not self._needed() <= claims.keys() and "userinfo_endpoint" in self._metadata:
                userinfo = await client.userinfo(token=token)
                if userinfo.get("sub") != claims["sub"]:  # OpenID Connect Core 1.0, section 5.3.2
                    raise LoginRefusedError("the provider's userinfo is about another person than its ID token")
                if "email" in userinfo:  # `email_verified` is about the address next to it
                    claims.pop("email_verified", None)
                claims = {**claims, **userinfo}
        return self._person(claims)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        """Authlib's client for one of our requests, with limits; its failures become UnavailableError."""
        if self._waiting >= MOST_WAITING:
            raise BusyError(f"{MOST_WAITING} logins wait for the provider; try again in a moment")
        variable = proxy_variable(self.issuer)
        through = f" through the proxy that {variable} names" if variable else ""
        if not is_loopback(self._host) and (fault := proxy_fault()):
            raise UnavailableError(f"the provider at {self._host} cannot be reached: {fault}")
        self._waiting += 1
        try:
            async with asyncio.timeout(SECONDS):
                if time.monotonic() > self._metadata_until:
                    url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                    self._metadata = self._checked(await self._app(server_metadata_url=url).load_server_metadata())
                    self._metadata_until = time.monotonic() + _KNOWN_SECONDS
                yield self._app(**self._metadata)
        except TimeoutError:
            raise UnavailableError(f"the provider does not answer within {SECONDS:.0f} s") from None
        except httpx2.HTTPStatusError as error:
            raise UnavailableError(
                f"the provider's {error.request.url.path} answers {error.response.status_code}"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            detail = f"the provider at {self._host} cannot be reached{through}: {type(error).__name__}"
            raise UnavailableError(detail) from None
        except (OAuthError, JoseError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise UnavailableError(f"the provider's answer cannot be read: {type(error).__name__}") from None
        finally:
            self._waiting -= 1

    def _app(self, **metadata: Any) -> Any:
        """A new client of Authlib, so that a changed secret and new keys of the provider count at once."""
        secret = self._secrets.oidc_client_secret
        methods = metadata.pop("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        in_body = secret is not None and "client_secret_basic" not in methods and "client_secret_post" in methods
        return OAuth().register(
            "oidc",
            client_id=self._settings.oidc_client_id,
            client_secret=secret,
            client_kwargs={
                "scope": self._settings.oidc_scopes,
                "code_challenge_method": "S256",
                "token_endpoint_auth_method": "client_secret_post" if in_body else None,
                "timeout": SECONDS,
                "verify": self._certificates,
                "trust_env": not is_loopback(self._host),  # the environment's proxies, but not for this machine
                "follow_redirects": False,
            },
            id_token_signing_alg_values_supported=_ALGORITHMS,
            **metadata,
        )

    def _checked(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a discovery document that we use. Authlib would also take HTTP client options from it."""
        if found.get("issuer") != self.issuer:
            named = str(found.get("issuer"))[:255]
            raise UnavailableError(f"the provider calls itself {named!r}; METRICSWEEP_OIDC_ISSUER is {self.issuer!r}")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint", "end_session_endpoint")
        kept: dict[str, Any] = {name: found[name] for name in names if self._is_safe(found.get(name))}
        if missing := [name for name in names[:3] if name not in kept]:
            raise UnavailableError(f"the provider's discovery document has no https address for {', '.join(missing)}")
        methods = found.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list):
            kept["token_endpoint_auth_methods_supported"] = methods
        if found.get(_ISSUER_IN_ANSWER) is True:
            kept[_ISSUER_IN_ANSWER] = True
        return kept | {"issuer": self.issuer}

    def _is_safe(self, url: object) -> bool:
        """Whether secrets may be sent to an address: it has https, or it and the issuer are on this machine."""
        if not isinstance(url, str) or len(url) > 500 or not checks.is_private(url):
            return False
        return is_loopback(self._host) or not is_loopback(urlsplit(url).hostname or "")

    def _needed(self) -> set[str]:
        """The names of the claims that decide about a login."""
        needed = {self._settings.oidc_user_claim} if self.terms.new_users is not None else set()
        needed |= {"email", "email_verified"} if self._domains else set()
        return needed | ({self._settings.oidc_groups_claim} if self._groups or self._roles else set())

    def _person(self, claims: Mapping[str, Any]) -> Person:
        """The person with these claims; raises LoginRefusedError if the settings refuse the login."""
        subject = claims.get("sub")
        if not isinstance(subject, str) or not re.fullmatch(SUBJECT, subject):
            raise LoginRefusedError("the provider's `sub` is not 1 to 255 visible ASCII characters")
        if self._domains and _domain(claims) not in self._domains:
            detail = "the provider names no verified e-mail address of a domain that may log in"
            raise LoginRefusedError(detail, subject)
        claim = claims.get(self._settings.oidc_groups_claim)
        listed = claim if isinstance(claim, list) else [claim]
        groups = {group for group in listed if isinstance(group, str)}
        if self._groups and not groups & self._groups:
            raise LoginRefusedError("the provider names no group that may log in", subject)
        roles = [role for group, role in self._roles.items() if group in groups]
        role = max(roles, key=list(Role).index, default=Role.VIEWER) if self._roles else None
        given = claims.get(self._settings.oidc_user_claim)
        # ASCII only: other letters, such as the Kelvin sign, become ASCII in lower case.
        name = given.lower() if isinstance(given, str) and given.isascii() else ""
        return Person(self.issuer, subject, name if re.fullmatch(ACCOUNT_NAME, name) else None, role)


def _refusal(error: OAuthError, *, by_provider: bool) -> LoginRefusedError | UnavailableError:
    """The error of a failed login. `by_provider`: the redirect reports it, and not the token endpoint."""
    known = isinstance(error.error, str) and re.fullmatch(r"[a-z_]{1,64}", error.error)
    code = error.error if known else "an unknown error"
    if by_provider:
        return LoginRefusedError(f"the provider let nobody in: {code}")
    if code == "invalid_grant":
        return LoginRefusedError("the provider does not accept the code: it was used, has expired, or is not its own")
    return UnavailableError(f"the provider does not accept this server, its client id or secret: {code}")


def _domain(claims: Mapping[str, Any]) -> str | None:
    """The domain of the verified e-mail address."""
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str) or not address.isascii():
        return None
    local, _, domain = address.partition("@")
    return domain.lower() if local and "@" not in domain else None
