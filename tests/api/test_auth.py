"""Tokens, sessions and one-time links: who may ask."""

import asyncio
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from pydantic import SecretStr, ValidationError
from starlette.requests import cookie_parser

from api.auth import sessions
from api.auth.gate import Authentication
from api.auth.sessions import SESSION_SECONDS, BrowserSession
from api.main import create_app
from api.routes.events import _listener
from orchestrator.service.service import Service
from orchestrator.settings import LEAST_TOKEN, Settings
from tests.api.conftest import BEARER, HTML, TOKEN, URL, opened
from tests.api.played import SPEC, YAML
from tests.api.two_worlds import NUMBERS, filled, operations
from tests.dashboards.markup import read

CLOSED = ["/v1/sweeps", "/v1/catalog", "/v1/openapi.json", "/v1/nothing", "/"]


@pytest.fixture
def access(app: FastAPI) -> Authentication:
    found: Authentication = app.state.access
    return found


# Tokens


def test_a_token_is_required(stranger: TestClient) -> None:
    for path in CLOSED:
        for shown in (None, "Bearer wrong", f"Basic {TOKEN}", "é"):
            answer = stranger.get(path, headers={"Authorization": shown.encode()} if shown else {})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (path, shown)
            assert TOKEN not in answer.text
        assert stranger.get(path, headers=BEARER).status_code in (200, 404)


def test_every_route_asks_for_a_token_but_those_that_tell_nothing(app: FastAPI, stranger: TestClient) -> None:
    routes = [(method, filled(path, NUMBERS["hers"])) for method, path, _ in operations(app)]
    assert len(routes) > 100
    answered = {path for method, path in routes if stranger.request(method, path).status_code != 401}
    assert answered == {"/healthz", "/readyz", "/login", "/shared", "/v1/schema", "/v1/identity"}


def test_the_token_of_the_home_opens_next_to_a_chosen_one(http: TestClient, access: Authentication) -> None:
    own = {"Authorization": f"Bearer {access.identity.secret}"}
    assert http.get("/v1/sweeps", headers=own).status_code == 200


def test_loopback_without_a_chosen_token_has_the_token_of_its_home(service: Service, settings: Settings) -> None:
    plain = settings.model_copy(update={"token": None})
    with TestClient(create_app(service, plain), base_url=URL, follow_redirects=False) as client:
        for path in CLOSED:
            assert client.get(path).status_code == 401
        file = settings.home / "api.token"
        assert file.stat().st_mode & 0o777 == 0o600
        own = file.read_text()
        assert re.fullmatch("[0-9a-f]{64}", own)
        assert client.get("/v1/sweeps", headers={"Authorization": f"Bearer {own}"}).status_code == 200
        assert client.get("/v1/sweeps", headers={"Authorization": "Bearer "}).status_code == 401
    again = Authentication(plain)
    assert again.is_token(own), "it is kept"


def test_what_tells_nothing_is_open(stranger: TestClient, service: Service, settings: Settings, tmp_path: Path) -> None:
    for path in ("/healthz", "/readyz", "/login", "/v1/schema", "/static/style.css"):
        assert stranger.get(path).status_code in (200, 503), path
    assert "recipe" in stranger.get("/v1/schema").json()["properties"]
    own = settings.model_copy(update={"parts": tmp_path})
    with TestClient(create_app(service, own), base_url=URL) as client:
        assert client.get("/v1/schema").status_code == 401, "it names parts of one's own"


def test_a_weak_token_is_refused_with_a_sentence() -> None:
    for token in ("£", "s3cret", "fifteen-letters", "a token with blanks in it", "schlüsselschlüssel"):
        for host in ("127.0.0.1", "0.0.0.0"):
            with pytest.raises(ValidationError, match=f"at least {LEAST_TOKEN} visible ASCII characters") as refused:
                Settings(host=host, token=SecretStr(token))
            assert token not in str(refused.value)


# Sessions


def test_a_person_logs_in_once(stranger: TestClient, access: Authentication) -> None:
    sent = stranger.get("/sweeps/1?a=b", headers=HTML)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/login?next=%2Fsweeps%2F1%3Fa%3Db"
    assert stranger.get("/login", headers=HTML).status_code == 200
    wrong = stranger.post("/login", data={"token": "wrong"}, headers=HTML)
    assert (wrong.status_code, "not the token" in read(wrong.text).text) == (401, True)
    entered = stranger.post(sent.headers["location"], data={"token": TOKEN}, headers=HTML)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/sweeps/1?a=b"
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert not {TOKEN, access.identity.secret} & set(re.split(r"[=;. ]", cookie))
    assert stranger.get("/", headers=HTML).status_code == 200
    assert stranger.get("/v1/sweeps").status_code == 200  # the pages' downloads
    assert stranger.post("/v1/sweeps", content=SPEC, headers=YAML).status_code == 401
    assert stranger.post("/v1/sweeps", content=SPEC, headers=YAML | BEARER).status_code == 201
    assert stranger.post("/sweeps/1/cancel", headers=HTML).status_code == 303


def test_a_login_leads_nowhere_else(stranger: TestClient, access: Authentication) -> None:
    for then in ("//evil.example", "https://evil.example/", "/\\evil.example", "x", "/a\nb", "//[",
                 "//evil\u2100.example", "http://["):  # fmt: skip
        for form in ({"token": TOKEN}, {"code": access.codes.new()}):
            entered = stranger.post("/login", params={"next": then}, data=form)
            assert entered.headers["location"] == "/", then


def test_a_session_ends_and_cannot_be_made(
    stranger: TestClient, access: Authentication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(value: str) -> int:
        return stranger.get("/v1/sweeps", headers={"Cookie": f"{access.sessions.cookie}={value}"}).status_code

    until = int(time.time()) + SESSION_SECONDS
    good = access.sessions.sealed(BrowserSession("one", until))
    assert status(good) == 200
    seal = good.rpartition(".")[2]
    forged = (f"one.{until + 1}.{seal}", f"two.{until}.{seal}", f"one.{until}.0.{seal}")
    for value in ("", ".", "..", "...", "x.y.z", f"one.{until}.", seal, *forged):
        assert status(value) == 401
    elsewhere = Authentication(Settings(home=tmp_path / "elsewhere")).sessions
    assert status(elsewhere.sealed(BrowserSession("one", until))) == 401
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time=lambda: float(until) + 1, monotonic=time.monotonic))
    assert status(good) == 401


def test_cookies_with_escapes_are_not_decoded(
    stranger: TestClient, access: Authentication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding a quoted value takes a quadratic time, in the event loop, before anybody has logged in."""

    def decoded(text: str) -> dict[str, str]:
        assert "\\" not in text
        return cookie_parser(text)

    monkeypatch.setattr("starlette.requests.cookie_parser", decoded)
    own = f"{access.sessions.cookie}={access.sessions.sealed(BrowserSession('one', int(time.time()) + 60))}"
    hostile = 'other="' + '\\"' * 7_000 + '"'
    for cookies, status in ((hostile, 401), (f"{hostile}; {own}", 200), (f"{own};a=b; c", 200), ("", 401)):
        assert stranger.get("/v1/sweeps", headers={"Cookie": cookies}).status_code == status, cookies[-80:]


def test_a_session_of_one_home_opens_no_other_on_the_same_postgres(
    service: Service, settings: Settings, tmp_path: Path
) -> None:
    """Also with one chosen token, and whatever the cookie is called."""
    shared = {"token": SecretStr(TOKEN), "database_url": "postgresql+psycopg://metricsweep@postgres/metricsweep"}
    one, two = (
        create_app(service, settings.model_copy(update={"home": tmp_path / name, **shared})) for name in ("one", "two")
    )
    with TestClient(one, base_url=URL, follow_redirects=False) as client:
        assert client.post("/login", data={"token": TOKEN}, headers={"Origin": URL}).status_code == 303
        ((name, value),) = client.cookies.items()
        assert client.get("/v1/sweeps").status_code == 200
    with TestClient(two, base_url=URL, follow_redirects=False) as client:
        assert name != two.state.access.sessions.cookie, "both may be served by one host"
        for called in (name, two.state.access.sessions.cookie):
            assert client.get("/v1/sweeps", headers={"Cookie": f"{called}={value}"}).status_code == 401, called


def test_a_token_s_file_is_exchanged_without_a_restart(service: Service, settings: Settings, tmp_path: Path) -> None:
    """Both open while one replaces the other; with the old one its sessions and streams end."""
    file, new = tmp_path / "token", "the-token-that-follows"

    def exchange(text: str) -> None:
        (tmp_path / "aside").write_text(text)
        (tmp_path / "aside").replace(file)

    exchange(TOKEN)
    app = create_app(service, settings.model_copy(update={"token": None, "token_file": file}))
    access: Authentication = app.state.access
    with TestClient(app, base_url=URL, follow_redirects=False) as client:

        def status(token: str | None) -> int:
            shown = {} if token is None else {"Authorization": f"Bearer {token}"}
            return client.get("/v1/sweeps", headers=shown).status_code

        assert client.post("/login", data={"token": TOKEN}, headers={"Origin": URL}).status_code == 303
        request = Request({"type": "http", "headers": [(b"authorization", f"Bearer {TOKEN}".encode())]})
        stream = _listener(request, access)
        assert (status(TOKEN), status(None), stream.may()) == (200, 200, True)
        exchange(f"{TOKEN}\n{new}")
        assert (status(TOKEN), status(new), status(None), stream.may()) == (200, 200, 200, True)
        exchange(new)
        assert (status(TOKEN), status(new), status(None), stream.may()) == (401, 200, 401, False)


def test_who_logs_out_is_out_with_every_copy_of_the_cookie(
    stranger: TestClient, service: Service, settings: Settings
) -> None:
    stranger.post("/login", data={"token": TOKEN})
    copy = {"Cookie": "; ".join(f"{name}={value}" for name, value in stranger.cookies.items())}
    assert "/logout" in stranger.get("/", headers=HTML).text
    left = stranger.post("/logout", headers=HTML)
    assert (left.status_code, left.headers["location"]) == (303, "/login")
    assert list(stranger.cookies.keys()) == []
    assert stranger.get("/v1/sweeps").status_code == 401
    assert stranger.get("/v1/sweeps", headers=copy).status_code == 401
    with TestClient(create_app(service, settings), base_url=URL) as restarted:
        assert restarted.get("/v1/sweeps", headers=copy).status_code == 401
    assert (settings.home / "sessions.ended").stat().st_mode & 0o777 == 0o600
    stranger.post("/login", data={"token": TOKEN})
    assert stranger.get("/v1/sweeps").status_code == 200, "the next login is another session"


# One-time links


def test_a_link_logs_in_once(http: TestClient, stranger: TestClient) -> None:
    made = http.post("/v1/login-links")
    assert made.status_code == 201
    link = made.json()["path"]
    for _ in range(2):  # looking changes nothing
        assert "Log in as the owner of this server?" in read(stranger.get(link, headers=HTML).text).text
        assert stranger.get("/", headers=HTML).status_code == 303
    entered = opened(stranger, link)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert stranger.get("/", headers=HTML).status_code == 200
    assert stranger.get(link).status_code == 303, "who is in already is led on"
    stranger.cookies.clear()
    again = stranger.get(link, headers=HTML)
    assert again.status_code == 401
    assert "has been used, or has run out" in again.text
    assert stranger.get("/login?code=x").status_code == 401


def test_no_other_site_logs_a_browser_in(access: Authentication, stranger: TestClient) -> None:
    """Neither by an address that it has the browser open, nor by a form that it sends."""
    code, other = access.codes.new(), "http://127.0.0.1:9999"
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    stranger.get(f"/login?code={code}", headers=HTML | headers)
    for foreign in ({"Origin": other}, {"Origin": "null"}, headers):
        assert stranger.post("/login", data={"code": code}, headers=HTML | foreign).status_code == 403, foreign
    assert stranger.get("/v1/sweeps").status_code == 401


def test_only_who_has_the_token_makes_links(stranger: TestClient) -> None:
    assert stranger.post("/v1/login-links").status_code == 401
    stranger.post("/login", data={"token": TOKEN})
    assert stranger.post("/v1/login-links").status_code == 401, "a session makes no others"


def test_of_many_at_once_one_gets_in(app: FastAPI, access: Authentication) -> None:
    code = access.codes.new()
    together = threading.Barrier(8)

    def enter(_: int) -> int:
        with TestClient(app, base_url=URL, follow_redirects=False) as client:
            together.wait()
            return client.post("/login", data={"code": code}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(enter, range(8))) == [303] + [401] * 7


def test_a_code_runs_out_and_the_oldest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sessions.Codes()
    owners = kept.new()
    made = [kept.new(user=7, token=1) for _ in range(sessions.MOST_CODES + 1)]
    assert [bool(kept.use(made[0])), bool(kept.use(made[1]))] == [False, True]
    assert kept.use(owners), "a user's links take no room from others"
    later = time.monotonic() + sessions.CODE_SECONDS + 1
    monkeypatch.setattr(sessions, "time", SimpleNamespace(monotonic=lambda: later))
    assert not kept.use(made[2])


# Guessing


def test_guesses_wait_and_the_right_token_does_not(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(sessions, "LONGEST_PAUSE", 3600.0)
    monkeypatch.setattr(sessions, "MOST_WAITING", 5)

    async def tried() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            wrong = {"Authorization": "Bearer wrong"}
            guesses = [
                asyncio.create_task(client.get("/v1/sweeps", headers=wrong)),
                asyncio.create_task(client.post("/login", data={"token": "wrong"})),
                asyncio.create_task(client.get("/login?code=wrong")),
                *(asyncio.create_task(client.get("/v1/sweeps", headers=wrong)) for _ in range(2)),
            ]
            async with asyncio.timeout(60):
                while app.state.access.patience.waiting < len(guesses):
                    await asyncio.sleep(0.01)
            # Where so many wait already, one more is sent away at once; nothing is kept of it.
            assert (await client.get("/v1/sweeps", headers=wrong)).status_code == 429
            assert (await client.post("/login", data={"token": "wrong"})).status_code == 429
            assert not any(guess.done() for guess in guesses)
            assert (await client.get("/v1/sweeps", headers=BEARER)).status_code == 200
            assert (await client.get("/v1/sweeps")).status_code == 401, "no token is no guess"
            assert (await client.post("/login", data={"token": TOKEN})).status_code == 303
            for guess in guesses:
                guess.cancel()
            await asyncio.gather(*guesses, return_exceptions=True)

    asyncio.run(tried())


def test_the_wait_grows_and_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(sessions, "FIRST_PAUSE", 0.25)
    monkeypatch.setattr(sessions, "LONGEST_PAUSE", 4.0)
    monkeypatch.setattr(sessions, "asyncio", SimpleNamespace(sleep=sleep))
    waiting = sessions.LoginPatience()
    for _ in range(6):
        asyncio.run(waiting.after_wrong("somebody"))
    assert waited == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    later = time.monotonic() + sessions.FORGIVEN_SECONDS + 1
    monkeypatch.setattr(sessions, "time", SimpleNamespace(monotonic=lambda: later))
    asyncio.run(waiting.after_wrong("somebody"))
    assert waited[-1] == 0.25
