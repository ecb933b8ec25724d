"""Two users of two projects: neither sees nor steers what the other has, by whatever way they ask."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.main import create_app
from orchestrator.service.accounts import People
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Quota, Role, Scope
from tests.api.conftest import BEARER, HTML, URL, opened
from tests.api.listening import listening
from tests.api.played import SPEC, YAML, Conductor
from tests.dashboards.markup import read

SECRET: Final = "secret-of-ben"
ADA_S, BEN_S = 1, 2
"""Numbers of the sweeps."""


class Shared:
    """A service with a sweep of each of two users, both trained to the end."""

    def __init__(self, app: FastAPI, people: People, conductor: Conductor) -> None:
        self.app, self.people, self.conductor = app, people, conductor
        self.tokens: dict[str, str] = {}

    def token(self, user: str, scope: Scope = Scope.WRITE, days: float | None = None) -> tuple[int, str]:
        made = self.people.tokens.add(user, "test", scope, days)
        return made.id, made.token

    def client(self, user: str) -> TestClient:
        """A program of a user."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        return TestClient(self.app, base_url=URL, headers=headers, follow_redirects=False)


@pytest.fixture
def shared(app: FastAPI, service: Service, conductor: Conductor) -> Shared:
    people = People(conductor.store)
    made = Shared(app, people, conductor)
    for user, project in (("ada", "adas"), ("ben", "bens")):
        people.add_project(project, everyone=False)
        people.add_user(user, Role.MEMBER, project)
        made.tokens[user] = made.token(user)[1]
    spec = {"ada": SPEC, "ben": SPEC.replace("four-trials", SECRET).replace("iterations: 20", "iterations: 21")}
    for user in ("ada", "ben"):
        submitted = made.client(user).post("/v1/sweeps", content=spec[user], headers=YAML)
        assert submitted.status_code == 201, submitted.text
        conductor.begin()
        conductor.finish(times=4)
        conductor.settle()
    said = made.client("ben").patch(f"/v1/sweeps/{BEN_S}/annotation", json={"note": SECRET, "tags": [SECRET]})
    assert said.status_code == 200
    assert made.client("ben").post(f"/v1/sweeps/{BEN_S}/retry", params={"only": "all"}).status_code == 202
    return made


def test_quotas_are_one_s_own_and_of_one_s_projects(shared: Shared) -> None:
    shared.people.set_quota("user", "ada", Quota(slots=3))
    shared.people.set_quota("project", "bens", Quota(cpu_hours=1, days=30))
    for user, mine in (("ada", ["ada", "adas", "main"]), ("ben", ["ben", "bens", "main"])):
        client = shared.client(user)
        assert [one["name"] for one in client.get("/v1/quotas").json()] == mine
        page = client.get("/cluster", headers=HTML).text
        assert ("0 of 3 slots" in page) is (user == "ada")
        assert ("of 1 CPU hours of 30 days" in page) is (user == "ben")
    shared.people.set_role("ada", Role.ADMIN)
    everything = TestClient(shared.app, base_url=URL, headers=BEARER).get("/v1/quotas").json()
    assert [one["name"] for one in everything] == ["ada", "ben", "adas", "bens", "main"]
    metrics = TestClient(shared.app, base_url=URL, headers=BEARER).get("/metrics").text
    assert 'metricsweep_quota{project="bens",resource="cpu_hours"} 1.0' in metrics
    assert 'metricsweep_quota_used{project="bens",resource="slots"} 0.0' in metrics
    assert "adas" not in metrics


def test_a_closed_project_s_trainings_are_not_reused_elsewhere(shared: Shared) -> None:
    """Nothing shows, before or after, that another user has trained this."""
    spec = SPEC.replace("four-trials", "same").replace("iterations: 20", "iterations: 21")
    ada = shared.client("ada")
    told = ada.post("/v1/sweeps", params={"dry_run": "true"}, content=spec, headers=YAML).json()
    assert told["cached"] == 0
    number = ada.post("/v1/sweeps", content=spec, headers=YAML).json()["id"]
    shared.conductor.begin()
    counts = ada.get(f"/v1/sweeps/{number}").json()["counts"]
    assert (counts["reused"], counts["waiting"]) == (0, 4)
    shared.conductor.finish()
    assert shared.client("ben").get(f"/v1/sweeps/{BEN_S}").json()["counts"]["finished"] == 4
    again = shared.client("ben").post("/v1/sweeps", content=spec.replace("same", "again"), headers=YAML).json()["id"]
    shared.conductor.begin()
    assert shared.client("ben").get(f"/v1/sweeps/{again}").json()["counts"]["reused"] == 4, "its own it has"


def test_an_open_project_is_seen_by_all_and_steered_by_its_members(shared: Shared) -> None:
    shared.people.open_project("bens", everyone=True)
    ada = shared.client("ada")
    assert ada.get(f"/v1/sweeps/{BEN_S}").json()["project"] == "bens"
    refused = ada.post(f"/v1/sweeps/{BEN_S}/pause")
    assert (refused.status_code, refused.json()["type"]) in {(403, "urn:metricsweep:problem:not-allowed"), (409, "")}
    assert ada.post(f"/v1/sweeps/{BEN_S}/retry").status_code == 403
    assert ada.patch(f"/v1/sweeps/{BEN_S}/annotation", json={"note": "x"}).status_code == 403
    shared.people.join("ada", "bens", Role.MEMBER)
    assert ada.post(f"/v1/sweeps/{BEN_S}/retry").status_code == 202
    assert ada.delete(f"/v1/sweeps/{BEN_S}", params={"confirm": SECRET}).status_code in (403, 409), "it is ben's"


def test_roles_and_scopes(shared: Shared) -> None:
    ada = shared.client("ada")
    for scope, reading, writing, metrics in (
        (Scope.READ, 200, 403, 403), (Scope.METRICS, 403, 403, 200), (Scope.MLFLOW, 403, 403, 403),
    ):  # fmt: skip
        given = {"Authorization": f"Bearer {shared.token('ada', scope)[1]}"}
        assert ada.get("/v1/sweeps", headers=given).status_code == reading
        assert ada.post("/v1/sweeps", content=SPEC, headers=YAML | given).status_code == writing
        assert ada.get("/metrics", headers=given).status_code == metrics
    admin = {"Authorization": f"Bearer {shared.token('ada', Scope.ADMIN)[1]}"}
    assert ada.get("/v1/storage", headers=admin).status_code == 403, "a token opens no more than its user may"
    assert ada.get("/mlflow/", headers=admin).status_code == 403
    shared.people.set_role("ada", Role.ADMIN)
    assert ada.get("/v1/storage", headers=admin).status_code == 200
    assert ada.get("/v1/storage").status_code == 403, "this one is for less"
    assert ada.get(f"/v1/sweeps/{BEN_S}", headers=admin).status_code == 200
    shared.people.set_role("ada", Role.VIEWER)
    assert ada.post("/v1/sweeps", content=SPEC, headers=YAML | admin).status_code == 403
    said = ada.get("/v1/me", headers=admin).json()
    assert (said["name"], said["role"], said["sees"], said["steers"]) == ("ada", "viewer", ["adas", "main"], [])


def test_what_is_revoked_opens_nothing_from_the_next_request_on(shared: Shared) -> None:
    number, text = shared.token("ada")
    _, gone = shared.token("ada", days=0.0)
    client = TestClient(shared.app, base_url=URL, follow_redirects=False)
    assert client.get("/v1/sweeps", headers={"Authorization": f"Bearer {gone}"}).status_code == 401, "it has run out"
    assert client.post("/login", data={"token": text}).status_code == 303
    assert [one["id"] for one in client.get("/v1/sweeps").json()["items"]] == [ADA_S]
    link = client.post("/v1/login-links", headers={"Authorization": f"Bearer {text}"}).json()["path"]
    other = TestClient(shared.app, base_url=URL, follow_redirects=False)
    assert opened(other, link).status_code == 303
    assert [one["id"] for one in other.get("/v1/sweeps").json()["items"]] == [ADA_S], "the link is hers"
    shared.people.tokens.revoke(number)
    for browser in (client, other):
        assert browser.get("/v1/sweeps").status_code == 401
        assert browser.post(f"/sweeps/{ADA_S}/retry", headers=HTML).status_code == 401
    assert client.get("/v1/sweeps", headers={"Authorization": f"Bearer {text}"}).status_code == 401
    shared.people.disable("ben", disabled=True)
    assert shared.client("ben").get("/v1/sweeps").status_code == 401


def test_nobody_is_logged_in_as_somebody_else_by_a_link(shared: Shared) -> None:
    browser = TestClient(shared.app, base_url=URL, follow_redirects=False)
    browser.post("/login", data={"token": shared.tokens["ada"]})
    link = shared.client("ben").post("/v1/login-links").json()["path"]
    page = read(browser.get(link, headers=HTML).text)
    assert browser.get("/v1/me").json()["name"] == "ada", "opening a link changes nothing"
    said = page.text
    assert "Log in as ben (member)?" in said
    assert "logged in as ada (member)" in said
    opened(browser, link)
    assert browser.get("/v1/me").json()["name"] == "ben"


def test_what_was_taken_while_a_request_was_read_is_taken(shared: Shared) -> None:
    """The token is looked at when a request begins; what it writes asks again."""
    number, text = shared.token("ada")
    headers = {"Authorization": f"Bearer {text}", **YAML}

    def slowly() -> Iterator[bytes]:
        yield SPEC.encode()[:20]
        shared.people.tokens.revoke(number)
        yield SPEC.encode()[20:]

    client = TestClient(shared.app, base_url=URL)
    answer = client.post("/v1/sweeps", content=slowly(), headers=headers)
    assert answer.status_code == 403
    assert len(shared.client("ada").get("/v1/sweeps").json()["items"]) == 1


def test_a_stream_tells_what_is_one_s_own_and_ends_with_the_token(url: str, shared: Shared) -> None:
    number, text = shared.token("ada")
    heard: list[dict[str, Any]] = []

    async def listen() -> None:
        given = {"Authorization": f"Bearer {text}"}
        async with (
            httpx.AsyncClient(base_url=url, headers=given, timeout=60) as client,
            client.stream("GET", "/v1/events") as stream,
        ):
            lines = stream.aiter_lines()
            await anext(lines)
            for user, sweep in (("ben", BEN_S), ("ada", ADA_S)):
                asked = await asyncio.to_thread(shared.client(user).patch, f"/v1/sweeps/{sweep}/annotation", json=NOTE)
                assert asked.status_code == 200
            async for line in lines:
                if line.startswith("data: {") and line != "data: {}":
                    heard.append(json.loads(line[6:]))
                    shared.people.tokens.revoke(number)  # and the stream ends by itself

    asyncio.run(asyncio.wait_for(listen(), 60))
    assert {one["sweep"] for one in heard} == {ADA_S}


NOTE: Final = {"note": "heard"}


def test_a_stream_follows_its_user_s_rights_and_tells_of_deletions(url: str, shared: Shared) -> None:
    ada, address = shared.client("ada"), f"/v1/sweeps/{ADA_S}"
    with listening(url, Authorization=f"Bearer {shared.tokens['ada']}") as heard:
        heard.next("hello")
        shared.people.join("ada", "bens", Role.VIEWER)
        for user, sweep in (("ben", BEN_S), ("ada", ADA_S)):
            assert shared.client(user).patch(f"/v1/sweeps/{sweep}/annotation", json=NOTE).status_code == 200
        assert heard.next().data["sweep"] == BEN_S
        assert heard.next().data["sweep"] == ADA_S
        assert ada.delete(address, params={"confirm": "four-trials"}).status_code == 202
        shared.conductor.obey()
        deleted = heard.next("sweep", "reset")
        assert (deleted.type, deleted.data) == ("sweep", {"type": "sweep", "sweep": ADA_S, "url": address})


def test_x_actor_counts_from_a_trusted_proxy_alone(shared: Shared, service: Service, settings: Settings) -> None:
    shared.people.open_project("main", everyone=False)
    server = {"Authorization": "Bearer a-token-of-the-tests", "X-Actor": "ben"}
    plain = TestClient(shared.app, base_url=URL, headers=server)
    assert len(plain.get("/v1/sweeps").json()["items"]) == 2, "whoever holds the server's token is its owner"
    number = plain.post("/v1/sweeps", content=SPEC, headers=YAML).json()["id"]
    assert plain.get(f"/v1/sweeps/{number}").json()["actor"] != "ben", "and nobody else"
    assert shared.client("ada").get("/v1/me", headers={"X-Actor": "ben"}).json()["name"] == "ada"
    trusting = create_app(service, settings.model_copy(update={"trusted_proxies": "10.0.0.0/8"}))
    through = TestClient(trusting, base_url=URL, headers=server, client=("10.1.2.3", 5000))
    assert [one["id"] for one in through.get("/v1/sweeps").json()["items"]] == [BEN_S]
    assert through.get("/v1/sweeps", headers={"X-Actor": "nobody"}).status_code == 403
    assert through.post("/v1/login-links").status_code == 403, "a session would outlive what the proxy says"
    del through.headers["X-Actor"]
    assert through.get("/v1/sweeps").status_code == 403, "a proxy that forgets to say who is nobody"
    elsewhere = TestClient(trusting, base_url=URL, headers=server, client=("11.1.2.3", 5000))
    assert len(elsewhere.get("/v1/sweeps").json()["items"]) == 3


def test_a_key_of_another_s_is_nobody_s_business(shared: Shared) -> None:
    key = {"Idempotency-Key": "once"} | YAML
    first = shared.client("ben").post("/v1/sweeps", content=SPEC, headers=key)
    second = shared.client("ada").post("/v1/sweeps", content=SPEC, headers=key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert shared.client("ada").post("/v1/sweeps", content=SPEC, headers=key).json()["id"] == second.json()["id"]


def test_the_audit_is_for_administrators_and_names_who_did_what(shared: Shared) -> None:
    number, text = shared.token("ben", Scope.ADMIN)
    given = {"Authorization": f"Bearer {text}"}
    ben = shared.client("ben")
    assert ben.get("/v1/audit", headers=given).status_code == 403
    shared.people.set_role("ben", Role.ADMIN)
    TestClient(shared.app, base_url=URL, follow_redirects=False).post("/login", data={"token": text})
    answer = ben.get("/v1/audit", headers=given)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    entries = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["id"] for one in entries] == sorted({one["id"] for one in entries})
    submitted, *_, login = (one for one in entries if one["who"] == "ben")
    assert (submitted["what"], submitted["target"], submitted["detail"]) == ("submit", f"sweep {BEN_S}", SECRET)
    assert submitted["address"] == "testclient"
    assert re.fullmatch("[0-9a-f]{32}", submitted["request"])
    assert (login["what"], login["token"]) == ("login", number)
    assert not any(token in answer.text for token in (text, *shared.tokens.values()))
    assert ben.get("/v1/audit", headers=given, params={"after": entries[-1]["id"]}).text == ""
