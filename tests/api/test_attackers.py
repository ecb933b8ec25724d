"""The attacks of docs/security.md by those who hold a token: a viewer, a member of another project, lesser tokens."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from pydantic import SecretStr
from typer.testing import CliRunner

from api.cli import app as commands
from orchestrator.record.schema import metadata
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role, Scope
from tests.api.conftest import TOKEN, URL, named, opened
from tests.api.played import SPEC, YAML
from tests.api.two_worlds import HIS, NUMBERS, SECRET, World, asked_by, filled, operations, query
from tests.served_app import served

ATTACKERS: Final = {
    "viewer": ("vic", Scope.ADMIN), "outsider": ("ada", Scope.ADMIN), "reader": ("ben", Scope.READ),
    "notebook": ("ben", Scope.MLFLOW), "scraper": ("ben", Scope.METRICS),
}  # fmt: skip
"""Whose token, and for what: the sweep that they attack is ben's, of a closed project in which vic may look."""
KEPT: Final = ("sweep", "trial", "training", "request", "note", "tag", "resolution", "quota", "project", "account",
               "membership", "installation", "collected")  # fmt: skip
OPEN_TO_ALL: Final = {"/login", "/logout", "/v1/login-links", "/submit/check"}
"""Where each is answered about itself, or about a spec that it brings; links are followed below."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, migrated: Callable[[Path], Path]) -> Iterator[World]:
    settings = Settings(home=tmp_path_factory.mktemp("attacked"), token=SecretStr(TOKEN))
    migrated(settings.resolved_home)
    made = World(settings, ben=True)
    made.service.people.add_user("vic", Role.VIEWER, "bens")
    for name, (user, scope) in ATTACKERS.items():
        made.tokens[name] = made.service.people.tokens.add(user, "attack", scope, 1).token
    yield made
    made.close()


@pytest.fixture(params=ATTACKERS)
def attacker(request: pytest.FixtureRequest, world: World) -> TestClient:
    """A program that holds the token."""
    return world.client(request.param)


def state(world: World) -> dict[str, list[str]]:
    """What there is, but for tokens, which everybody may make of their own, and what is told of it."""
    with world.store.database.reading() as connection:
        rows = {table: connection.execute(sa.select(metadata.tables[table])).all() for table in KEPT}
        revoked = connection.execute(sa.text("SELECT id FROM token WHERE revoked IS NOT NULL")).all()
    return {table: sorted(map(str, found)) for table, found in (rows | {"revoked": revoked}).items()}


def test_no_route_changes_what_is_ben_s(world: World, attacker: TestClient) -> None:
    """Every one that is not GET, of the API and of the pages, with what it would take from ben."""
    before, walked = state(world), 0
    for method, template, names in operations(world.app):
        if method == "GET" or template in OPEN_TO_ALL:
            continue
        path, given = filled(template, NUMBERS["his"]), query(names, NUMBERS["his"])
        given.pop("dry_run", None)
        answer = asked_by(attacker, method, path, given, page=not template.startswith("/v1"))
        walked += 1
        assert answer[0] >= 300, (method, path, answer)
        assert state(world) == before, (method, path, answer)
    assert walked > 40


def test_nobody_is_more_than_the_token_says(world: World, attacker: TestClient) -> None:
    """By a header that names another, by an address that is no proxy's, or by a request of another site's."""
    for name in ("root", "ben", "vic"):
        answer = attacker.get("/v1/sweeps/3", headers={"X-Actor": name, "X-Forwarded-For": "127.0.0.1"})
        assert answer.status_code == attacker.get("/v1/sweeps/3").status_code
        assert attacker.post("/v1/sweeps/2/pause", headers={"X-Actor": name}).status_code in (403, 404)
    assert attacker.get("/v1/sweeps", headers={"Host": "evil.example"}).status_code == 421
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert attacker.post("/v1/sweeps", content=SPEC, headers=YAML | headers).status_code == 403
    for path in ("/v1/storage", "/v1/audit", "/v1/users", "/v1/projects", "/people", "/mlflow/", "/mlflow/version"):
        given = attacker.get(path)
        assert given.status_code == 403, path
        assert SECRET not in given.text


def test_a_session_is_no_more_than_its_token(world: World, attacker: TestClient) -> None:
    """Nor is a link that the token makes, nor a token that it makes."""
    browser = TestClient(world.app, base_url=URL, follow_redirects=False, headers={"Accept": "text/html"})
    text = attacker.headers["authorization"].removeprefix("Bearer ")
    before = state(world)
    if browser.post("/login", data={"token": text}).status_code == 303:
        for verb in ("pause", "retry", "cancel", "delete", "remark"):
            form = {"confirm": SECRET, "note": "theirs"}
            assert browser.post(f"/sweeps/2/{verb}", data=form).status_code in (403, 404), verb
    link = attacker.post("/v1/login-links")
    if link.is_success:
        other = TestClient(world.app, base_url=URL, follow_redirects=False)
        assert opened(other, link.json()["path"]).status_code == 303
        assert other.get("/v1/me").json() == attacker.get("/v1/me").json()
    for scope in ("admin", "metrics"):
        assert attacker.post("/v1/tokens", json={"name": "more", "scope": scope}).status_code in (403, 422)
        assert attacker.post("/v1/tokens", json={"name": "more", "user": "ben", "scope": scope}).status_code != 201
    assert state(world) == before


def test_events_and_commands_are_no_other_way_in(world: World) -> None:
    """A stream of a sweep that is not seen, and the commands that steer, by each of them over a socket."""
    before = state(world)
    for name in ATTACKERS:
        if name not in {"viewer", "reader"}:  # who may look hears it
            assert world.client(name).get("/v1/sweeps/2/events").status_code in (403, 404), name
    with served(world.app) as url:
        for name in ATTACKERS:
            environment = named(url) | {"METRICSWEEP_TOKEN": world.tokens[name]}
            for words in (["pause", "2"], ["cancel", "2"], ["retry", "2"], ["note", "2", "theirs"], ["tag", "2", "x"],
                          ["priority", "2", "3"], ["delete", "2", "--yes"]):  # fmt: skip
                told = CliRunner().invoke(commands, words, env=environment)
                assert told.exit_code != 0, (name, words, told.output)
            told = CliRunner().invoke(commands, ["list", "--json"], env=environment)
            seen = [one["id"] for one in json.loads(told.stdout)] if told.exit_code == 0 else []
            assert {"viewer": [3, 2], "reader": [3, 2], "outsider": [1]}.get(name, []) == seen
    assert state(world) == before


def test_a_hostile_spec_is_nobody_s_sooner_for_its_sender(world: World, attacker: TestClient) -> None:
    """Who may submit nowhere is told so, whatever the body holds; who may, is not answered for another's project."""
    bomb = b"a: &a [x, x, x, x, x, x, x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % ((97 + n, 97 + n) + (96 + n,) * 8) for n in range(1, 9)
    )
    for body in (bomb, HIS.encode(), b"\x00", b"{" * 10_000):
        answer = attacker.post("/v1/sweeps", content=body, params={"project": "bens"}, headers=YAML)
        assert answer.status_code in (400, 403, 404, 413, 422), answer.text
        assert "Traceback" not in answer.text
