"""What one user is told is the same whether or not another has done anything: over every route, page and command.

Two services are the same but for what ben did in his closed project. Whatever ada asks either, of hers or of his
numbers, is answered alike, to the letter: nothing of his is shown, counted, estimated or guessed from a refusal.
A new route is asked by itself: routes are those of the OpenAPI document and of the application.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from typer.main import get_command
from typer.testing import CliRunner

from api.cli import COMMANDS
from api.cli import app as commands
from orchestrator.record import database as database_module
from orchestrator.record.database import Database
from orchestrator.record.schema import metadata
from orchestrator.views.accounts import Role, Scope, calling
from tests.api.conftest import URL, named
from tests.api.played import YAML
from tests.api.two_worlds import (
    CHANGING,
    ENDLESS,
    HIS,
    MOVING,
    NUMBERS,
    SECRET,
    World,
    asked,
    filled,
    operations,
    query,
)
from tests.served_app import served


@contextmanager
def leaking(world: World, *tables: str) -> Iterator[None]:
    """Have the views of some tables show every row, as if nobody had thought of their rules."""
    database = world.service._store.database
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
    with calling(world.caller("ada")), world.service._store.database.reading() as connection:
        found = connection.execute(sa.select(metadata.tables[table])).all()
    return sorted(MOVING.sub("~", str(tuple(row))) for row in found)


def test_ada_reads_the_same_rows_and_a_view_without_its_rule_shows_more(worlds: tuple[World, World]) -> None:
    alone, beside = worlds
    for table in sorted((*database_module._MINE, *database_module.OF_SWEEPS)):
        assert rows(beside, table) == rows(alone, table), table
        with leaking(beside, table):
            assert rows(beside, table) != rows(alone, table), f"ben left nothing in {table}: a leak would not be seen"
        assert rows(beside, table) == rows(alone, table), table


def test_ada_is_told_the_same_whatever_ben_did(worlds: tuple[World, World]) -> None:
    alone, _ = worlds
    walked, differing = 0, {}
    for method, template, names in operations(alone.app):
        page = not template.startswith("/v1")
        for whose, numbers in NUMBERS.items():
            changes = method != "GET" and (whose == "hers" or template in CHANGING)
            path = filled(template, numbers)
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
            assert (answer.status_code, "MLflow knows no projects" in answer.text) == (403, True), path


SWEEPS: Final = ("number", "where", "sweep", "sweeps", "side")
"""How commands call the argument that names a sweep."""


def test_commands_of_another_s_sweep_say_that_there_is_none(worlds: tuple[World, World], tmp_path: Path) -> None:
    """Every command that asks a server for one sweep."""
    _, beside = worlds
    spec = tmp_path / "his.yaml"
    spec.write_text(HIS)
    group, refused = get_command(commands), []
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
            }  # fmt: skip
            answer = CliRunner().invoke(commands, [name, "2", *more.get(name, [])], env=environment)
            assert SECRET not in answer.output.replace(str(spec), ""), name
            assert answer.exit_code != 0, (name, answer.output)
            if "no sweep 2" in answer.output:
                refused.append(name)
        listed = CliRunner().invoke(commands, ["list", "--json"], env=environment)
    assert [one["id"] for one in json.loads(listed.stdout)] == [1]
    said = {"show", "watch", "table", "figure", "cancel", "retry", "pause", "priority", "extend", "delete"}
    assert said <= set(refused)
    assert len(refused) > 15


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
