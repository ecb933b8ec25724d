"""Two services that are the same but for what ben did in a closed project of one of them, and how ada asks both."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx
import pyarrow.ipc
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.main import create_app
from orchestrator.host.identity import digest
from orchestrator.record.changes import queue_delivery_blocked
from orchestrator.record.schema import past_attempt
from orchestrator.record.store import Store
from orchestrator.record.trial_rows import write_needs
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Caller, Quota, Role, Scope
from orchestrator.views.evidence import ResolutionBudget
from orchestrator.views.operations import Inspected
from tests.api.conftest import URL
from tests.api.played import SPEC, YAML, Conductor
from workers.catalog import Finding, Need
from workers.contract import Part

SECRET: Final = "secret-of-ben"
HIS: Final = (
    SPEC.replace("four-trials", SECRET).replace("iterations: 20", "iterations: 21") + "tune: {optimizer.lr: [0.0125]}\n"
)
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
    "status": "not run", "sample": "10", "files": "false", "link": "1",
}  # fmt: skip
"""Values of parameters by name; one that is not here is left out of queries, and must not stand in a path."""

MOVING: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|just now"
    r"|datetime\.datetime\([^)]*\)|Timestamp\([^)]*\)|\d+ (s|min|h|d) ago|less than a second|\d+(\.\d+)? (ms|s)\b"
    r"|\b1\d{9}\.\d+|[0-9a-f]{64}|[0-9a-f]{32}|msw_[\w-]+|code=[\w-]+"
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
        self.conductor, self.tokens = Conductor(self.store), dict[str, str]()
        self.service.people.add_project("nobodys", everyone=False)  # so that MLflow is shut to ada in either
        self._add("ada", "adas")
        self._play("ada", SPEC, 4)
        if ben:
            self._add("ben", "bens")
            self._play("ben", HIS, 3)
            self._leave_more()

    def caller(self, user: str) -> Caller:
        """The caller that the user's token names."""
        found = self.service.store.accounts.by_hash(digest(self.tokens[user]))
        assert found is not None
        return found

    def client(self, user: str, **headers: str) -> TestClient:
        given = {"Authorization": f"Bearer {self.tokens[user]}", **headers}
        return TestClient(self.app, base_url=URL, headers=given, follow_redirects=False)

    def close(self) -> None:
        self.store.close()
        self.service.close()

    def _add(self, user: str, project: str) -> None:
        people = self.service.people
        people.add_project(project, everyone=False)
        people.add_user(user, Role.MEMBER, project)
        self.tokens[user] = people.tokens.add(user, "test", Scope.WRITE, 1).token

    def _leave_more(self) -> None:
        """Have ben leave something in every table of which somebody sees rows."""
        people, client, writer = self.service.people, self.client("ben"), self.conductor.writer
        people.tokens.add("ben", SECRET, Scope.READ, 1)
        people.set_quota("project", "bens", Quota(slots=3))
        said = {"note": SECRET, "tags": [SECRET]}
        assert client.patch("/v1/sweeps/2/annotation", json=said).status_code == 200
        assert client.post("/v1/sweeps/2/shares", json={"days": 1}).status_code == 201
        assert client.post("/v1/sweeps/2/pause").status_code == 202
        assert client.post("/v1/sweeps", content=HIS.replace(SECRET, f"{SECRET}-2"), headers=YAML).is_success
        budget = ResolutionBudget(seeds=1)
        writer.resolutions.begin(2, 3, "main", budget, SECRET)
        need = Need(dataset=Part(name="cub200"))
        now = datetime.now(UTC)
        with self.store.database.writing() as connection:
            write_needs(connection, [need], sweep=2)
            queue_delivery_blocked(connection, 2, SECRET)
            gone = {"owner_id": 2, "project_id": 4, "cpus": 1.0, "gpus": 0.0, "begun": now, "ended": now}
            connection.execute(sa.insert(past_attempt).values(gone))
        missing = Finding(state="missing", message=SECRET)
        writer.data.note_findings([Inspected("lab", "lab", need, missing, now)], ["lab"])

    def _play(self, user: str, spec: str, ended: int) -> None:
        client = self.client(user)
        assert client.post("/v1/sweeps", content=spec, headers=YAML).status_code == 201
        self.conductor.begin()
        for _ in range(ended):
            self.conductor.finish()
        if ended < 4:
            self.conductor.start()
        self.conductor.settle()
        assert client.post(f"/v1/sweeps/{1 if user == 'ada' else 2}/retry", params={"only": "all"}).status_code == 202


@contextmanager
def two_worlds(folder: Path, settings: Settings, migrated: Callable[[Path], Path]) -> Iterator[tuple[World, World]]:
    """A world of ada alone, and one of ada and ben; closed at the end."""
    made = []
    for name, ben in (("alone", False), ("beside", True)):
        its = settings.model_copy(update={"home": folder / name})
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
    return asked_by(world.client("ada"), method, path, given, page=page)


def asked_by(client: TestClient, method: str, path: str, given: dict[str, str], *, page: bool) -> tuple[int, str]:
    """What a route tells a client; a POST has a body of which the route may want something."""
    headers = {"Accept": "text/html"} if page else {}
    if method in ("GET", "DELETE"):
        return told(client.request(method, path, params=given, headers=headers))
    if page and not path.startswith("/submit/check"):
        form = {"spec": HIS, "key": "k", "note": "theirs", "project": "bens", **given}
        return told(client.request(method, path, data=form, headers=headers))
    if path.endswith(("/extend", "/check", "/v1/sweeps")):
        return told(client.request(method, path, params=given, content=HIS, headers=YAML | headers))
    return told(client.request(method, path, params=given, json={"note": "theirs"}, headers=headers))
