"""`users`, `projects`, `tokens` and `audit` on the machine of the home, and what they open over HTTP."""

import json
from typing import Any

from fastapi.testclient import TestClient
from typer.testing import CliRunner

from api.cli import app as commands
from orchestrator.settings import Settings


def run(settings: Settings, *words: str, code: int = 0) -> Any:
    told = CliRunner().invoke(commands, [*words, "--home", str(settings.resolved_home)], env={"COLUMNS": "200"})
    assert told.exit_code == code, told.output
    return told


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
        (("users", "quota", "ada", "--days", "30"), "--gpu-hours or --cpu-hours is missing"),
        (("users", "quota", "ada", "--unlimited", "--slots", "1"), "stands alone"),
    ):
        told = CliRunner().invoke(commands, [*words, "--home", str(settings.resolved_home)], env={"COLUMNS": "200"})
        assert told.exit_code in (1, 2), words
        assert sentence in told.output, told.output


def test_what_is_wrong_is_said(settings: Settings, stranger: TestClient) -> None:
    for words, sentence in (
        (("users", "add", "Ada!"), "1 to 64 of a-z"),
        (("users", "add", "ada", "--project", "nowhere"), "no project named 'nowhere'"),
        (("users", "role", "nobody"), "no user named 'nobody'"),
        (("tokens", "add", "nobody"), "no user named 'nobody'"),
        (("tokens", "revoke", "99"), "no token 99"),
        (("tokens", "revoke", "x"), "a token's number"),
        (("users", "add"), "NAME is missing"),
    ):
        told = CliRunner().invoke(commands, [*words, "--home", str(settings.resolved_home)], env={"COLUMNS": "200"})
        assert told.exit_code in (1, 2), words
        assert sentence in told.output, told.output
    assert "no users" in run(settings, "users").stdout
    empty = settings.model_copy(update={"home": settings.home / "elsewhere"})
    assert "there is no database" in run(empty, "users", code=2).output
    assert not list((settings.resolved_home / "elsewhere").glob("*.db"))
