"""Users, projects, tokens, quotas and the audit over REST, the client, commands and pages: who may do what."""

import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from api.cli import app as commands
from api.client import Client
from api.connection import ApiError
from orchestrator.record import account_admin
from orchestrator.service.accounts import People
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.accounts import Quota, Role, Scope
from tests.api.conftest import HTML, URL, named
from tests.api.played import SPEC, Conductor


@pytest.fixture
def people(service: Service) -> People:
    service.people.add_project("faces", everyone=False)
    service.people.add_user("root", Role.ADMIN, None)
    service.people.add_user("ada", Role.MEMBER, "faces")
    service.people.add_user("vic", Role.VIEWER, "faces")
    return service.people


def bearer(people: People, user: str, scope: Scope = Scope.WRITE) -> dict[str, str]:
    return {"Authorization": f"Bearer {people.tokens.add(user, 'test', scope, 1).token}"}


def test_an_administrator_says_who_there_is(stranger: TestClient, people: People) -> None:
    root = bearer(people, "root", Scope.ADMIN)
    made = stranger.post("/v1/users", json={"name": "eve", "role": "viewer", "project": "faces"}, headers=root)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/users/eve")
    assert made.json()["projects"] == [{"project": "faces", "role": "viewer"}]
    again = stranger.post("/v1/users", json={"name": "eve"}, headers=root)
    assert (again.status_code, again.json()["detail"]) == (
        409,
        "a user named 'eve' exists already; choose another name",
    )
    assert stranger.post("/v1/users", json={"name": "E!", "role": "boss"}, headers=root).status_code == 422
    assert stranger.post("/v1/users", json={"name": "x", "project": "nowhere"}, headers=root).status_code == 404
    assert stranger.get("/v1/users/x", headers=root).status_code == 404, "nothing is half done"
    eve = bearer(people, "eve")
    changed = stranger.patch("/v1/users/eve", json={"role": "member", "disabled": True}, headers=root).json()
    assert changed["role"] == "member"
    assert changed["disabled"]
    assert stranger.get("/v1/me", headers=eve).status_code == 401
    stranger.patch("/v1/users/eve", json={"disabled": False}, headers=root)
    assert stranger.put("/v1/projects/faces/members/eve", json={"role": "member"}, headers=root).status_code == 200
    assert stranger.get("/v1/me", headers=eve).json()["steers"] == ["faces"]
    assert stranger.delete("/v1/projects/faces/members/eve", headers=root).json()["projects"] == []
    assert stranger.delete("/v1/projects/faces/members/eve", headers=root).status_code == 404
    opened = stranger.post("/v1/projects", json={"name": "birds"}, headers=root)
    assert (opened.status_code, opened.json()["open"]) == (201, False)
    assert stranger.patch("/v1/projects/birds", json={"open": True}, headers=root).json()["open"] is True
    assert stranger.get("/v1/projects/faces", headers=root).json()["members"] == ["ada", "vic"]
    entries = [json.loads(line) for line in stranger.get("/v1/audit", headers=root).text.splitlines()]
    assert {one["what"] for one in entries if one["who"] == "root"} >= {
        "user added", "role given", "user disabled", "user enabled", "project joined", "project left", "project added",
        "project opened",
    }  # fmt: skip
    assert all(re.fullmatch("[0-9a-f]{32}", one["request"]) for one in entries if one["who"] == "root")


def test_lists_come_by_pages(stranger: TestClient, people: People) -> None:
    root = bearer(people, "root", Scope.ADMIN)
    for path, names in (("/v1/users", ["root", "ada", "vic"]), ("/v1/projects", ["main", "faces"])):
        seen, url = [], f"{path}?limit=1"
        while url:
            answer = stranger.get(url, headers=root)
            seen += [one["name"] for one in answer.json()["items"]]
            url = answer.links.get("next", {}).get("url", "")
        assert seen == names


@pytest.mark.parametrize(("user", "scope"), [("ada", Scope.ADMIN), ("vic", Scope.WRITE), ("root", Scope.WRITE)])
def test_nobody_else_does(stranger: TestClient, people: People, user: str, scope: Scope) -> None:
    """Neither a member by any token, nor an administrator by one that opens less."""
    given = bearer(people, user, scope)
    for method, path in (
        ("GET", "/v1/users"), ("POST", "/v1/users"), ("GET", "/v1/users/ada"), ("PATCH", "/v1/users/ada"),
        ("GET", "/v1/projects"), ("POST", "/v1/projects"), ("PATCH", "/v1/projects/faces"),
        ("PUT", "/v1/projects/main/members/ada"), ("DELETE", "/v1/projects/faces/members/ada"),
        ("PUT", "/v1/quotas/user/ada"), ("GET", "/people"), ("POST", "/people/users"),
        ("POST", "/people/users/ada/role"),
    ):  # fmt: skip
        body = {"name": "mallory", "role": "admin", "open": True}
        assert stranger.request(method, path, json=body, headers=given).status_code == 403, (method, path)
    assert [one.name for one in people.users()] == ["root", "ada", "vic"]
    tokens = stranger.get("/v1/tokens", headers=given).json()["items"]
    assert {one["user"] for one in tokens} == {user}
    assert stranger.get("/v1/tokens", params={"user": "root"}, headers=given).json()["items"] == (
        tokens if user == "root" else []
    )
    for wanted in ({"user": "root"}, {"scope": "admin"}, {"scope": "metrics"}, {"days": 0}):
        if wanted != {"user": user}:
            assert stranger.post("/v1/tokens", json=wanted, headers=given).status_code == 403, wanted
    others = people.tokens.add("root" if user != "root" else "ada", "theirs", Scope.READ, 1)
    assert stranger.delete(f"/v1/tokens/{others.id}", headers=given).status_code == 404
    assert stranger.get("/v1/me", headers={"Authorization": f"Bearer {others.token}"}).status_code == 200


def test_what_stands_behind_a_path_opens_nothing(stranger: TestClient, people: People) -> None:
    """A regular expression's `$` also matches before a line feed, so that a route answers to more than its path."""
    ada, admin = bearer(people, "ada"), bearer(people, "root", Scope.ADMIN)
    for method, path in (
        ("GET", "/v1/users"), ("GET", "/v1/projects"), ("GET", "/v1/audit"), ("GET", "/v1/storage"),
        ("POST", "/v1/collections"), ("GET", "/metrics"), ("GET", "/people"), ("GET", "/v1/events"),
    ):  # fmt: skip
        assert stranger.request(method, f"{path}%0A", json={}, headers=ada).status_code == 404, path
    for behind in ("%0D", "%00", "%7F", "%C2%85", "%0A"):
        assert stranger.get(f"/v1/users{behind}", headers=admin).status_code == 404, behind


def test_everybody_has_tokens_of_their_own(stranger: TestClient, people: People) -> None:
    """A viewer too; by a token that may only read nobody makes one."""
    for user in ("ada", "vic"):
        given = bearer(people, user)
        made = stranger.post("/v1/tokens", json={"name": "laptop", "scope": "read", "days": 2}, headers=given)
        assert made.status_code == 201
        assert made.headers["cache-control"] == "no-store"
        fresh = {"Authorization": f"Bearer {made.json()['token']}"}
        assert stranger.get("/v1/me", headers=fresh).json()["name"] == user
        assert stranger.post("/v1/tokens", json={}, headers=fresh).status_code == 403
        assert stranger.delete(f"/v1/tokens/{made.json()['id']}", headers=fresh).status_code == 403
        listed = stranger.get("/v1/tokens", headers=given)
        assert made.json()["token"] not in listed.text
        revoked = stranger.delete(made.headers["location"], headers=given)
        assert (revoked.status_code, bool(revoked.json()["revoked"])) == (200, True)
        assert stranger.get("/v1/me", headers=fresh).status_code == 401


def test_the_database_holds_no_token(stranger: TestClient, people: People, settings: Settings) -> None:
    ada = bearer(people, "ada")
    made = stranger.post("/v1/tokens", json={"name": "laptop"}, headers=ada | {"Idempotency-Key": "once"}).json()
    kept = b"".join(file.read_bytes() for file in settings.resolved_home.rglob("*") if file.is_file())
    assert b"laptop" in kept
    for token in (made["token"], ada["Authorization"].removeprefix("Bearer ")):
        assert token.encode() not in kept
        assert token.removeprefix("msw_").encode() not in kept


def test_an_expired_token_opens_nothing(stranger: TestClient, people: People) -> None:
    for scope in (Scope.READ, Scope.WRITE):
        token = people.tokens.add("ada", "short", scope, 1e-9).token  # 86 microseconds
        assert stranger.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_one_key_is_one_token(stranger: TestClient, people: People) -> None:
    ada, vic = bearer(people, "ada"), bearer(people, "vic")
    key = {"Idempotency-Key": "once"}
    first, second = (stranger.post("/v1/tokens", json={"name": "laptop"}, headers=ada | key).json() for _ in range(2))
    assert first == second
    assert stranger.post("/v1/tokens", json={"name": "laptop"}, headers=vic | key).json()["token"] != first["token"]
    assert stranger.post("/v1/tokens", json={"name": "desk"}, headers=ada | key).status_code == 409
    stranger.delete(f"/v1/tokens/{first['id']}", headers=ada)
    assert stranger.post("/v1/tokens", json={"name": "laptop"}, headers=ada | key).status_code == 409


def test_tokens_of_a_user_are_bounded(stranger: TestClient, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_admin, "MOST_TOKENS", 2)
    ada = bearer(people, "ada")
    assert [stranger.post("/v1/tokens", json={}, headers=ada).status_code for _ in range(2)] == [201, 409]


def test_the_client_and_the_commands_ask_the_service(url: str, people: People) -> None:
    token = people.tokens.add("root", "laptop", Scope.ADMIN, 1).token
    with Client(url, token) as client:
        assert client.people.me().name == "root"
        assert client.people.add_user("eve", Role.MEMBER, "main").projects[0].project == "main"
        assert [one.name for one in client.people.users()] == ["root", "ada", "vic", "eve"]
        for slots in (2, 3):
            client.people.set_quota("user", "eve", Quota(slots=slots))
            assert {one.name: one.slots for one in client.people.quotas("user") if one.slots} == {"eve": slots}
        linked = client.people.logins.link("eve", "17", "https://login.example")
        assert linked.login is not None
        assert (linked.login.subject, client.people.logins.unlink("eve").login) == ("17", None)
        made = client.people.tokens.add("eve", "laptop", Scope.WRITE, 3, key="k")
        assert client.people.tokens.revoke(made.id).revoked
        assert [one.what for one in client.people.audit()][-1] == "token revoked"
        with pytest.raises(ApiError, match="there is nothing at"):
            client.people.user("a/b")

    def run(*words: str, by: str) -> str:
        result = CliRunner().invoke(commands, words, env=named(url) | {"METRICSWEEP_TOKEN": by})
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "birds" in run("projects", "add", "birds", by=token)
    assert "birds (viewer)" in run("users", "join", "eve", "--project", "birds", "--role", "viewer", by=token)
    assert "number-17" in run("users", "link", "eve", "--subject", "number-17", "--issuer", "https://x", by=token)
    assert "number-17" not in run("users", "unlink", "eve", by=token)
    mine = run("tokens", "add", "eve", "--name", "desk", by=token).strip()
    hers = run("tokens", "add", "--name", "phone", "--scope", "read", by=mine).strip()
    assert "phone" in run("tokens", by=hers)
    number = next(one.id for one in people.tokens.of("eve") if one.name == "desk")
    assert "desk" in run("tokens", "revoke", str(number), by=mine), "also the one that asks"
    assert '"who":"root"' in run("audit", by=token)


def test_the_audit_is_read_after_what_it_tells_of_is_deleted(url: str, people: People, conductor: Conductor) -> None:
    """By an administrator, over REST and by the command, with who submitted it, what it was called and who deleted."""
    hers, token = (people.tokens.add(user, "x", Scope.ADMIN, 1).token for user in ("ada", "root"))
    with Client(url, hers) as ada:
        number = ada.submit(SPEC.encode(), project="faces").id
        conductor.begin()
        conductor.finish(times=4)
        conductor.settle()
        ada.delete(number, "four-trials")
        conductor.obey()
        with pytest.raises(ApiError, match="it was deleted at"):
            ada.sweep(number)
    with Client(url, token) as root:
        entries = [one for one in root.people.audit() if one.target == f"sweep {number}"]
    assert [(one.who, one.what, one.user is not None) for one in entries] == [
        ("ada", "submit", True), ("ada", "delete", True),
    ]  # fmt: skip
    assert entries[0].detail == "four-trials"
    result = CliRunner().invoke(commands, ["audit"], env=named(url) | {"METRICSWEEP_TOKEN": token})
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one.model_dump(mode="json") for one in entries] == [
        line for line in lines if line["target"] == f"sweep {number}"
    ]
    refused = CliRunner().invoke(commands, ["audit"], env=named(url) | {"METRICSWEEP_TOKEN": hers})
    assert (refused.exit_code, "four-trials" in refused.output) == (2, False)


def test_pages_of_people_and_tokens(app: FastAPI, people: People) -> None:
    root, ada = (TestClient(app, base_url=URL, headers=HTML, follow_redirects=False) for _ in range(2))
    for browser, user in ((root, "root"), (ada, "ada")):
        text = people.tokens.add(user, "login", Scope.ADMIN, 1).token
        assert browser.post("/login", data={"token": text}).status_code == 303
    assert 'href="/people"' in root.get("/").text
    assert 'href="/people"' not in ada.get("/").text
    assert root.post("/people/users", data={"name": "eve", "project": "faces"}).headers["location"] == (
        "/people#user-eve"
    )
    root.post("/people/users/eve/role", data={"role": "viewer"})
    root.post("/people/users/eve/places", data={"project": "faces"})
    root.post("/people/users/eve/places", data={"project": "main", "role": "viewer"})
    root.post("/people/users/eve/disabled", data={"disabled": "true"})
    root.post("/people/projects", data={"name": "birds"})
    root.post("/people/projects/birds/open", data={"everyone": "true"})
    eve = people.user("eve")
    assert (eve.role, [one.project for one in eve.projects], eve.disabled is None) == (Role.VIEWER, ["main"], False)
    assert people.project("birds").open
    page = root.get("/people").text
    assert all(f'id="{one}"' in page for one in ("user-eve", "project-birds"))
    assert "a user named" in root.post("/people/users", data={"name": "eve"}).text

    made = ada.post("/tokens", data={"name": "laptop", "scope": "read", "days": "3"})
    secret = re.search(r"msw_[\w-]{43}", made.text)
    assert made.status_code == 201
    assert secret is not None
    assert secret[0] not in ada.get("/tokens").text
    assert ada.post("/tokens", data={"name": "up", "scope": "admin"}).status_code == 403
    number = next(one.id for one in people.tokens.of("ada") if one.name == "laptop")
    assert "ada" not in root.get("/tokens?user=root").text
    assert ada.post(f"/tokens/{number}/revoke").status_code == 303
    assert 'value="admin"' not in ada.get("/tokens").text
    assert "My tokens" in ada.get("/tokens?user=root").text, "nobody else's"
    foreign = {"Origin": "https://elsewhere.example"}
    assert ada.post("/people/users", data={"name": "x"}, headers=foreign).status_code == 403


def test_a_quota_of_days_alone_says_nothing(http: TestClient, people: People) -> None:
    for given in ({"days": 30}, {"days": 30, "slots": 2}):
        refused = http.put("/v1/quotas/user/ada", json=given)
        assert refused.status_code == 422
        assert "gpu_hours or cpu_hours is missing" in refused.text
    assert http.put("/v1/quotas/user/ada", json={"days": 30, "gpu_hours": 2.0}).status_code == 200
    assert http.put("/v1/quotas/user/ada", json={}).status_code == 200


def run(settings: Settings, *words: str, code: int = 0) -> Result:
    """A command on the machine of the home."""
    told = asked(settings, *words)
    assert told.exit_code == code, told.output
    return told


def asked(settings: Settings, *words: str) -> Result:
    return CliRunner().invoke(commands, [*words, "--home", str(settings.resolved_home)], env={"COLUMNS": "200"})


def test_a_user_is_made_and_ended_by_commands(settings: Settings, stranger: TestClient) -> None:
    run(settings, "projects", "add", "faces")
    assert "faces (member)" in run(settings, "users", "add", "ada", "--project", "faces").stdout
    token = run(settings, "tokens", "add", "ada", "--name", "laptop", "--days", "1").stdout.strip()
    given = {"Authorization": f"Bearer {token}"}
    said = stranger.get("/v1/me", headers=given).json()
    assert (said["name"], said["role"], said["sees"], said["steers"]) == ("ada", "member", ["faces", "main"], ["faces"])
    run(settings, "users", "leave", "ada", "--project", "faces")
    run(settings, "users", "join", "ada", "--project", "main", "--role", "viewer")
    run(settings, "projects", "open", "faces")
    assert stranger.get("/v1/me", headers=given).json()["steers"] == []
    (known,) = json.loads(run(settings, "tokens", "--json").stdout)
    assert (known["user"], known["name"], known["scope"]) == ("ada", "laptop", "write")
    assert token not in run(settings, "tokens").stdout
    run(settings, "tokens", "revoke", str(known["id"]))
    assert stranger.get("/v1/me", headers=given).status_code == 401
    entries = [json.loads(line) for line in run(settings, "audit").stdout.splitlines()]
    assert [one["what"] for one in entries] == [
        "project added", "user added", "project joined", "token added", "project left", "project joined",
        "project opened", "token revoked",
    ]  # fmt: skip
    assert all(one["who"].endswith("on this machine") and one["address"] for one in entries)


def test_quotas_are_set_and_shown(settings: Settings, stranger: TestClient) -> None:
    run(settings, "users", "add", "ada")
    limits = ("--slots", "2", "--gpu-hours", "100", "--days", "30")
    assert "0 of 100" in run(settings, "users", "quota", "ada", *limits).stdout
    run(settings, "projects", "quota", "main", "--cpu-hours", "0.5")
    (shown,) = json.loads(run(settings, "users", "quota", "--json").stdout)
    assert (shown["name"], shown["slots"], shown["gpu_hours"], shown["days"], shown["cpu_hours"]) == (
        "ada", 2, 100, 30, None,
    )  # fmt: skip
    assert "0 of 0.5" in run(settings, "projects", "quota").stdout
    assert "of 100" not in run(settings, "users", "quota", "ada", "--unlimited").stdout
    for words, sentence in (
        (("users", "quota", "nobody", "--slots", "1"), "no user named 'nobody'"),
        (("users", "quota", "--slots", "1"), "NAME is missing"),
        (("users", "quota", "ada", "--slots", "0"), "--slots"),
        (("users", "quota", "ada", "--gpu-hours", "nan"), "--gpu-hours"),
        (("users", "quota", "ada", "--days", "30"), "give --gpu-hours or --cpu-hours"),
        (("users", "quota", "ada", "--unlimited", "--slots", "1"), "do not combine it"),
    ):
        told = asked(settings, *words)
        assert (told.exit_code in (1, 2), sentence in told.output) == (True, True), told.output


def test_errors_are_reported(settings: Settings, stranger: TestClient) -> None:
    for words, sentence in (
        (("users", "add", "Ada!"), "1 to 64 of a-z"),
        (("users", "add", "ada", "--project", "nowhere"), "no project named 'nowhere'"),
        (("users", "role", "nobody"), "no user named 'nobody'"),
        (("tokens", "add", "nobody"), "no user named 'nobody'"),
        (("tokens", "revoke", "99"), "no token 99"),
        (("tokens", "revoke", "x"), "a token's number"),
        (("users", "add"), "NAME is missing"),
    ):
        told = asked(settings, *words)
        assert (told.exit_code in (1, 2), sentence in told.output) == (True, True), told.output
    assert "no users" in run(settings, "users").stderr
    empty = settings.model_copy(update={"home": settings.home / "elsewhere"})
    assert "there is no database" in run(empty, "users", code=2).output
    assert not list((settings.resolved_home / "elsewhere").glob("*.db"))
