"""Logging in by OpenID Connect: by a real provider, and by one that lies, hangs or answers for somebody else."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from joserfc.jwk import RSAKey
from pydantic import SecretStr, ValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from api.access import patience
from api.main import create_app
from api.oidc import attempts, login, provider
from orchestrator.record.account_tables import token
from orchestrator.record.writes import logins
from orchestrator.service.logins import MOST_REFUSED, Logins
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.callers import Role, Scope
from orchestrator.views.errors import ConflictError, MetricsweepError
from orchestrator.views.logins import LoginTerms, Person
from tests.api.conftest import BEARER, TOKEN, URL
from tests.api.oidc_provider import CLIENT, SECRET, PlayedProvider, by_shared_secret, mock_provider, query
from tests.api.played import SPEC, YAML
from tests.served_app import served

HTML = {"Accept": "text/html"}
Entering = Callable[..., httpx.Response]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong ones wait, but not long; a provider that was away is asked again at once."""
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(patience, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(provider, "AWAY_SECONDS", 0.0)


@pytest.fixture
def played() -> Iterator[PlayedProvider]:
    found = PlayedProvider()
    with served(found.app) as found.issuer:
        yield found


class World:
    """A service whose people are logged in by a provider."""

    def __init__(self, settings: Settings, issuer: str, **more: Any) -> None:
        said = {"oidc_issuer": issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SecretStr(SECRET)}
        self.settings = Settings(**{"home": settings.home, "token": settings.token, "open_rate": 0} | said | more)
        self.service = Service.open(self.settings)
        self.app = create_app(self.service, self.settings)
        self._open = ExitStack()

    def browser(self, **more: Any) -> TestClient:
        given = {"base_url": URL, "headers": HTML, "follow_redirects": False} | more
        return self._open.enter_context(TestClient(self.app, **given))

    def enter(self, browser: TestClient, then: str = "/", **changed: str | None) -> httpx.Response:
        """To the provider and back, with what a test changes of the address that leads back."""
        begun = browser.get("/login/oidc", params={"next": then})
        assert begun.status_code == 303, begun.text
        sent = httpx.get(begun.headers["location"], trust_env=False, verify=False)
        said = query(sent.headers["location"]) | changed
        return browser.get("/login/oidc/callback", params={k: v for k, v in said.items() if v is not None})

    def audit(self, what: str) -> list[tuple[str, str]]:
        return [(one.who, one.detail) for one in self.service.people.audit() if one.what == what]

    def close(self) -> None:
        self._open.close()
        self.service.close()


@pytest.fixture
def world(
    settings: Settings, played: PlayedProvider, migrated: Callable[[Path], Path]
) -> Iterator[Callable[..., World]]:
    migrated(settings.resolved_home)
    with ExitStack() as made:

        def make(**more: Any) -> World:
            found = World(settings, more.pop("oidc_issuer", played.issuer), **more)
            made.callback(found.close)
            return found

        yield make


def refused(answer: httpx.Response, said: str, status: int = 401) -> None:
    assert (answer.status_code, said in answer.text) == (status, True), (answer.status_code, answer.text)
    assert "metricsweep_oidc" not in answer.headers.get("set-cookie", "").replace('=""', "").split("Max-Age=0")[0] or (
        '=""' in answer.headers["set-cookie"]
    )


# Who comes in


def test_a_user_comes_in_and_goes(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_name="the lab", oidc_new_users="member", oidc_hours=2)
    browser = there.browser()
    shown = browser.get("/login", params={"next": "/sweeps/1?a=b"}).text
    assert "Log in with the lab" in shown
    assert "/login/oidc?next=%2Fsweeps%2F1%3Fa%3Db" in shown
    assert 'action="/login?next=%2Fsweeps%2F1%3Fa%3Db"' in shown, "the token's form leads on too"
    entered = there.enter(browser, "/sweeps/1?a=b")
    assert (entered.status_code, entered.headers["location"]) == (303, "/sweeps/1?a=b")
    assert not {SECRET, TOKEN} & set(entered.headers["set-cookie"].replace(";", "=").split("="))
    session = next(one for one in entered.headers.get_list("set-cookie") if "Max-Age=7200" in one)
    assert "HttpOnly" in session
    assert "SameSite=lax" in session
    me = browser.get("/v1/me").json()
    assert (me["name"], me["role"], me["scope"]) == ("ada", "member", "admin")
    assert there.service.people.user("ada").login is not None
    tokens = browser.get("/v1/tokens").json()["items"]
    assert [(one["name"], one["browser"]) for one in tokens] == [("browser", True)]
    left = browser.post("/logout")
    assert (left.status_code, left.headers["location"]) == (303, "/login?left=true")
    assert "Log out of the lab too" in browser.get(left.headers["location"]).text
    out = browser.get("/login/oidc/logout").headers["location"]
    assert out.startswith(f"{played.issuer}/end?")
    assert query(out) == {"client_id": CLIENT, "post_logout_redirect_uri": f"{URL}/login"}
    assert browser.get("/v1/me").status_code == 401
    assert there.audit("user added") == [("OpenID Connect", "member, subject 17")]
    assert there.audit("login") == [("ada", "subject 17")]
    assert there.audit("logout") == [("ada", "")]


def test_by_a_provider_that_others_wrote(world: Callable[..., World]) -> None:
    ada = {"sub": "ada-of-the-lab", "preferred_username": "Ada", "email": "ada@lab.example", "email_verified": True}
    with mock_provider(ada) as issuer:
        there = world(oidc_issuer=issuer, oidc_new_users="viewer", oidc_domains="lab.example")
        for subject, status in (("ada-of-the-lab", 303), ("ada-of-the-lab", 303), ("eve@else.example", 403)):
            browser = there.browser()
            begun = browser.get("/login/oidc").headers["location"]
            sent = httpx.post(begun, data={"sub": subject}, trust_env=False, verify=False)
            back = sent.headers["location"]
            assert back.startswith(f"{URL}/login/oidc/callback?"), "it is sent to us"
            assert browser.get(back).status_code == status
            assert browser.get("/v1/me").status_code == (200 if status == 303 else 401)
            browser.cookies.clear()
            assert browser.get(back).status_code == 401, "a code that came twice"
        assert [one.name for one in there.service.people.users()] == ["ada"]
        denied = httpx.post(
            browser.get("/login/oidc").headers["location"], data={"action": "deny"}, trust_env=False, verify=False
        )
        refused(browser.get(denied.headers["location"]), "not begun in this browser")  # this one forgets the state
        assert query(browser.get("/login/oidc/logout").headers["location"])["client_id"] == CLIENT


def test_who_is_no_user_is_refused_and_may_be_linked(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world()
    there.service.people.add_user("ada", Role.MEMBER, "main")
    browser = there.browser()
    answer = there.enter(browser)
    refused(answer, "no user here is linked with this login", 403)
    assert "your subject there, 17" in answer.text
    assert there.audit("login refused") == [("somebody", "no user here is linked with this login; subject 17")]
    root = there.browser(headers=BEARER)
    linked = root.put("/v1/users/ada/login", json={"subject": "17"})
    assert linked.json()["login"] == {"issuer": played.issuer, "subject": "17"}
    assert there.enter(browser).status_code == 303
    assert browser.get("/v1/me").json()["name"] == "ada"
    assert root.delete("/v1/users/ada/login").json()["login"] is None
    assert browser.get("/v1/me").status_code == 401, "what its login opened is closed with it"
    seen = TestClient(there.app, base_url=URL, headers=HTML | BEARER, follow_redirects=False)
    assert 'id="link-ada"' in seen.get("/people").text
    assert seen.post("/people/users/ada/login", data={"subject": " 17 "}).headers["location"] == "/people#user-ada"
    assert f"logs in by {played.issuer} as <code>17</code>" in seen.get("/people").text
    assert seen.post("/people/users/ada/login").status_code == 303
    assert there.service.people.user("ada").login is None
    assert [one[1] for one in there.audit("login linked") + there.audit("login unlinked")] == [
        f"17 of {played.issuer}"
    ] * 4


@pytest.mark.parametrize("claimed", ["ada", "ADA", "Ada"])
def test_a_name_that_is_taken_is_taken_over_by_nobody(
    world: Callable[..., World], played: PlayedProvider, claimed: str
) -> None:
    there = world(oidc_new_users="member")
    there.service.people.add_user("ada", Role.ADMIN, None)
    played.who, played.people["66"] = "66", {"preferred_username": claimed, "email": "ada@lab.example"}
    browser = there.browser()
    refused(there.enter(browser), "there is a user ada here already, who is not linked with this login", 403)
    assert browser.get("/v1/me").status_code == 401
    assert there.service.people.user("ada").login is None
    played.people["66"] = {"preferred_username": "mallory"}
    assert there.enter(browser).status_code == 303
    browser.post("/logout")
    played.people["66"] = {"preferred_username": claimed}
    assert there.enter(browser).status_code == 303
    assert browser.get("/v1/me").json()["name"] == "mallory", "what it calls itself later changes nothing"


def test_a_name_that_could_be_none_here_makes_no_user(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer")
    played.userinfo = {"sub": "17"}
    for name in ("Åda", "\u212aelvin", "", " ", "a b", "../x", "a" * 65, None, 7, ["ada"]):
        played.people["17"] = {"preferred_username": name}
        refused(there.enter(there.browser()), "no name that could be a user", 403)
    assert list(there.service.people.users()) == []


DOMAINS: Final = (
    ({"email": "ada@lab.example", "email_verified": True}, 303),
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


def test_domains(world: Callable[..., World], played: PlayedProvider) -> None:
    played.userinfo = {"sub": "17"}
    there = world(oidc_new_users="viewer", oidc_domains="lab.example, other.example")
    for claims, status in DOMAINS:
        played.people["17"] = {"preferred_username": "ada", **claims}
        assert there.enter(there.browser()).status_code == status, claims


def test_groups_say_who_comes_in_and_as_what(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(
        oidc_new_users="viewer", oidc_groups="lab,guests", oidc_roles="lab=member,chiefs=admin,chiefs=viewer",
        oidc_groups_claim="memberOf",
    )  # fmt: skip

    def role(*groups: str, own: object = None) -> str | int:
        played.people["17"]["memberOf"] = list(groups) if own is None else own
        browser = there.browser()
        answer = there.enter(browser)
        return browser.get("/v1/me").json()["role"] if answer.status_code == 303 else answer.status_code

    assert role("guests") == "viewer"
    assert role("lab") == "member"
    assert role("lab", "chiefs") == "admin"
    assert role("guests") == "viewer", "who is in the group no longer has lost its role"
    assert role("chiefs") == 403
    assert role(own="lab") == "member"
    assert role(own={"lab": True}) == 403
    assert role(own=[["lab"], 7, None]) == 403
    told = there.audit("role given")
    assert told == [("OpenID Connect", one) for one in ("member", "admin", "viewer", "member")]


def test_what_an_id_token_lacks_is_asked_for(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer")
    played.people["17"] = {}
    played.userinfo = {"sub": "66", "preferred_username": "eve"}
    refused(there.enter(there.browser()), "the claims of somebody else")
    played.userinfo = {"sub": "17", "preferred_username": "ada", "iss": "https://else.example"}
    assert there.enter(there.browser()).status_code == 303
    assert there.service.people.user("ada").role is Role.VIEWER


def test_a_verified_address_is_that_beside_it(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer", oidc_domains="lab.example")
    played.people["17"] = {"email": "eve@else.example", "email_verified": True}
    played.userinfo = {"sub": "17", "preferred_username": "eve", "email": "ada@lab.example"}
    refused(there.enter(there.browser()), "no verified e-mail address", 403)
    played.userinfo["email_verified"] = True
    assert there.enter(there.browser()).status_code == 303


def test_two_of_the_provider_s_users_see_nothing_of_each_other(
    world: Callable[..., World], played: PlayedProvider
) -> None:
    there = world(oidc_new_users="member")
    browsers = {}
    for subject, name in (("17", "ada"), ("18", "ben")):
        played.who, played.people[subject] = subject, {"preferred_username": name}
        browsers[name] = there.browser()
        assert there.enter(browsers[name]).status_code == 303
        there.service.people.add_project(f"{name}s", everyone=False)
        there.service.people.join(name, f"{name}s", Role.MEMBER)
        opened = there.service.people.tokens.add(name, "t", Scope.WRITE, 1).token
        sent = there.browser(headers=YAML | {"Authorization": f"Bearer {opened}"})
        made = sent.post(
            "/v1/sweeps", params={"project": f"{name}s"}, content=SPEC.replace("four-trials", f"of-{name}")
        )
        assert made.status_code == 201
    for name, own, other in (("ada", 1, 2), ("ben", 2, 1)):
        browser = browsers[name]
        assert [one["id"] for one in browser.get("/v1/sweeps").json()["items"]] == [own]
        for path in ("/sweeps/{}", "/v1/sweeps/{}", "/v1/sweeps/{}/trials"):
            assert (browser.get(path.format(own)).status_code, browser.get(path.format(other)).status_code) == (
                200,
                404,
            )
        assert browser.post(f"/sweeps/{other}/cancel").status_code == 404
        assert f"of-{'ben' if name == 'ada' else 'ada'}" not in browser.get("/").text


# How long


def test_who_is_disabled_is_out_at_once_and_comes_in_no_more(world: Callable[..., World]) -> None:
    there = world(oidc_new_users="viewer")
    browser = there.browser()
    assert there.enter(browser).status_code == 303
    there.service.people.disable("ada", disabled=True)
    assert browser.get("/v1/me").status_code == 401
    assert browser.get("/").headers["location"] == "/login?next=%2F"
    assert browser.get("/login").status_code == 200, "it is not led in circles"
    refused(there.enter(browser), "the user ada is disabled here", 403)
    there.service.people.disable("ada", disabled=False)
    assert browser.get("/v1/me").status_code == 200


def test_a_session_runs_out_and_is_ended_from_elsewhere(world: Callable[..., World]) -> None:
    there = world(oidc_new_users="member")
    browser, other = there.browser(), there.browser()
    assert there.enter(browser).status_code == there.enter(other).status_code == 303
    ours, theirs = browser.get("/v1/tokens").json()["items"]
    assert browser.post(f"/tokens/{theirs['id']}/revoke").status_code == 303
    assert other.get("/v1/me").status_code == 401
    with there.service._store.database.writing() as connection:
        over = sa.update(token).where(token.c.id == ours["id"]).values(expires=datetime.now(UTC) - timedelta(seconds=1))
        connection.execute(over)
    assert browser.get("/v1/me").status_code == 401
    assert browser.get("/login").status_code == 200
    assert there.enter(browser).status_code == 303
    assert [one["id"] for one in browser.get("/v1/tokens").json()["items"]] == [3], "what is over is not kept"


def test_a_user_has_so_many_browsers(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "MOST_BROWSERS", 3)
    ada, terms = Person("https://x", "17", "ada"), LoginTerms(Role.VIEWER)
    numbers = [service.people.logins.enter(ada, terms).token for _ in range(5)]
    opens = [number for number in numbers if service.accounts.of_token(number or 0)]
    assert opens == numbers[2:]


# Who does not come in


def test_another_browser_cannot_finish_what_one_began(world: Callable[..., World]) -> None:
    """Who sends somebody the way back of their own login would have them work under their name."""
    there = world(oidc_new_users="viewer")
    attacker, victim = there.browser(), there.browser()
    way = attacker.get("/login/oidc").headers["location"]
    back = httpx.get(way, trust_env=False, verify=False).headers["location"]
    refused(victim.get(back), "not begun in this browser")
    victim.get("/login/oidc")
    refused(victim.get(back), "not begun in this browser")
    assert victim.get("/v1/me").status_code == 401
    assert attacker.get(back).status_code == 303
    assert there.audit("login refused") == [("somebody", "this login was not begun in this browser within the last ten "
                                             "minutes, or came back before")] * 2  # fmt: skip


def test_a_wrong_state(world: Callable[..., World]) -> None:
    there = world(oidc_new_users="viewer")
    for state in ("", "x", "0" * 64, None):
        refused(there.enter(there.browser(), state=state), "not begun in this browser")


def test_a_cookie_of_a_login_is_nobody_s_to_make(world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    there = world(oidc_new_users="viewer")
    browser = there.browser()
    state = query(browser.get("/login/oidc").headers["location"])["state"]
    name, value = next(iter(browser.cookies.items()))
    assert state not in value
    key, until, path, seal = value.split(".")
    forged = [
        f"{key}.{int(until) + 1}.{path}.{seal}",
        f"{key}.{until}.{seal}",
    ]
    for wrong in ("", "....", "x", *forged):
        answer = there.browser().get(
            "/login/oidc/callback", params={"state": state, "code": "x"}, headers={"Cookie": f"{name}={wrong}"}
        )
        refused(answer, "not begun in this browser")
    monkeypatch.setattr(attempts, "SECONDS", -1)
    refused(there.enter(there.browser()), "not begun in this browser")


def test_a_code_is_taken_once(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer")
    browser = there.browser()
    back = httpx.get(browser.get("/login/oidc").headers["location"], trust_env=False, verify=False).headers["location"]
    kept = dict(browser.cookies.items())
    assert browser.get(back).status_code == 303
    again = there.browser()
    for name, value in kept.items():
        again.cookies.set(name, value)
    refused(again.get(back), "came back before")
    assert played.asked.count("/token") == 1
    begun = again.get("/login/oidc").headers["location"]
    refused(again.get("/login/oidc/callback", params=query(back) | {"state": query(begun)["state"]}), "it was used")


ANOTHER: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"nonce": "another"}, "nonce"),
    ({"nonce": None}, "nonce"),
    ({"aud": "another-client"}, "aud"),
    ({"aud": ["another-client"]}, "aud"),
    ({"aud": [CLIENT, "another-client"]}, "azp"),
    ({"aud": CLIENT, "azp": "another-client"}, "azp"),
    ({"aud": None}, "aud"),
    ({"iss": "https://else.example"}, "iss"),
    ({"iss": None}, "iss"),
    ({"exp": 1}, "exp"),
    ({"exp": None}, "exp"),
    ({"exp": float("nan")}, "exp"),
    ({"exp": "2999"}, "exp"),
    ({"iat": 4_000_000_000}, "iat"),
    ({"nbf": 4_000_000_000}, "nbf"),
    ({"at_hash": "wrong"}, "at_hash"),
    ({"sub": None}, "sub"),
    ({"sub": ""}, "subject"),
    ({"sub": "ä"}, "subject"),
    ({"sub": "x" * 256}, "subject"),
    ({"sub": 17}, "sub"),
    ({"sub": "17\nlogin"}, "subject"),
)


def test_an_id_token_of_another_login_or_for_another_service(
    world: Callable[..., World], played: PlayedProvider
) -> None:
    there = world(oidc_new_users="viewer")
    for changed, said in ANOTHER:
        played.claims = changed
        refused(there.enter(there.browser()), said)
    assert list(there.service.people.users()) == []
    assert len(there.audit("login refused")) == len(ANOTHER)


def test_a_signature_that_is_not_the_provider_s(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer")
    played.signed_by = RSAKey.generate_key(2048, {"kid": "one"})
    refused(there.enter(there.browser()), "signed by none of its keys")
    played.signed_by, played.algorithm = by_shared_secret(), "HS256"
    refused(there.enter(there.browser()), "the provider&#39;s ID token is refused")
    head = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
    body = "eyJzdWIiOiIxNyJ9"
    for raw in (f"{head}.{body}.", f"{head}.{body}", "", ".", "..", "x" * 70_000, "ä.ö.ü", f"{head}.{'W' * 30_000}."):
        played.raw = raw
        assert there.enter(there.browser()).status_code == 401
    assert list(there.service.people.users()) == []


def test_a_key_that_is_new(
    world: Callable[..., World], played: PlayedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = world(oidc_new_users="viewer")
    assert there.enter(there.browser()).status_code == 303
    played.key = played.signed_by = RSAKey.generate_key(2048, {"kid": "one"})
    refused(there.enter(there.browser()), "signed by none of its keys")
    assert played.asked.count("/keys") == 1, "not asked again within seconds, whoever sends what"
    monkeypatch.setattr(provider, "RENEWED_SECONDS", 0.0)
    assert there.enter(there.browser()).status_code == 303


def test_another_provider_that_sends_the_browser_back(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world(oidc_new_users="viewer")
    refused(there.enter(there.browser(), iss="https://else.example"), "another provider")
    assert there.enter(there.browser(), iss=played.issuer).status_code == 303
    refused(there.enter(there.browser(), code=None), "without a code")
    refused(there.enter(there.browser(), code="x" * 5_000), "without a code")
    refused(there.enter(there.browser(), error="<script>alert(1)</script>"), "an error of no known form")
    refused(there.enter(there.browser(), error="access_denied", error_description="Call 555"), "access_denied")
    played.discovery = {"authorization_response_iss_parameter_supported": True}
    strict = world(oidc_new_users="viewer")
    refused(strict.enter(strict.browser()), "another provider")


def test_a_login_leads_nowhere_else(world: Callable[..., World]) -> None:
    there = world(oidc_new_users="viewer")
    for then in ("//evil.example", "https://evil.example/", "/\\evil.example", "x", "/a\nb", "/" + "ä" * 600):
        assert there.enter(there.browser(), then).headers["location"] == "/"


# A provider that hangs, floods or talks nonsense


def slowly() -> Any:
    async def drip() -> Any:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    return StreamingResponse(drip(), media_type="application/json")


def flood() -> Any:
    async def much() -> Any:
        for _ in range(100):
            yield b" " * 65_536

    return StreamingResponse(much(), media_type="application/json")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (slowly, "in time|within"),
        (flood, "more than"),
        (lambda: Response(b"[" * 200_000), "no JSON object"),
        (lambda: Response(b"<html>"), "no JSON object"),
        (lambda: JSONResponse([1]), "no JSON object"),
        (lambda: JSONResponse({}, 500), "500|https|none that signs|somebody else"),
        (lambda: Response(b"x", headers={"Content-Encoding": "gzip"}), "compresses"),
        (lambda: RedirectResponse("http://127.0.0.1:1/"), "no JSON object"),
    ],
)
def test_a_provider_that_is_of_no_use(
    world: Callable[..., World], played: PlayedProvider, answer: Any, said: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The login is answered by a page with a 503, and by a line in the log without a trace."""
    monkeypatch.setattr(login, "SECONDS", 0.5 if answer is slowly else 120.0)
    there = world(oidc_new_users="viewer")
    played.people["17"] = {}
    for path in ("/.well-known/openid-configuration", "/token", "/keys", "/userinfo"):
        there.app.state.provider = login.ProviderLogin(there.settings, there.app.state.access.sealing)  # asks anew
        played.answers = {path: answer()}
        browser = there.browser()
        found = browser.get("/login/oidc") if path.startswith("/.well") else there.enter(browser)
        assert found.status_code == 503
        assert "Retry-After" in found.headers
        assert any(part in found.text for part in said.split("|")), (path, found.text)
        assert browser.get("/v1/me").status_code == 401
        assert browser.post("/login", data={"token": TOKEN}).status_code == 303, "a token goes on logging in"
    assert "Traceback" not in caplog.text
    assert not {SECRET, "an-access-token"} & set(caplog.text.replace("'", " ").split())


def test_a_provider_that_is_away_stops_nobody_else(
    world: Callable[..., World], played: PlayedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logins that wait for it hold no thread: while many wait, all else is answered."""
    monkeypatch.setattr(login, "MOST_ASKING", 4)
    monkeypatch.setattr(login, "SECONDS", 120.0)
    played.answers["/.well-known/openid-configuration"] = slowly()
    there = world()
    with served(there.app) as url:

        async def crowd() -> tuple[list[int], int]:
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120) as client:
                waiting = [asyncio.create_task(client.get("/login/oidc")) for _ in range(8)]
                while len(done := [one for one in waiting if one.done()]) < 4:
                    await asyncio.sleep(0.01)
                meanwhile = (await client.get("/v1/me", headers=BEARER)).status_code
                assert not all(one.done() for one in waiting)
                for one in waiting:
                    one.cancel()
                return [one.result().status_code for one in done], meanwhile

        assert asyncio.run(crowd()) == ([503] * 4, 200)


def test_who_did_not_answer_is_left_alone_for_a_moment(
    world: Callable[..., World], played: PlayedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "AWAY_SECONDS", 3600.0)
    played.answers["/.well-known/openid-configuration"] = Response(status_code=502)
    there = world()
    browser = there.browser()
    assert [browser.get("/login/oidc").status_code for _ in range(3)] == [503] * 3
    assert len(played.asked) == 1


FOREIGN: Final[tuple[dict[str, Any], ...]] = (
    {"issuer": "https://else.example"},
    {"issuer": None},
    {"token_endpoint": "http://else.example/token"},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"jwks_uri": "file:///etc/passwd"},
    {"jwks_uri": 7},
    {"token_endpoint": "https://user:word@else.example/"},
    {"authorization_endpoint": "https://" + "x" * 3_000},
)


def test_a_provider_that_names_doors_of_others(world: Callable[..., World], played: PlayedProvider) -> None:
    there = world()
    for changed in FOREIGN:
        played.discovery = changed
        assert there.browser().get("/login/oidc").status_code == 503, changed


def test_a_client_that_the_provider_does_not_know(
    world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    there = world(oidc_new_users="viewer", oidc_client_secret=SecretStr("another-secret-of-somebody"))
    answer = there.enter(there.browser())
    assert answer.status_code == 503
    assert "client id or secret: 401 invalid_client" in answer.text
    assert "another-secret" not in answer.text + caplog.text


def test_the_client_s_secret_is_exchanged_without_a_restart(world: Callable[..., World], tmp_path: Any) -> None:
    file = tmp_path / "secret"
    with pytest.raises(MetricsweepError, match=r"METRICSWEEP_OIDC_CLIENT_SECRET_FILE.*No such file"):
        world(oidc_client_secret=None, oidc_client_secret_file=file)
    file.write_text("the-secret-of-before\n")
    there = world(oidc_new_users="viewer", oidc_client_secret=None, oidc_client_secret_file=file)
    assert there.enter(there.browser()).status_code == 503
    (tmp_path / "aside").write_text(SECRET)
    (tmp_path / "aside").replace(file)
    assert there.enter(there.browser()).status_code == 303


# Where it stands


def test_behind_a_proxy_with_tls(world: Callable[..., World], played: PlayedProvider) -> None:
    given = {"url": "https://sweeps.example", "forwarding_proxies": "127.0.0.1"}
    there = world(oidc_new_users="viewer", **given)
    said = {"X-Forwarded-For": "10.0.0.7", "X-Forwarded-Proto": "https", "Host": "sweeps.example"}
    browser = there.browser(client=("127.0.0.1", 50_000), headers=HTML | said)
    begun = browser.get("/login/oidc")
    asked = query(begun.headers["location"])
    assert asked["redirect_uri"] == "https://sweeps.example/login/oidc/callback"
    kept = begun.headers["set-cookie"]
    assert kept.startswith("__Host-metricsweep_oidc_")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(kept.split("; "))
    back = httpx.get(begun.headers["location"], trust_env=False, verify=False).headers["location"]
    shown = {"Cookie": kept.partition(";")[0]}
    entered = browser.get(f"/login/oidc/callback?{back.partition('?')[2]}", headers=shown)
    assert entered.status_code == 303
    assert "Secure" in entered.headers["set-cookie"]
    assert [one.address for one in there.service.people.audit() if one.what == "login"] == ["10.0.0.7"]
    stranger = there.browser(client=("10.9.9.9", 50_000), headers=HTML | said)
    assert query(stranger.get("/login/oidc").headers["location"])["redirect_uri"].startswith("http://")
    foreign = there.browser(headers=HTML | {"Host": "evil.example"})
    assert foreign.get("/login/oidc").status_code == 421


def test_without_a_provider_there_is_nothing_of_it(http: TestClient, stranger: TestClient) -> None:
    assert "/login/oidc" not in stranger.get("/login").text
    for path in ("/login/oidc", "/login/oidc/callback", "/login/oidc/logout"):
        assert stranger.get(path).status_code == 401
        assert http.get(path).status_code == 404
    answer = http.put("/v1/users/ada/login", json={"subject": "17"})
    assert (answer.status_code, "METRICSWEEP_OIDC_ISSUER" in answer.json()["detail"]) == (409, True)


def test_the_audit_is_not_flooded_with_refusals(service: Service) -> None:
    now = [0.0]
    refusing = Logins(service._store, now=lambda: now[0])
    for number in range(MOST_REFUSED + 50):
        refusing.refused(f"no {number}")
    now[0] = 3_601.0
    refusing.refused("later")
    told = [one.detail for one in service.people.audit() if one.what == "login refused"]
    assert len(told) == MOST_REFUSED + 1
    assert told[-1] == "later (and 50 before, which were too many to tell)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"oidc_issuer": "http://login.example"}, "https://"),
        ({"oidc_issuer": "https://login.example/?x"}, "https://"),
        ({"oidc_issuer": "login.example"}, "https://"),
        ({"oidc_issuer": "https://login.example", "oidc_client_id": ""}, "client id"),
        ({"oidc_scopes": "profile"}, "openid"),
        ({"oidc_roles": "lab=boss"}, "group=role"),
        ({"oidc_roles": "lab"}, "group=role"),
        ({"oidc_new_users": "admin"}, "refused"),
        ({"oidc_client_secret": SecretStr("x"), "oidc_client_secret_file": "y"}, "name one of them"),
        ({"oidc_hours": 0}, "greater than 0"),
    ],
)
def test_a_setting_that_is_wrong(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings(**{"oidc_client_id": CLIENT} | given)


def test_nobody_else_links(world: Callable[..., World]) -> None:
    there = world()
    people = there.service.people
    for name in ("ada", "ben"):
        people.add_user(name, Role.MEMBER, "main")
    opened = people.tokens.add("ada", "t", Scope.ADMIN, 1).token
    ada = there.browser(headers={"Authorization": f"Bearer {opened}"})
    for method, body in (("PUT", {"json": {"subject": "17"}}), ("DELETE", {})):
        assert ada.request(method, "/v1/users/ben/login", **body).status_code == 403
    root = there.browser(headers=BEARER)
    assert root.put("/v1/users/ada/login", json={"subject": "17"}).status_code == 200
    assert root.put("/v1/users/ada/login", json={"subject": "17"}).status_code == 200
    for name, subject, status in (("ben", "17", 409), ("ada", "18", 409), ("eve", "1", 404), ("ben", "a b", 422)):
        assert root.put(f"/v1/users/{name}/login", json={"subject": subject}).status_code == status
    assert json.loads(root.get("/v1/users/ben").text)["login"] is None


@pytest.mark.parametrize("issuer", ["\x00", "\x1b[31m", "login.example", "http://login.example", "javascript:alert(1)"])
def test_nobody_is_linked_with_what_is_no_provider(world: Callable[..., World], issuer: str) -> None:
    there = world()
    there.service.people.add_user("ben", Role.MEMBER, "main")
    answer = there.browser(headers=BEARER).put("/v1/users/ben/login", json={"subject": "17", "issuer": issuer})
    assert (answer.status_code, answer.json()["problems"][0]["path"]) == (422, "body.issuer")
    with pytest.raises(ConflictError, match="expected the issuer as"):
        there.service.people.logins.link("ben", "17", issuer)
    assert there.service.people.user("ben").login is None
