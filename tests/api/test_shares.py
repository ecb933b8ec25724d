"""Share links: who makes them, what a visitor sees, and when they end."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from api.cli import app as commands
from api.client import Client
from orchestrator.record import account_admin
from orchestrator.record.schema import metadata, share
from orchestrator.service.service import Service
from orchestrator.views.accounts import Role, Scope
from tests.api.conftest import HTML, TOKEN, URL, named
from tests.api.played import SPEC, YAML, Conductor
from tests.api.two_worlds import SECRET, filled, operations, query
from tests.dashboards.markup import read

HIDDEN, SHOWN = 1, 2
"""The sweep whose trainings the shared sweep reuses, and the shared sweep."""
OTHER: Final = {"sweep": HIDDEN, "trial": 1, "request": 1, "token": 1}
OWN: Final = {"sweep": SHOWN, "trial": 5, "request": 2, "token": 1}
OPEN: Final = {
    "/", "/sweeps/{id}", "/sweeps/{id}/statistics", "/sweeps/{id}/cells/{index}", "/sweeps/{id}/trials", "/trials",
    "/trials/{id}", "/curves", "/compare", "/v1/plots/{plot}", "/v1/sweeps/{id}", "/v1/sweeps/{id}/grid",
    "/v1/sweeps/{id}/trials", "/v1/sweeps/{id}/cells/{index}", "/v1/sweeps/{id}/tables/{name}",
    "/v1/sweeps/{id}/tables/{name}/macros", "/v1/sweeps/{id}/verdicts", "/v1/sweeps/{id}/optimism",
    "/v1/sweeps/{id}/figures", "/v1/sweeps/{id}/figures/{name}", "/v1/trials", "/v1/trials/{id}",
    "/v1/trials/{id}/metrics", "/v1/trials/{id}/logs", "/v1/trials/{id}/figures",
}  # fmt: skip
"""What a visitor reads, in a sweep without figure files, classes of queries and resolutions."""
ANYBODY: Final = {"/healthz", "/readyz", "/login", "/shared", "/v1/schema", "/v1/identity"}


@pytest.fixture
def shown(http: TestClient, conductor: Conductor) -> int:
    """A sweep whose trainings are those of another one, of which a visitor must see nothing."""
    assert conductor.submit(http, SPEC.replace("four-trials", SECRET)) == HIDDEN
    http.patch(f"/v1/sweeps/{HIDDEN}/annotation", json={"note": SECRET, "tags": [SECRET]})
    conductor.finish(times=4)
    conductor.settle()
    figures = "figures: {main: {kind: bars, metric: recall@1, x: loss}}\n"
    assert conductor.submit(http, SPEC + figures) == SHOWN
    conductor.settle()
    assert http.get(f"/v1/sweeps/{SHOWN}").json()["counts"]["reused"] == 4
    return SHOWN


def link(http: TestClient, sweep: int = SHOWN, **headers: str) -> dict[str, Any]:
    made: dict[str, Any] = http.post(f"/v1/sweeps/{sweep}/shares", json={"days": 1}, headers=headers).json()
    return made


def visiting(app: FastAPI, made: dict[str, Any]) -> TestClient:
    browser = TestClient(app, base_url=URL, follow_redirects=False)
    assert browser.get(made["path"], headers=HTML).headers["location"] == f"/sweeps/{made['sweep']}"
    return browser


def test_a_visitor_reads_one_sweep_and_nothing_else(app: FastAPI, http: TestClient, shown: int) -> None:
    """Every GET route, with the numbers of the shared sweep and of the one whose trainings it reuses."""
    visitor, answered, leaks = visiting(app, link(http)), set[str](), list[str]()
    for method, template, names in operations(app):
        if method != "GET" or template.endswith("/events"):
            continue
        accept = {} if template.startswith("/v1") else HTML
        for numbers in (OWN, OTHER):
            for given in ({}, query(names, numbers), {"sweep": str(numbers["sweep"])}):
                path = filled(template, numbers)
                answer = visitor.get(path, params=given, headers=accept)
                if answer.status_code == 200 and numbers is OWN:
                    answered.add(template)
                if answer.status_code == 200 and numbers is OTHER and "{id}" in template:
                    leaks.append(path)
                if SECRET in answer.text.replace(given.get("tag", "-"), ""):
                    leaks.append(f"{path} {given}: {SECRET}")
    assert leaks == []
    assert answered - ANYBODY == OPEN
    assert SECRET in http.get("/").text, "what is hidden is there"


def test_a_visitor_changes_nothing(app: FastAPI, http: TestClient, shown: int) -> None:
    visitor = visiting(app, link(http))
    for method, template, names in operations(app):
        if method != "GET" and template not in {"/login", "/logout"}:
            answer = visitor.request(method, filled(template, OWN), params=query(names, OWN), json={"days": 1})
            assert answer.status_code == 403, (method, template, answer.text)
    for path in ("/mlflow/", "/mlflow/version", "/docs", "/v1/openapi.json", "/metrics", "/static/../v1/audit"):
        assert visitor.get(path).status_code in (403, 404), path
    assert visitor.head("/v1/audit").status_code == 403


def test_a_link_is_no_token_and_a_token_no_link(app: FastAPI, http: TestClient, stranger: TestClient) -> None:
    http.post("/v1/sweeps", content=SPEC, headers=YAML)
    secret = link(http, 1)["path"].partition("=")[2]
    bearer = {"Authorization": f"Bearer {secret}"}
    assert stranger.get("/v1/sweeps/1", headers=bearer).status_code == 401
    for text in (TOKEN, app.state.access.identity.secret, "", "x" * 43):
        assert stranger.get("/shared", params={"link": text}, headers=HTML).status_code == 404
    assert stranger.post("/login", data={"token": secret}).status_code == 401
    assert stranger.post("/login", data={"code": secret}).status_code == 401


def test_the_pages_of_a_visitor_lead_only_where_it_may_go(app: FastAPI, http: TestClient, shown: int) -> None:
    visitor, seen, todo = visiting(app, link(http)), set[str](), ["/", f"/sweeps/{shown}"]
    while todo:
        address = todo.pop()
        if address in seen or address.startswith("/docs/guide"):  # the guide may not be built
            continue
        seen.add(address)
        answer = visitor.get(address, headers=HTML)
        assert answer.status_code == 200, (address, answer.text[-400:])
        if answer.headers["content-type"].startswith("text/html") and len(seen) < 150:
            page = read(answer.text)
            assert not page.having("form", method="post"), address
            places = [one["href"] for one in page.having("a") if "href" in one]
            places += [one["src"] for tag in ("img", "script") for one in page.having(tag) if "src" in one]
            todo += [place.partition("#")[0] for place in places if place.startswith("/")]
    assert {f"/sweeps/{shown}/statistics", "/trials/5", f"/sweeps/{shown}/cells/0"} <= seen


def test_those_who_may_change_a_sweep_share_it(stranger: TestClient, service: Service, app: FastAPI) -> None:
    people = service.people
    people.add_project("faces", everyone=False)
    for name, role, project in (
        ("ada", Role.MEMBER, "faces"),
        ("vic", Role.VIEWER, "faces"),
        ("eve", Role.MEMBER, "main"),
    ):
        people.add_user(name, role, project)

    def bearer(name: str, scope: Scope = Scope.WRITE) -> dict[str, str]:
        return {"Authorization": f"Bearer {people.tokens.add(name, 'test', scope, 1).token}"}

    number = stranger.post("/v1/sweeps", content=SPEC, headers=bearer("ada") | YAML).json()["id"]
    path = f"/v1/sweeps/{number}/shares"
    made = link(stranger, number, **bearer("ada"))
    for who, status in (
        (bearer("vic"), 403), (bearer("eve"), 404), (bearer("ada", Scope.READ), 403),
        (bearer("ada", Scope.MLFLOW), 403),
    ):  # fmt: skip
        assert stranger.post(path, json={"days": 1}, headers=who).status_code == status
        assert stranger.get(path, headers=who).status_code == status
        assert stranger.delete(f"{path}/{made['id']}", headers=who).status_code == status
    listed = stranger.get(path, headers=bearer("ada")).json()
    assert [(one["id"], one["sweep"], one["actor"], "path" in one) for one in listed] == [(1, number, "ada", False)]
    assert stranger.delete(f"/v1/sweeps/{number}/shares/9", headers=bearer("ada")).status_code == 404
    assert stranger.delete(f"{path}/1", headers=bearer("ada")).json() == listed[0]
    assert stranger.get(path, headers=bearer("ada")).json() == []
    entries = [(one.who, one.what, one.target) for one in service.store.audit.after(0) if "share" in one.what]
    assert entries == [("ada", "shared", f"sweep {number}"), ("ada", "share revoked", f"sweep {number}")]


def test_errors_of_a_link_are_reported(http: TestClient, shown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_admin, "MOST_SHARES", 2)
    path = f"/v1/sweeps/{shown}/shares"
    for body in ({"days": 0}, {"days": 366}, {"days": -1}, {"days": "1"}, {"until": 3}, []):
        answer = http.post(path, json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), body
    assert http.post("/v1/sweeps/99/shares", json={}).json()["detail"] == "no sweep 99"
    made = http.post(path, json={}).json()
    created, expires = (datetime.fromisoformat(made[name]) for name in ("created", "expires"))
    assert expires - created == timedelta(days=30)
    link(http)
    answer = http.post(path, json={})
    assert (answer.status_code, answer.json()["detail"]) == (
        409, f"sweep {shown} has 2 share links, which is the most; revoke one",
    )  # fmt: skip
    http.delete(f"{path}/{made['id']}")
    assert http.post(path, json={}).status_code == 201
    assert [one["id"] for one in http.get(path).json()] == [2, 3], "numbers are not used again"


def expire(service: Service) -> None:
    with service.store.database.writing() as connection:
        connection.execute(sa.update(share).values(expires=datetime.now(UTC) - timedelta(seconds=1)))


def test_a_link_ends(app: FastAPI, http: TestClient, service: Service, conductor: Conductor, shown: int) -> None:
    """When it expires or is revoked, when its maker may not change the sweep any more, and with its sweep."""
    people = service.people
    people.add_user("ada", Role.MEMBER, "main")
    ada = {"Authorization": f"Bearer {people.tokens.add('ada', 'test', Scope.WRITE, 1).token}"}
    ends = {
        "expired": lambda _: expire(service),
        "revoked": lambda made: http.delete(f"/v1/sweeps/{shown}/shares/{made['id']}"),
        "maker disabled": lambda _: people.disable("ada", disabled=True),
        "maker left": lambda _: people.leave("ada", "main"),
        "maker became a viewer": lambda _: people.set_role("ada", Role.VIEWER),
        "sweep deleted": lambda _: (http.delete(f"/v1/sweeps/{shown}", params={"confirm": "four-trials"}),
                                    conductor.obey()),
    }  # fmt: skip
    for why, end in ends.items():
        people.disable("ada", disabled=False)
        people.set_role("ada", Role.MEMBER)
        people.join("ada", "main", Role.MEMBER)
        made = link(http, **ada)
        visitor = visiting(app, made)
        assert visitor.get(f"/sweeps/{shown}", headers=HTML).status_code == 200, why
        end(made)
        assert visitor.get(f"/v1/sweeps/{shown}").status_code == 401, why
        gone = visitor.get(f"/sweeps/{shown}", headers=HTML)
        assert (gone.status_code, gone.headers["location"]) == (303, "/shared"), why
        page = visitor.get("/shared", headers=HTML)
        assert (page.status_code, "expired or was revoked" in page.text) == (404, True), why
        assert not read(page.text).having("form"), why
        assert "/login" in visitor.get("/", headers=HTML).headers["location"], f"{why}: the link is forgotten"
        assert visitor.get(made["path"], headers=HTML).status_code == 404, why
    assert service.store.database.engine.connect().execute(sa.select(share.c.sweep_id)).all() == []


def test_a_browser_keeps_several_links_and_a_login_comes_first(
    app: FastAPI, http: TestClient, service: Service, shown: int
) -> None:
    service.people.add_project("faces", everyone=False)
    service.people.open_project("main", everyone=False)
    service.people.add_user("eve", Role.MEMBER, "faces")
    first, second = link(http), link(http, HIDDEN)
    visitor = visiting(app, first)
    assert visitor.get(f"/v1/sweeps/{HIDDEN}").status_code == 404
    visitor.get(second["path"])
    assert [visitor.get(f"/v1/sweeps/{one}").status_code for one in (HIDDEN, SHOWN)] == [200, 200]
    http.delete(f"/v1/sweeps/{SHOWN}/shares/{first['id']}")
    assert [visitor.get(f"/v1/sweeps/{one}").status_code for one in (HIDDEN, SHOWN)] == [200, 404]
    token = service.people.tokens.add("eve", "test", Scope.WRITE, 1).token
    visitor.post("/login", data={"token": token})
    assert visitor.get("/v1/me").json()["name"] == "eve"
    assert visitor.get(f"/v1/sweeps/{HIDDEN}").status_code == 404, "eve is not in its project"
    refused = visitor.get(second["path"], headers=HTML)
    assert (refused.status_code, "you are logged in as eve" in refused.text) == (409, True)
    owner = TestClient(app, base_url=URL, follow_redirects=False)
    owner.post("/login", data={"token": TOKEN})
    assert owner.get(second["path"]).headers["location"] == f"/sweeps/{HIDDEN}"
    assert owner.get("/v1/me").json()["role"] == "admin"


def test_the_secret_is_in_no_row_log_or_page(
    app: FastAPI, http: TestClient, service: Service, shown: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    made = link(http)
    secret = made["path"].partition("=")[2]
    assert re.fullmatch(r"[\w-]{43}", secret)
    visitor = visiting(app, made)
    (cookie,) = (one for one in visitor.cookies.jar if one.value == secret)
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "lax"
    pages = [visitor.get(path, headers=HTML).text for path in ("/", f"/sweeps/{shown}")]
    pages += [http.get(path, headers=HTML).text for path in (f"/sweeps/{shown}/shares", "/v1/audit")]
    with service.store.database.reading() as connection:
        rows = [str(connection.execute(sa.select(table)).all()) for table in metadata.tables.values()]
    logged = [
        record.getMessage() for record in caplog.records if not record.name.startswith("http")
    ]  # not the client's
    assert [text for text in (*pages, *rows, *logged) if secret in text] == []
    https = TestClient(app, base_url=URL.replace("http", "https"), follow_redirects=False)
    assert "Secure" in https.get(made["path"]).headers["set-cookie"]


def test_the_page_makes_and_revokes_links(app: FastAPI, http: TestClient, shown: int) -> None:
    browser = TestClient(app, base_url=URL, follow_redirects=False, headers=HTML)
    browser.post("/login", data={"token": TOKEN})
    assert f'href="/sweeps/{shown}/shares"' in browser.get(f"/sweeps/{shown}").text
    answer = browser.post(f"/sweeps/{shown}/shares", data={"days": "7"})
    assert answer.status_code == 201
    (url,) = re.findall(rf"{URL}/shared\?link=[\w-]+", answer.text)
    visitor = TestClient(app, base_url=URL, follow_redirects=False, headers=HTML)
    assert visitor.get(url).status_code == 303
    assert browser.get(f"/sweeps/{shown}/shares").text.count("/revoke") == 1
    assert browser.post(f"/sweeps/{shown}/shares", data={"days": "0"}).status_code == 422
    assert browser.post(f"/sweeps/{shown}/shares/1/revoke").headers["location"] == f"/sweeps/{shown}/shares"
    assert visitor.get(f"/sweeps/{shown}").headers["location"] == "/shared"


def test_client_and_command_share(url: str, http: TestClient, shown: int) -> None:
    with Client(url, TOKEN) as client:
        for made in (client.share(shown), client.sweep(shown).share(days=3)):
            assert httpx.get(made, trust_env=False).headers["location"] == f"/sweeps/{shown}"
        assert [one.id for one in client.shares(shown)] == [1, 2]
        assert client.revoke_share(shown, 1).id == 1

    def run(*words: str) -> str:
        done = CliRunner().invoke(commands, ["share", str(shown), *words], env=named(url))
        assert done.exit_code == 0, done.output
        return done.stdout.strip()

    for made in (run("--days", "2"), json.loads(run("--json"))["url"]):
        assert httpx.get(made, trust_env=False).headers["location"] == f"/sweeps/{shown}"
    assert len(run("--list").splitlines()) == 4, "with the heading"
    assert "3" in run("--revoke", "3")
    assert [one["id"] for one in json.loads(run("--list", "--json"))] == [2, 4]


def test_events_of_a_visitor_end_with_the_link(url: str, http: TestClient, service: Service, shown: int) -> None:
    """The stream of all sweeps tells of the shared one alone."""
    service.people.add_user("ada", Role.MEMBER, "main")
    token = service.people.tokens.add("ada", "test", Scope.WRITE, 1).token
    made, heard = link(http, Authorization=f"Bearer {token}"), list[dict[str, Any]]()
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as visitor:
        visitor.get(made["path"])
        assert visitor.get(f"/v1/sweeps/{HIDDEN}/events").status_code == 403
        with visitor.stream("GET", "/v1/events") as stream:
            lines: Iterator[str] = stream.iter_lines()
            next(lines)
            for sweep in (HIDDEN, shown):
                assert http.patch(f"/v1/sweeps/{sweep}/annotation", json={"note": "heard"}).status_code == 200
            end = time.monotonic() + 60
            for line in lines:
                assert time.monotonic() < end, "the stream goes on after the link was revoked"
                if line.startswith("data: {") and line != "data: {}":
                    heard.append(json.loads(line[6:]))
                    http.delete(f"/v1/sweeps/{shown}/shares/{made['id']}")  # and the stream ends by itself
    assert {one["sweep"] for one in heard} == {shown}
