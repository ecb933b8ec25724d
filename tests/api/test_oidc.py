"""Login by OpenID Connect, through the app's HTTP interface: by a real provider, and by one that a test makes lie."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from joserfc.jwk import OctKey, RSAKey
from pydantic import SecretStr, ValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from api.auth import oidc
from api.main import create_app
from orchestrator.record import account_admin
from orchestrator.record.schema import token
from orchestrator.service.accounts import MOST_REFUSED, Logins
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import LoginTerms, Person, Role, Scope
from orchestrator.views.errors import MetricsweepError
from tests.api.conftest import BEARER, HTML, TOKEN, URL
from tests.api.oidc_provider import CLIENT, KEY, SECRET, PlayedProvider, mock_provider, query
from tests.ports import free_port
from tests.served_app import served

DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
def played() -> Iterator[PlayedProvider]:
    provider = PlayedProvider()
    with served(provider.app) as provider.issuer:
        yield provider


class World:
    """A service whose people log in by a provider."""

    def __init__(self, settings: Settings, issuer: str, **more: Any) -> None:
        given = {"oidc_issuer": issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SecretStr(SECRET)}
        given |= {"home": settings.home, "token": settings.token, "open_rate": 0, "oidc_new_users": "viewer"}
        self.settings = Settings(**given | more)
        self.service = Service.open(self.settings)
        self.app = create_app(self.service, self.settings)
        self._open = ExitStack()

    def browser(self, **more: Any) -> TestClient:
        given = {"base_url": URL, "headers": HTML, "follow_redirects": False} | more
        return self._open.enter_context(TestClient(self.app, **given))

    def log_in(self, browser: TestClient | None = None, then: str = "/", **changed: str | None) -> httpx.Response:
        """Go to the provider and back, with changes to the query of the way back."""
        browser = browser or self.browser()
        given = query(way_back(browser, then)) | changed
        return browser.get(f"{oidc.PATH}/callback", params={k: v for k, v in given.items() if v is not None})

    def audit(self, what: str) -> list[tuple[str, str]]:
        return [(entry.who, entry.detail) for entry in self.service.people.audit() if entry.what == what]

    def close(self) -> None:
        self._open.close()
        self.service.close()


Worlds = Callable[..., World]


def way_back(browser: TestClient, then: str = "/") -> str:
    """The address to which the provider sends a browser that begins a login."""
    begun = browser.get(oidc.PATH, params={"next": then})
    assert begun.status_code == 302, begun.text
    return httpx.get(begun.headers["location"], trust_env=False, verify=False).headers["location"]


@pytest.fixture
def world(settings: Settings, played: PlayedProvider, migrated: Callable[[Path], Path]) -> Iterator[Worlds]:
    migrated(settings.resolved_home)
    with ExitStack() as made:

        def make(**more: Any) -> World:
            there = World(settings, more.pop("oidc_issuer", played.issuer), **more)
            made.callback(there.close)
            return there

        yield make


def answered(answer: httpx.Response) -> tuple[int, str]:
    """The status and what the page says of the refusal."""
    _, _, rest = answer.text.partition('role="alert" id="refused">')
    return answer.status_code, rest.partition("</p>")[0].replace("&#39;", "'")


def refuses(answer: httpx.Response, message: str, status: int = 401) -> bool:
    found = answered(answer)
    return found[0] == status and message in found[1]


def test_a_login_at_a_real_provider(world: Worlds) -> None:
    ada = {"sub": "ada-of-the-lab", "preferred_username": "Ada", "email": "ada@lab.example", "email_verified": True}
    with mock_provider(ada) as issuer:
        there = world(oidc_issuer=issuer, oidc_name="the lab", oidc_domains="lab.example", oidc_hours=2)

        def decide(browser: TestClient, **form: str) -> str:
            begun = browser.get(oidc.PATH, params={"next": "/sweeps/1?a=b"}).headers["location"]
            return httpx.post(begun, data=form, trust_env=False, verify=False).headers["location"]

        browser = there.browser()
        shown = browser.get("/login", params={"next": "/sweeps/1?a=b"}).text
        assert "Log in with the lab" in shown
        assert "/login/oidc?next=%2Fsweeps%2F1%3Fa%3Db" in shown
        back = decide(browser, sub="ada-of-the-lab")
        entered = browser.get(back)
        assert (entered.status_code, entered.headers["location"]) == (303, "/sweeps/1?a=b")
        session = next(cookie for cookie in entered.headers.get_list("set-cookie") if "Max-Age=7200" in cookie)
        assert {"HttpOnly", "SameSite=lax"} <= set(session.split("; "))
        me = browser.get("/v1/me").json()
        assert (me["name"], me["role"]) == ("ada", "viewer")
        assert refuses(browser.get(back), "not begun in this browser"), "the same answer of the provider again"

        left = browser.post("/logout")
        assert left.headers["location"] == "/login?left=true"
        assert "Log out of the lab too" in browser.get(left.headers["location"]).text
        out = query(browser.get("/login/oidc/logout").headers["location"])
        assert (out["client_id"], out["post_logout_redirect_uri"]) == (CLIENT, f"{URL}/login")
        assert browser.get("/v1/me").status_code == 401

        assert refuses(browser.get(decide(browser, action="deny")), "the provider let nobody in: access_denied")
        assert refuses(browser.get(decide(browser, sub="eve@else.example")), "no verified e-mail address", 403)
        assert [user.name for user in there.service.people.users()] == ["ada"]
        assert there.audit("login") == [("ada", "subject ada-of-the-lab")]


def test_only_the_browser_that_began_a_login_finishes_it(
    world: Worlds, played: PlayedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an attacker has a victim work in the attacker's account."""
    there = world()
    attacker, victim = there.browser(), there.browser()
    back = way_back(attacker)
    assert refuses(victim.get(back), oidc.NOT_BEGUN)
    way_back(victim)
    assert refuses(victim.get(back), oidc.NOT_BEGUN)
    for state in ("", "x", "next", "0" * 64, None):
        assert refuses(there.log_in(state=state), oidc.NOT_BEGUN), state

    copied = dict(attacker.cookies.items())
    ((name, value),) = copied.items()
    forged = there.browser()
    for wrong in ("", "x", "....", f"{value}x", value.partition(".")[0], value[4:]):
        assert refuses(forged.get(back, headers={"Cookie": f"{name}={wrong}"}), oidc.NOT_BEGUN), wrong
    assert attacker.get(back).status_code == 303
    assert played.asked.count("/token") == 1, "nothing else reached the provider"
    thief = there.browser(headers=HTML | {"Cookie": f"{name}={value}"})
    assert refuses(thief.get(back), "the code: it was used")
    state = query(way_back(victim))["state"]
    assert refuses(victim.get(f"{oidc.PATH}/callback", params=query(back) | {"state": state}), "the code: it was used")
    assert victim.get("/v1/me").status_code == 401
    monkeypatch.setattr(oidc, "ATTEMPT_SECONDS", -1)
    assert refuses(there.log_in(), oidc.NOT_BEGUN)


WRONG_CLAIMS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"nonce": "another"}, "nonce"), ({"nonce": None}, "nonce"), ({"aud": "another-client"}, "aud"),
    ({"aud": "another-client", "azp": CLIENT}, "aud"), ({"aud": [CLIENT, "another-client"]}, "azp"),
    ({"aud": CLIENT, "azp": "another-client"}, "azp"), ({"aud": None}, "aud"), ({"iss": "https://else.example"}, "iss"),
    ({"iss": None}, "iss"), ({"exp": 1}, "exp"), ({"exp": None}, "exp"), ({"exp": float("nan")}, "exp"),
    ({"exp": "2999"}, "exp"), ({"iat": 4_000_000_000}, "iat"), ({"nbf": 4_000_000_000}, "nbf"),
    ({"at_hash": "wrong"}, "at_hash"), ({"sub": None}, "sub"), ({"sub": "ä"}, "sub"), ({"sub": "x" * 256}, "sub"),
    ({"sub": 17}, "sub"), ({"sub": "17\nlogin"}, "sub"),
)  # fmt: skip


def test_an_id_token_of_another_login_or_service_is_refused(world: Worlds, played: PlayedProvider) -> None:
    there = world()
    failed = []
    for changed, message in WRONG_CLAIMS:
        played.claims = changed
        if not refuses(answer := there.log_in(), message):
            failed.append((changed, answered(answer)))
    assert failed == []
    assert list(there.service.people.users()) == []


def test_an_id_token_that_the_provider_did_not_sign_is_refused(world: Worlds, played: PlayedProvider) -> None:
    there = world()
    shared = OctKey.import_key(SECRET, {"kid": "one"})
    none, body = "eyJhbGciOiJub25lIn0", "eyJzdWIiOiIxNyJ9"
    played.discovery["id_token_signing_alg_values_supported"] = ["none", "HS256", "RS256"]
    played.signed_by = RSAKey.generate_key(2048, {"kid": "one"})
    assert refuses(there.log_in(), "ID token is not valid: bad_signature")
    played.signed_by = RSAKey.generate_key(2048, {"kid": "two"})
    assert refuses(there.log_in(), "ID token is not valid: invalid_key_id")
    played.signed_by, played.algorithm = shared, "HS256"
    assert refuses(there.log_in(), "ID token is not valid")
    played.keys = {"keys": [shared.as_dict(private=True), KEY.as_dict(private=False)]}
    assert refuses(there.log_in(), "ID token is not valid")
    for raw in (f"{none}.{body}.", f"{none}.{body}", "", "..", "x" * 70_000, "ä.ö.ü", f"{none}.{'W' * 30_000}."):
        played.raw = raw
        assert there.log_in().status_code in (401, 503), raw[:40]
    answer = {"access_token": "a", "token_type": "Bearer", "userinfo": {"sub": "17", "preferred_username": "ada"}}
    played.answers["/token"] = lambda: JSONResponse(answer)
    assert refuses(there.log_in(), "the provider sent no ID token")
    assert list(there.service.people.users()) == []
    assert there.browser().get("/v1/me").status_code == 401


def test_a_new_key_of_the_provider_counts_at_once(world: Worlds, played: PlayedProvider) -> None:
    there = world()
    assert there.log_in().status_code == 303
    played.signed_by = RSAKey.generate_key(2048, {"kid": "one"})
    played.keys = {"keys": [played.signed_by.as_dict(private=False)]}
    assert there.log_in().status_code == 303


def test_an_answer_without_a_code_or_of_another_provider_is_refused(world: Worlds, played: PlayedProvider) -> None:
    there = world()
    assert refuses(there.log_in(iss="https://else.example"), "from another OpenID provider")
    assert there.log_in(iss=played.issuer).status_code == 303
    assert refuses(there.log_in(code=None), "without a code")
    assert refuses(there.log_in(code="x" * 5_000), "the code: it was used")
    assert refuses(there.log_in(error="<script>alert(1)</script>"), "an unknown error")
    assert "Call 555" not in there.log_in(error="access_denied", error_description="Call 555").text
    assert refuses(there.log_in(error="mismatching_state"), "the provider let nobody in")
    played.discovery = {"authorization_response_iss_parameter_supported": True}
    strict = world()
    assert refuses(strict.log_in(), "from another OpenID provider")
    assert strict.log_in(iss=played.issuer).status_code == 303


def test_a_login_leads_to_pages_of_this_server_only(world: Worlds) -> None:
    there = world()
    for then in ("//evil.example", "https://evil.example/", "/\\evil.example", "x", "/a\nb", "/" + "ä" * 600):
        assert there.log_in(then=then).headers["location"] == "/", then
    assert there.log_in(then="/catalog?a=b").headers["location"] == "/catalog?a=b"


def slow() -> Response:
    async def drip() -> Any:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    return StreamingResponse(drip(), media_type="application/json")


USELESS: Final[tuple[tuple[Callable[[], Response], str], ...]] = (
    (lambda: Response(b"[" * 200_000), "cannot be read|not valid"), (lambda: Response(b"<html>"), "cannot be read"),
    (lambda: JSONResponse([1]), "cannot be read"), (lambda: JSONResponse({}, 500), "answers 500"),
    (lambda: Response(b"x", headers={"Content-Encoding": "gzip"}), "cannot be re"),
    (lambda: RedirectResponse("http://169.254.169.254/"), "answers 307"), (slow, "does not answer within"),
)  # fmt: skip


def test_a_provider_that_is_away_or_answers_nonsense_is_a_503(
    world: Worlds, played: PlayedProvider, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Tokens still log in, and the log has a line without a traceback or a secret."""
    played.people["17"], failed = {}, []
    for answer, message in USELESS:
        monkeypatch.setattr(oidc, "SECONDS", 0.5 if answer is slow else 120.0)
        for path in (DISCOVERY, "/token", "/keys", "/userinfo"):
            played.answers = {}
            there = world()
            browser = there.browser()
            back = None if path == DISCOVERY else way_back(browser)
            played.answers = {path: answer}
            found = browser.get(back or oidc.PATH)
            if found.status_code != 503 or not any(part in found.text for part in message.split("|")):
                failed.append((path, message, found.status_code, found.text))
            assert "Retry-After" in found.headers
            assert browser.post("/login", data={"token": TOKEN}).status_code == 303
            there.close()
    assert failed == []
    gone = world(oidc_issuer=f"http://127.0.0.1:{free_port()}").browser().get(oidc.PATH)
    assert (gone.status_code, "cannot be reached" in gone.text) == (503, True)
    assert "Traceback" not in caplog.text
    assert not any(secret in caplog.text for secret in (SECRET, "an-access-token"))


def test_logins_that_wait_for_the_provider_stop_nothing_else(
    world: Worlds, played: PlayedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "MOST_WAITING", 4)
    monkeypatch.setattr(oidc, "SECONDS", 120.0)
    played.answers[DISCOVERY] = slow
    with served(world().app) as url:

        async def crowd() -> tuple[list[int], int]:
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:
                waiting = [asyncio.create_task(client.get(oidc.PATH)) for _ in range(8)]
                while len(done := [task for task in waiting if task.done()]) < 4:
                    await asyncio.sleep(0.01)
                meanwhile = (await client.get("/v1/me", headers=BEARER)).status_code
                for task in waiting:
                    task.cancel()
                return [task.result().status_code for task in done], meanwhile

        assert asyncio.run(crowd()) == ([503] * 4, 200)


UNSAFE: Final[tuple[dict[str, Any], ...]] = (
    {"issuer": "https://else.example"}, {"issuer": None}, {"token_endpoint": "http://else.example/token"},
    {"authorization_endpoint": "javascript:alert(1)"}, {"jwks_uri": "file:///etc/passwd"},
    {"jwks_uri": "http://169.254.169.254/latest/meta-data"}, {"jwks_uri": 7},
    {"token_endpoint": "https://user:word@else.example/"}, {"authorization_endpoint": "https://" + "x" * 3_000},
)  # fmt: skip


def test_a_discovery_document_is_not_trusted(world: Worlds, played: PlayedProvider) -> None:
    there = world()
    for changed in UNSAFE:
        played.discovery = changed
        assert there.browser().get(oidc.PATH).status_code == 503, changed
    # Options of the HTTP client that Authlib would take from there, and keys that it would believe.
    played.discovery = {"verify": False, "proxy": "http://127.0.0.1:9", "client_id": "x", "scope": "all", "timeout": 0}
    played.discovery |= {"jwks": {"keys": []}, "response_type": "token", "grant_type": "password", "nonce": "known"}
    assert there.log_in().status_code == 303


def test_new_users(world: Worlds, played: PlayedProvider) -> None:
    """A login without an account is refused until an administrator links it, or gets an account if its name is free."""
    there = world(oidc_new_users="refused")
    there.service.people.add_user("ada", Role.MEMBER, "main")
    browser, root = there.browser(), there.browser(headers=BEARER)
    assert refuses(there.log_in(browser), "your subject there, 17", 403)
    linked = root.put("/v1/users/ada/login", json={"subject": "17"}).json()
    assert linked["login"] == {"issuer": played.issuer, "subject": "17"}
    assert there.log_in(browser).status_code == 303
    assert browser.get("/v1/me").json()["name"] == "ada"
    assert root.delete("/v1/users/ada/login").json()["login"] is None
    assert browser.get("/v1/me").status_code == 401, "its sessions end with the link"

    there = world(oidc_new_users="member")
    browser = there.browser()
    for claimed in ("ada", "ADA"):
        played.people["17"] = {"preferred_username": claimed}
        assert refuses(there.log_in(), "there is a user ada here already", 403), "nobody takes over an account by name"
    played.userinfo = {"sub": "17"}
    for name in ("Åda", "\u212aelvin", "", "a b", "../x", "a" * 65, None, 7, ["ada"]):
        played.people["17"] = {"preferred_username": name}
        assert refuses(there.log_in(), "no name that could be a user", 403), name
    for name in ("mallory", "ada"):
        played.people["17"] = {"preferred_username": name}
        assert answered(there.log_in(browser)) == (303, "")
        assert browser.get("/v1/me").json()["name"] == "mallory", "a later name renames nobody"


DOMAINS: Final = (
    ({"email": "ada@LAB.example", "email_verified": True}, 303),
    ({"email": "ada@lab.example", "email_verified": False}, 403),
    ({"email": "ada@lab.example", "email_verified": "true"}, 403),
    ({"email": "ada@lab.example"}, 403),
    ({"email": "ada@evil.lab.example", "email_verified": True}, 403),
    ({"email": "ada@lab.example@evil.example", "email_verified": True}, 403),
    ({"email": "ada@evil.example@lab.example", "email_verified": True}, 403),
    ({"email": "@lab.example", "email_verified": True}, 403),
    ({"email": ["ada@lab.example"], "email_verified": True}, 403),
    ({}, 403),
)


def test_domains_and_claims_of_the_userinfo_endpoint(world: Worlds, played: PlayedProvider) -> None:
    there = world(oidc_domains="lab.example, other.example")
    played.userinfo = {"sub": "17"}
    for claims, status in DOMAINS:
        played.people["17"] = {"preferred_username": "ada", **claims}
        assert there.log_in().status_code == status, claims
    played.people["17"] = {"email": "eve@else.example", "email_verified": True}
    played.userinfo = {"sub": "17", "preferred_username": "ada", "email": "ada@lab.example"}
    assert refuses(there.log_in(), "no verified e-mail address", 403), "verified is only the address of the ID token"
    played.userinfo["email_verified"] = True
    assert there.log_in().status_code == 303
    played.userinfo["sub"] = "66"
    assert refuses(there.log_in(), "about another person")


def test_groups_decide_who_comes_in_and_the_role(world: Worlds, played: PlayedProvider) -> None:
    roles = "lab=member,chiefs=admin,chiefs=viewer"
    there = world(oidc_groups="lab,guests", oidc_roles=roles, oidc_groups_claim="memberOf")

    def role(groups: object) -> object:
        played.people["17"]["memberOf"] = groups
        browser = there.browser()
        answer = there.log_in(browser)
        return browser.get("/v1/me").json()["role"] if answer.status_code == 303 else answer.status_code

    assert role(["guests"]) == "viewer"
    assert role(["lab"]) == "member"
    assert role(["lab", "chiefs"]) == "admin"
    assert role(["guests"]) == "viewer", "a role goes with the group"
    assert role(["chiefs"]) == 403
    assert role("lab") == "member"
    assert role({"lab": True}) == 403
    assert role([["lab"], 7, None]) == 403
    assert there.audit("role given") == [("OpenID Connect", role) for role in ("member", "admin", "viewer", "member")]


def test_a_disabled_user_is_out_at_once(world: Worlds) -> None:
    there = world()
    browser = there.browser()
    assert there.log_in(browser).status_code == 303
    there.service.people.disable("ada", disabled=True)
    assert browser.get("/v1/me").status_code == 401
    assert browser.get("/login").status_code == 200
    assert refuses(there.log_in(browser), "the user ada is disabled here", 403)
    there.service.people.disable("ada", disabled=False)
    other = there.browser()
    assert there.log_in(other).status_code == 303
    ours, theirs = other.get("/v1/tokens").json()["items"]
    assert browser.post(f"/tokens/{theirs['id']}/revoke").status_code == 303
    assert (browser.get("/v1/me").status_code, ours["browser"]) == (200, True)
    assert other.get("/v1/me").status_code == 401, "a browser that is revoked elsewhere is out, too"


def test_behind_a_proxy_with_tls(world: Worlds) -> None:
    there = world(url="https://sweeps.example", forwarding_proxies="127.0.0.1")
    sent = HTML | {"X-Forwarded-For": "10.0.0.7", "X-Forwarded-Proto": "https", "Host": "sweeps.example"}
    browser = there.browser(client=("127.0.0.1", 50_000), headers=sent)
    begun = browser.get(oidc.PATH)
    cookie = begun.headers["set-cookie"]
    assert cookie.startswith("__Host-metricsweep_oidc_")
    assert {"secure", "httponly", "path=/", "samesite=lax"} <= set(cookie.lower().split("; "))
    back = httpx.get(begun.headers["location"], trust_env=False, verify=False).headers["location"]
    assert back.startswith("https://sweeps.example/login/oidc/callback?")
    entered = browser.get(back.removeprefix("https://sweeps.example"), headers={"Cookie": cookie.partition(";")[0]})
    assert entered.status_code == 303
    assert "Secure" in entered.headers["set-cookie"]
    assert [entry.address for entry in there.service.people.audit() if entry.what == "login"] == ["10.0.0.7"]
    assert there.browser(headers=HTML | {"Host": "evil.example"}).get(oidc.PATH).status_code == 421


def test_the_client_secret(world: Worlds, played: PlayedProvider, tmp_path: Path) -> None:
    """A wrong one is named, and never shown; one in a file is exchanged without a restart."""
    file = tmp_path / "secret"
    with pytest.raises(MetricsweepError, match=r"METRICSWEEP_OIDC_CLIENT_SECRET_FILE.*No such file"):
        world(oidc_client_secret=None, oidc_client_secret_file=file)
    file.write_text("the-secret-of-before\n")
    there = world(oidc_client_secret=None, oidc_client_secret_file=file)
    answer = there.log_in()
    assert (answer.status_code, "its client id or secret: invalid_client" in answer.text) == (503, True)
    assert "the-secret-of-before" not in answer.text
    (tmp_path / "new").write_text(SECRET)
    (tmp_path / "new").replace(file)
    assert there.log_in().status_code == 303
    played.discovery = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert world().log_in().status_code == 303, "in the body, where the provider takes it there only"


def test_without_a_provider(http: TestClient, stranger: TestClient) -> None:
    assert "/login/oidc" not in stranger.get("/login").text
    for path in ("/login/oidc", "/login/oidc/callback", "/login/oidc/logout"):
        assert (stranger.get(path).status_code, http.get(path).status_code) == (401, 404)
    answer = http.put("/v1/users/ada/login", json={"subject": "17"})
    assert (answer.status_code, "METRICSWEEP_OIDC_ISSUER" in answer.json()["detail"]) == (409, True)


def test_settings_that_are_wrong() -> None:
    for given, message in (
        ({"oidc_issuer": "http://login.example"}, "https://"),
        ({"oidc_issuer": "https://login.example/?x"}, "https://"),
        ({"oidc_issuer": "https://login.example", "oidc_client_id": ""}, "client id"),
        ({"oidc_scopes": "profile"}, "openid"),
        ({"oidc_roles": "lab=boss"}, "group=role"),
        ({"oidc_new_users": "admin"}, "refused"),
        ({"oidc_client_secret": SecretStr("x"), "oidc_client_secret_file": "y"}, "name one of them"),
        ({"oidc_hours": 0}, "greater than 0"),
    ):
        with pytest.raises(ValidationError, match=message):
            Settings(**{"oidc_client_id": CLIENT} | given)


def test_administrators_link_users_and_nobody_else(world: Worlds) -> None:
    there = world()
    people = there.service.people
    for name in ("ada", "ben"):
        people.add_user(name, Role.MEMBER, "main")
    opened = people.tokens.add("ada", "t", Scope.ADMIN, 1).token
    ada = there.browser(headers={"Authorization": f"Bearer {opened}"})
    assert ada.put("/v1/users/ben/login", json={"subject": "17"}).status_code == 403
    assert ada.delete("/v1/users/ben/login").status_code == 403
    root = there.browser(headers=BEARER)
    for name, subject, status in (
        ("ada", "17", 200), ("ada", "17", 200), ("ben", "17", 409), ("ada", "18", 409), ("eve", "1", 404),
        ("ben", "a b", 422),
    ):  # fmt: skip
        assert root.put(f"/v1/users/{name}/login", json={"subject": subject}).status_code == status, (name, subject)
    for issuer in ("\x00", "\x1b[31m", "login.example", "http://login.example", "javascript:alert(1)"):
        answer = root.put("/v1/users/ben/login", json={"subject": "18", "issuer": issuer})
        assert (answer.status_code, answer.json()["problems"][0]["path"]) == (422, "body.issuer")
    assert people.user("ben").login is None


def test_sessions_of_a_user_end_and_are_bounded(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_admin, "MOST_BROWSERS", 3)
    ada, terms = Person("https://x", "17", "ada"), LoginTerms(Role.VIEWER)
    numbers = [service.store.logins.enter(ada, terms).token for _ in range(5)]
    assert [number for number in numbers if service.store.accounts.by_token(number or 0)] == numbers[2:]
    with service.store.database.writing() as connection:
        connection.execute(sa.update(token).values(expires=datetime.now(UTC)))
    assert service.store.accounts.by_token(numbers[-1] or 0) is None
    last = service.store.logins.enter(ada, terms).token
    assert [one.id for one in service.people.tokens.of("ada")] == [last], "ended sessions are not kept"


def test_refusals_in_the_audit_are_bounded(service: Service) -> None:
    now = [0.0]
    refusing = Logins(service.store, now=lambda: now[0])
    for number in range(MOST_REFUSED + 50):
        refusing.refused(f"no {number}")
    now[0] = 3_601.0
    refusing.refused("later")
    told = [entry.detail for entry in service.people.audit() if entry.what == "login refused"]
    assert len(told) == MOST_REFUSED + 1
    assert told[-1] == "later (and 50 before, which were too many to record)"
