"""What one user is told is the same whether or not another has done anything: over every route, page and command.

Two services are the same but for what ben did in his closed project. Whatever ada asks either, of hers or of his
numbers, is answered alike, to the letter: nothing of his is shown, counted, estimated or guessed from a refusal.
A new route is asked by itself: routes are those of the OpenAPI document and of the application.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pyarrow.ipc
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.main import get_command
from typer.testing import CliRunner

from api.cli import app as commands
from api.commands.index import COMMANDS
from api.main import create_app
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.callers import Role, Scope
from orchestrator.views.quotas import Quota
from tests.api.conftest import URL, named
from tests.api.played import SPEC, YAML, Conductor
from tests.served_app import served

SECRET: Final = "secret-of-ben"
HIS: Final = SPEC.replace("four-trials", SECRET).replace("iterations: 20", "iterations: 21")
NUMBERS: Final = {"his": {"sweep": 2, "trial": 5, "request": 2, "token": 3}, "hers": dict.fromkeys(
    ("sweep", "trial", "request", "token"), 1
)}  # fmt: skip

GIVEN: Final = {
    "name": "main", "index": "0", "file": "embeddings.npz", "plot": "scatter", "paper": "SEC", "user": "ben",
    "kind": "loss", "part": "triplet", "nonce": "0" * 32, "preset": "digits", "table": "main", "state": "finished",
    "path": "index.html", "cursor": "Mw", "limit": "2", "offset": "0", "tag": SECRET, "cell": "0", "cells": "0",
    "x": "step", "y": "map@r", "of": "trials", "count": "true", "where": "map@r>0", "sort": "-map@r", "show": "map@r",
    "columns": "map@r", "format": "json", "heat": "state", "numbers": "own", "tuned": "true", "view": "merge",
    "metric": "map@r", "axis": "loss", "by": "candidate", "days": "0", "keep": "0", "dry_run": "true", "hours": "2",
    "seeds": "4", "within": "1", "covers": "seeds", "heading": "true", "prefix": "ms", "only": "all", "value": "3",
    "confirm": SECRET, "project": "bens", "priority": "0", "group": "loss", "next": "/", "code": "x", "trials": "1,5",
    "standing": "not run", "sample": "10", "files": "false",
}  # fmt: skip
"""Values of parameters by name; one that is not here is left out of queries, and must not stand in a path."""

MOVING: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|just now"
    r"|datetime\.datetime\([^)]*\)|Timestamp\([^)]*\)|\d+ s(econds?)? ago|less than a second|\d+(\.\d+)? (ms|s)\b"
    r"|[0-9a-f]{64}|[0-9a-f]{32}|msw_[\w-]+|code=[\w-]+"
    r'|"(heartbeat_seconds|eta\w*|used_[cg]pu_hours|proof|request_id|home)": ?("[^"]*"|[\d.e-]+|null)|data-time="[^"]*"'
)
"""What differs between any two runs: moments, durations, random ids and what is computed of them."""
ENDLESS: Final = re.compile(r"/v1/(sweeps/\d+/)?events$")
CHANGING: Final = frozenset({"/login", "/logout", "/v1/login-links", "/v1/sweeps", "/v1/tokens", "/submit", "/tokens"})
"""What ada may do herself, which would number what comes after it anew: posted elsewhere."""
NUMBERED: Final = re.compile(r"/(sweeps|trials|requests|tokens)/\{id\}")


class World:
    """A service of ada and ben, each with a closed project; with or without anything that ben did."""

    def __init__(self, settings: Settings, *, ben: bool) -> None:
        self.service = Service.open(settings)
        self.store = Store.open(settings.database)
        self.app: FastAPI = create_app(self.service, settings)
        conductor, people = Conductor(self.store), self.service.people
        self.tokens = {}
        for user, project in (("ada", "adas"), ("ben", "bens")):
            people.add_project(project, everyone=False)
            people.add_user(user, Role.MEMBER, project)
            self.tokens[user] = people.tokens.add(user, "test", Scope.WRITE, 1).token
        self._play("ada", SPEC, conductor, 4)
        if ben:
            people.tokens.add("ben", SECRET, Scope.READ, 1)
            people.set_quota("project", "bens", Quota(slots=3))
            self._play("ben", HIS, conductor, 3)
            client = self.client("ben")
            assert client.patch("/v1/sweeps/2/remark", json={"note": SECRET, "tags": [SECRET]}).status_code == 200
            assert client.post("/v1/sweeps/2/pause").status_code == 202
            assert client.post("/v1/sweeps", content=HIS.replace(SECRET, f"{SECRET}-2"), headers=YAML).is_success

    def client(self, user: str, **headers: str) -> TestClient:
        given = {"Authorization": f"Bearer {self.tokens[user]}", **headers}
        return TestClient(self.app, base_url=URL, headers=given, follow_redirects=False)

    def close(self) -> None:
        self.store.close()
        self.service.close()

    def _play(self, user: str, spec: str, conductor: Conductor, ended: int) -> None:
        client = self.client(user)
        assert client.post("/v1/sweeps", content=spec, headers=YAML).status_code == 201
        conductor.begin()
        for _ in range(ended):
            conductor.finish()
        if ended < 4:
            conductor.start()
        conductor.settle()
        assert client.post(f"/v1/sweeps/{1 if user == 'ada' else 2}/retry", params={"only": "all"}).status_code == 202


@pytest.fixture
def worlds(tmp_path: Path, settings: Settings, migrated: Callable[[Path], Path]) -> Iterator[tuple[World, World]]:
    made = []
    for name, ben in (("alone", False), ("beside", True)):
        its = settings.model_copy(update={"home": tmp_path / name})
        migrated(its.resolved_home)
        made.append(World(its, ben=ben))
    yield made[0], made[1]
    for one in made:
        one.close()


def operations(app: FastAPI) -> Iterator[tuple[str, str, list[str]]]:
    """Every method and path with the names of its query: of the OpenAPI document, and pages' with those of the path."""
    described = app.openapi()["paths"]
    for path, item in described.items():
        for method, operation in item.items():
            yield (
                method.upper(), path, [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
            )  # fmt: skip
    routes = [
        one for route in app.routes for one in getattr(getattr(route, "original_router", None), "routes", [route])
    ]
    for route in routes:
        path = getattr(route, "path", "")
        if path and path not in described and not path.startswith(("/static", "/mlflow", "/docs")):
            asked = [one.alias for one in route.dependant.query_params] if hasattr(route, "dependant") else []
            for method in sorted(getattr(route, "methods", None) or ()):
                if method != "HEAD":
                    yield method, path, asked


def filled(path: str, numbers: dict[str, int]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].partition(":")[0]
        if name != "id":
            return GIVEN[name]
        kind = NUMBERED.search(path)
        return str(numbers[kind[1].removesuffix("s")]) if kind else "SEC-T3"

    return re.sub(r"\{([\w:]+)\}", value, path)


def query(names: list[str], numbers: dict[str, int]) -> dict[str, str]:
    sweep = str(numbers["sweep"])
    many = {"sweep": sweep, "sweeps": f"1,{sweep}", "before": "1", "after": sweep, "trial": str(numbers["trial"])}
    return {name: many.get(name, GIVEN.get(name, "")) for name in names if name in many or name in GIVEN}


def told(answer: httpx.Response) -> tuple[int, str]:
    """An answer without what moves; of an archive the names of its files."""
    kind = answer.headers.get("content-type", "")
    if kind == "application/zip":
        return answer.status_code, str(sorted(zipfile.ZipFile(io.BytesIO(answer.content)).namelist()))
    if kind.startswith("application/vnd.apache.arrow"):
        return answer.status_code, MOVING.sub("~", str(pyarrow.ipc.open_stream(answer.content).read_all().to_pylist()))
    return answer.status_code, MOVING.sub("~", answer.text + str(answer.headers.get("location", "")))


def asked(world: World, method: str, path: str, given: dict[str, str], *, page: bool) -> tuple[int, str]:
    client = world.client("ada", **({"Accept": "text/html"} if page else {}))
    if method in ("GET", "DELETE"):
        return told(client.request(method, path, params=given))
    if page and not path.startswith("/submit/check"):
        return told(client.request(method, path, data={"spec": HIS, "key": "k", "note": "theirs", **given}))
    if path.endswith(("/foresight", "/extend", "/check", "/v1/sweeps")):
        return told(client.request(method, path, params=given, content=HIS, headers=YAML))
    return told(client.request(method, path, params=given, json={"note": "theirs"}))


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


@pytest.mark.parametrize("agent", ["Bearer", "Basic"])
def test_mlflow_is_shut_to_who_is_not_in_every_project(worlds: tuple[World, World], agent: str) -> None:
    _, beside = worlds
    client = TestClient(beside.app, base_url=URL)
    for path in (
        "/mlflow/",
        "/mlflow/version",
        "/mlflow/ajax-api/2.0/mlflow/experiments/search",
        "/mlflow/get-artifact",
    ):
        if agent == "Bearer":
            answer = client.get(path, headers={"Authorization": f"Bearer {beside.tokens['ada']}"})
        else:
            answer = client.get(path, auth=("ada", beside.tokens["ada"]))
        assert answer.status_code == 403, path
        assert "MLflow knows no projects" in answer.text


WORDS: Final = {"NAME": "main", "METRIC": "map@r", "TEXT": "theirs", "VALUE": "3", "TABLE": "main"}


def test_commands_of_another_s_sweep_say_that_there_is_none(worlds: tuple[World, World], tmp_path: Path) -> None:
    """Every command that asks a server for one sweep."""
    _, beside = worlds
    spec = tmp_path / "his.yaml"
    spec.write_text(HIS)
    group, refused = get_command(commands), []
    with served(beside.app) as url:
        environment = named(url) | {"METRICSWEEP_TOKEN": beside.tokens["ada"]}
        for name in COMMANDS:
            parameters = group.get_command(None, name).params  # type: ignore[attr-defined]
            options = {one for parameter in parameters for one in parameter.opts}
            words = [one for one in parameters if one.param_type_name == "argument"]
            if (
                "--url" not in options
                or not words
                or words[0].name not in ("number", "where", "sweep", "sweeps", "side")
            ):
                continue
            more = {
                "extend": [str(spec)],
                "priority": ["3"],
                "note": ["theirs"],
                "tag": ["theirs"],
                "delete": ["--yes"],
            }
            answer = CliRunner().invoke(commands, [name, "2", *more.get(name, [])], env=environment)
            assert SECRET not in answer.output.replace(str(spec), ""), name
            assert answer.exit_code != 0, (name, answer.output)
            if "no sweep 2" in answer.output:
                refused.append(name)
        listed = CliRunner().invoke(commands, ["list", "--json"], env=environment)
    assert [one["id"] for one in json.loads(listed.stdout)] == [1]
    assert {"show", "watch", "table", "figure", "cancel", "retry", "pause", "priority", "extend", "delete"} <= set(
        refused
    )
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
