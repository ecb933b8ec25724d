"""One user's answers do not depend on another user's actions: over every route, page and command.

Two services differ only in what ben did in his closed project. Both answer every request of ada, about her numbers or
his, with the same text: nothing of his is shown, counted, estimated or guessed from a refusal. New routes are tested
without a change here: the routes are read from the OpenAPI document and the application.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from pydantic import SecretStr
from typer.main import get_command
from typer.testing import CliRunner

from api.cli import COMMANDS
from api.cli import app as commands
from orchestrator.record import database as database_module
from orchestrator.record.database import Database
from orchestrator.record.schema import metadata
from orchestrator.settings import Settings
from orchestrator.views.accounts import Role, Scope, calling
from tests.api import two_worlds
from tests.api.conftest import TOKEN, URL, named, opened
from tests.api.played import SPEC, YAML
from tests.api.two_worlds import ENDLESS, HIS, NUMBERS, SECRET, World, asked, asked_by, filled, operations, query
from tests.served_app import served


@contextmanager
def leaking(world: World, *tables: str) -> Iterator[None]:
    """Have the views of some tables show every row, as if nobody had thought of their rules."""
    database = world.service.store.database
    with pytest.MonkeyPatch.context() as patched:
        for table in tables:
            if table in database_module._MINE:
                patched.setitem(database_module._MINE, table, "1 = 1")
        kept = tuple(table for table in database_module.OF_SWEEPS if table not in tables)
        patched.setattr(database_module, "OF_SWEEPS", kept)
        _connect_anew(database)
        yield
    _connect_anew(database)


def _connect_anew(database: Database) -> None:
    if database._seeing is not None:
        database._seeing.dispose()
        database._seeing = None


def rows(world: World, table: str) -> list[str]:
    """What ada reads of a table, whatever she asks, without what moves."""
    with calling(world.caller("ada")), world.service.store.database.reading() as connection:
        found = connection.execute(sa.select(metadata.tables[table])).all()
    return sorted(two_worlds.MOVING.sub("~", str(tuple(row))) for row in found)


def test_ada_reads_the_same_rows_and_a_view_without_its_rule_shows_more(worlds: tuple[World, World]) -> None:
    alone, beside = worlds
    for table in sorted((*database_module._MINE, *database_module.OF_SWEEPS)):
        assert rows(beside, table) == rows(alone, table), table
        with leaking(beside, table):
            assert rows(beside, table) != rows(alone, table), f"ben left nothing in {table}: a leak would not be seen"
        assert rows(beside, table) == rows(alone, table), table


def test_ada_gets_the_same_answers_whatever_ben_did(worlds: tuple[World, World]) -> None:
    alone, _ = worlds
    walked, differing = 0, {}
    for method, template, names in operations(alone.app):
        page = not template.startswith("/v1")
        for whose, numbers in two_worlds.NUMBERS.items():
            changes = method != "GET" and (whose == "hers" or template in two_worlds.CHANGING)
            path = two_worlds.filled(template, numbers)
            if ENDLESS.search(path) or (changes and template != "/v1/sweeps") or (whose == "his" and path == template):
                continue
            for given in [{}, query(names, numbers)] if names and not changes else [query(names, numbers)]:
                first, second = (asked(world, method, path, given, page=page) for world in worlds)
                walked += 1
                assert SECRET not in second[1].replace(given.get("confirm", "-"), "").replace(given.get("tag", "-"), "")
                if first != second:
                    differing[f"{method} {path} {given}"] = first, second
    assert walked > 200
    assert {where: _apart(*both) for where, both in differing.items()} == {}


def _apart(first: tuple[int, str], second: tuple[int, str]) -> str:
    """Where two answers begin to differ."""
    at = next((at for at, (a, b) in enumerate(zip(first[1], second[1], strict=False)) if a != b), -1)
    return f"{first[0]} {second[0]} {first[1][max(0, at - 60) : at + 60]!r} {second[1][max(0, at - 60) : at + 60]!r}"


def test_mlflow_is_shut_to_who_is_not_in_every_project(worlds: tuple[World, World]) -> None:
    _, beside = worlds
    client = TestClient(beside.app, base_url=URL)
    for shown in (
        {"headers": {"Authorization": f"Bearer {beside.tokens['ada']}"}},
        {"auth": ("ada", beside.tokens["ada"])},
    ):
        for path in ("", "version", "ajax-api/2.0/mlflow/experiments/search", "get-artifact"):
            answer = client.get(f"/mlflow/{path}", **shown)
            assert (answer.status_code, "MLflow has no projects" in answer.text) == (403, True), path


SWEEPS: Final = ("number", "where", "ids", "before")
"""How commands call the argument that names a sweep."""


def test_commands_of_another_s_sweep_say_that_there_is_none(worlds: tuple[World, World], tmp_path: Path) -> None:
    """Every command that asks a server for one sweep."""
    _, beside = worlds
    spec = tmp_path / "his.yaml"
    spec.write_text(HIS)
    group, walked, refused = get_command(commands), [], []
    with served(beside.app) as url:
        environment = named(url) | {"METRICSWEEP_TOKEN": beside.tokens["ada"]}
        for name, _, _ in COMMANDS:
            parameters = group.get_command(None, name).params  # type: ignore[attr-defined]
            options = {one for parameter in parameters for one in parameter.opts}
            words = [one for one in parameters if one.param_type_name == "argument"]
            if "--url" not in options or not words or words[0].name not in SWEEPS:
                continue
            more = {
                "extend": [str(spec)], "priority": ["3"], "note": ["theirs"], "tag": ["theirs"], "delete": ["--yes"],
                "compare": ["1"], "diff": ["1"],
            }  # fmt: skip
            answer = CliRunner().invoke(
                commands, [name, "2/0" if name == "model" else "2", *more.get(name, [])], env=environment
            )
            assert SECRET not in answer.output.replace(str(spec), ""), name
            assert answer.exit_code != 0, (name, answer.output)
            walked.append(name)
            refused += [name] if "no sweep 2" in answer.output else []
        listed = CliRunner().invoke(commands, ["list", "--json"], env=environment)
    assert [one["id"] for one in json.loads(listed.stdout)] == [1]
    assert refused == walked
    assert len(walked) > 20


def test_what_a_spec_would_reuse_is_of_its_project(worlds: tuple[World, World]) -> None:
    """To an administrator and a member of several projects a dry run counts what a submission there would reuse."""
    _, beside = worlds
    people = beside.service.people
    people.join("ada", "bens", Role.MEMBER)
    people.add_user("root", Role.ADMIN, None)
    beside.tokens["root"] = people.tokens.add("root", "test", Scope.ADMIN, 1).token
    counted: dict[tuple[str, str], Any] = {}
    for user, project in (("ada", "adas"), ("ada", "bens"), ("root", "main"), ("root", "bens")):
        given = {"dry_run": "true", "project": project}
        answer = beside.client(user).post("/v1/sweeps", params=given, content=HIS, headers=YAML)
        counted[user, project] = answer.json()["cached"]
    assert counted == {("ada", "adas"): 0, ("ada", "bens"): 3, ("root", "main"): 0, ("root", "bens"): 3}


ATTACKERS: Final = {
    "viewer": ("vic", Scope.ADMIN), "outsider": ("ada", Scope.ADMIN), "reader": ("ben", Scope.READ),
    "notebook": ("ben", Scope.MLFLOW), "scraper": ("ben", Scope.METRICS),
}  # fmt: skip
"""Whose token, and for what: the sweep that they attack is ben's, of a closed project in which vic may look."""
KEPT: Final = ("sweep", "trial", "training", "request", "note", "tag", "resolution", "quota", "project", "account",
               "membership", "installation", "collected", "share")  # fmt: skip
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


@pytest.fixture(params=[*ATTACKERS, "visitor"])
def attacker(request: pytest.FixtureRequest, world: World) -> Iterator[TestClient]:
    """A program that holds the token, or a browser that opened a share link of the attacked sweep."""
    if request.param != "visitor":
        yield world.client(request.param)
        return
    browser = TestClient(world.app, base_url=URL, follow_redirects=False)
    link = world.client("ben").post("/v1/sweeps/2/shares", json={"days": 1}).json()
    assert browser.get(link["path"]).headers["location"] == "/sweeps/2"
    yield browser
    world.client("ben").delete(f"/v1/sweeps/2/shares/{link['id']}")


def state(world: World) -> dict[str, list[str]]:
    """All rows and their listings, except tokens, which all users may make for themselves."""
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
    text = attacker.headers.get("authorization", "").removeprefix("Bearer ")
    before = state(world)
    if browser.post("/login", data={"token": text}).status_code == 303:
        for verb in ("pause", "retry", "cancel", "delete", "annotation"):
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
                result = CliRunner().invoke(commands, words, env=environment)
                assert result.exit_code != 0, (name, words, result.output)
            result = CliRunner().invoke(commands, ["list", "--json"], env=environment)
            seen = [one["id"] for one in json.loads(result.stdout)] if result.exit_code == 0 else []
            assert {"viewer": [3, 2], "reader": [3, 2], "outsider": [1]}.get(name, []) == seen
    assert state(world) == before


def test_a_hostile_spec_is_nobody_s_sooner_for_its_sender(world: World, attacker: TestClient) -> None:
    """A user without any project gets this refusal for every body; other users get none about a project of others."""
    bomb = b"a: &a [x, x, x, x, x, x, x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % ((97 + n, 97 + n) + (96 + n,) * 8) for n in range(1, 9)
    )
    for body in (bomb, HIS.encode(), b"\x00", b"{" * 10_000):
        answer = attacker.post("/v1/sweeps", content=body, params={"project": "bens"}, headers=YAML)
        assert answer.status_code in (400, 403, 404, 413, 422), answer.text
        assert "Traceback" not in answer.text
