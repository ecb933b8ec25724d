"""The real MLflow behind our own gate: what a client, a thief and a foreign page get."""

import http.client
import json
import os
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from typer.testing import CliRunner

from api.cli import app
from api.local.processes import Child
from orchestrator.host.identity import ensure_identity, prove
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
from orchestrator.views.sweeps import Links
from tests.mlflow_server import TOKEN, Gate, over_socket, told
from tests.ports import running


@pytest.fixture
def client(gate: Gate) -> Iterator[httpx.Client]:
    with gate.client() as opened:
        yield opened


@pytest.fixture
def behind(gate: Gate) -> Iterator[httpx.Client]:
    with gate.behind() as opened:
        yield opened


CLIENT = """
import mlflow
from mlflow.tracking import MlflowClient
experiment = MlflowClient().create_experiment("from a notebook")
mlflow.set_experiment(experiment_id=experiment)
with mlflow.start_run() as run:
    mlflow.log_param("eta", 0.5)
    for step in range(3):
        mlflow.log_metric("map", step / 10, step=step)
    mlflow.log_text("größer", "tables/größe 50%.txt")
again = MlflowClient().get_run(run.info.run_id)
assert again.data.metrics["map"] == 0.2, again.data.metrics
(found,) = MlflowClient().list_artifacts(run.info.run_id, "tables")
assert found.path == "tables/größe 50%.txt", found.path
assert mlflow.artifacts.load_text(f"{again.info.artifact_uri}/tables/größe 50%.txt") == "größer"
assert len(mlflow.search_runs([experiment], filter_string="params.eta = '0.5'")) == 1
print(run.info.run_id)
"""


def test_a_notebook_logs_a_run_with_its_artifacts(gate: Gate) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    kept |= {"DO_NOT_TRACK": "true", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "no_proxy": "*"}
    kept |= {"MLFLOW_TRACKING_URI": gate.mlflow, "MLFLOW_TRACKING_TOKEN": TOKEN}
    command = [sys.executable, "-c", CLIENT]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_nobody_listens_on_a_port(mlflow: Child) -> None:
    everybody = mlflow.tree()
    assert mlflow.tcp_ports() == []
    for process in everybody:
        assert process.net_connections("inet") == []
    socket = mlflow.spec.socket
    assert socket is not None
    assert str(socket) in {one.laddr for process in everybody for one in process.net_connections("unix")}
    assert socket.parent.stat().st_mode & 0o077 == 0, "the socket itself is open to everybody"


def test_nobody_gets_in_without_a_token(gate: Gate) -> None:
    with httpx.Client(base_url=gate.address, trust_env=False, timeout=60) as stranger:
        for path in ("/mlflow/", "/mlflow/health", "/mlflow/get-artifact?run_id=1&path=x", "/mlflow/version"):
            assert stranger.get(path).status_code == 401, path
            page = stranger.get(path, headers={"Accept": "text/html"})
            assert (page.status_code, page.headers["location"].partition("=")[0]) == (303, "/login?next"), path
        assert stranger.post("/mlflow/api/2.0/mlflow/experiments/search", json={}).status_code == 401


def test_foreign_names_and_pages_are_refused(client: httpx.Client, gate: Gate) -> None:
    search = "/mlflow/ajax-api/2.0/mlflow/experiments/search"
    body = {"max_results": 5}
    assert client.get("/mlflow/", headers={"Host": "evil.example"}).status_code == 421
    with httpx.Client(base_url=gate.address, trust_env=False, timeout=60) as person:
        assert person.post("/login", data={"token": TOKEN}).status_code == 303
        assert person.post(search, json=body, headers={"Origin": "http://evil.example"}).status_code == 403
        assert person.post(search, json=body, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        neighbour = person.base_url.copy_with(port=1)  # another port of this machine: the cookie is sent along
        assert person.post(search, json=body, headers={"Origin": str(neighbour).rstrip("/")}).status_code == 403
        own = {"Origin": str(person.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        assert person.post(search, json=body, headers=own).status_code == 200


def test_a_notebooks_password_opens_mlflow_and_nothing_else(gate: Gate) -> None:
    for sent in ({"headers": {"Authorization": f"Bearer {gate.password}"}}, {"auth": ("anybody", gate.password)}):
        with httpx.Client(base_url=gate.address, trust_env=False, timeout=60, **sent) as client:  # type: ignore[arg-type]
            assert client.get("/mlflow/version").status_code == 200
            assert client.get("/v1/sweeps").status_code == 401
            assert client.get("/").status_code == 401
            assert client.post("/v1/login-links").status_code == 401
    for wrong in ({"Authorization": "Basic !"}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer x"}):
        assert httpx.get(f"{gate.mlflow}/version", headers=wrong, trust_env=False, timeout=60).status_code == 401


def test_a_tracker_tells_its_password_to_its_own_server_alone(gate: Gate, tmp_path: Path) -> None:
    prove(gate.address, gate.identity)
    with pytest.raises(UnavailableError, match="not the server of this home"):
        prove(gate.address, ensure_identity(tmp_path))
    other = socketserver.TCPServer(("127.0.0.1", 0), Silent)
    with running(other), pytest.raises(UnavailableError):
        prove(f"http://127.0.0.1:{other.server_address[1]}/mlflow", gate.identity)


class Silent(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(b"HTTP/1.0 200 OK\r\n\r\n{}")


def test_the_command_prints_what_a_notebook_needs(gate: Gate) -> None:
    arguments = ["mlflow-env", "--home", str(gate.home), "--url", gate.address]
    done = CliRunner().invoke(app, arguments, env={"METRICSWEEP_TOKEN": "", "METRICSWEEP_URL": ""})
    assert done.exit_code == 0, done.output
    assert f"export MLFLOW_TRACKING_URI={gate.mlflow}\nexport MLFLOW_TRACKING_TOKEN={gate.password}\n" in done.output
    assert gate.identity.secret not in done.output
    named = CliRunner().invoke(app, arguments, env={"METRICSWEEP_TOKEN": TOKEN})
    assert f"MLFLOW_TRACKING_TOKEN={TOKEN}" in named.output


def test_what_is_switched_off_does_not_exist(client: httpx.Client) -> None:
    for method, path in [
        ("POST", "/ajax-api/3.0/mlflow/assistant/message"), ("GET", "/ajax-api/2.0/mlflow/webhooks"),
        ("POST", "/ajax-api/2.0/mlflow/gateway-proxy"),
        ("POST", "/ajax-api/2.0/mlflow/upload-artifact?run_uuid=1&path=x"),
        ("POST", "/api/2.0/mlflow/model-versions/create"), ("POST", "/ajax-api/3.0/mlflow/jobs/search"),
        ("POST", "/v1/traces"), ("GET", "/graphql"),
    ]:  # fmt: skip
        answer = client.request(method, f"/mlflow{path}", json={})
        assert (answer.status_code, answer.json()["error_code"]) == (404, "ENDPOINT_NOT_FOUND"), path
        assert "switched off" in answer.json()["message"]
    answer = client.get("/mlflow/ajax-api/3.0/mlflow/assistant/config")
    assert answer.json()["providers"] == {}


# One spelling for each way in which MLflow reads a field of a body.

SPELLINGS: dict[str, bytes] = {
    "plain": b'{"name": "%s", "artifact_location": "file:///tmp"}',
    "camel case": b'{"name": "%s", "artifactLocation": "file:///tmp"}',
    "twice": b'{"name": "%s", "artifact_location": "", "artifact_location": "file:///tmp"}',
    "escaped": b'{"name": "%s", "\\u0061rtifact_location": "file:///tmp"}',
    "a text that holds it": json.dumps('{"name": "%s", "artifact_location": "file:///tmp"}').encode(),
    "in UTF-16": b'{"name": "%s", "artifact_location": "file:///tmp"}',
    "another scheme": b'{"name": "%s", "artifact_location": "s3://bucket/folder"}',
    "upwards": b'{"name": "%s", "artifact_location": "mlflow-artifacts:/../../.."}',
    "empty, then in the other spelling": b'{"name": "%s", "artifact_location": "", "artifactLocation": "file:///tmp"}',
}


def test_an_experiment_may_not_name_a_place_for_artifacts(client: httpx.Client, behind: httpx.Client) -> None:
    for spelling, text in SPELLINGS.items():
        for prefix in ("api", "ajax-api"):
            name = f"elsewhere {uuid4().hex}"
            body = text % name.encode()
            if "UTF-16" in spelling:
                body = body.decode().encode("utf-16")
            path = f"/mlflow/{prefix}/2.0/mlflow/experiments/create"
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 400, spelling
            assert answer.json()["error_code"] in {"INVALID_PARAMETER_VALUE", "BAD_REQUEST"}, spelling
            found = behind.get("/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": name})
            assert found.status_code == 404, spelling


@pytest.fixture
def stolen(behind: httpx.Client, tmp_path: Path) -> dict[str, str]:
    """What an earlier release let anybody make: a run whose folder of artifacts, the thief's own, is a link."""
    secrets, trap = tmp_path / "home", tmp_path / "trap"
    secrets.mkdir()
    trap.mkdir()
    (secrets / "ray.token").write_text("nobody may read this")
    made = told(behind, "experiments/create", name=f"trap {uuid4().hex}", artifact_location=trap.as_uri())
    run = told(behind, "runs/create", experiment_id=made["experiment_id"])["run"]["info"]
    folder = Path(run["artifact_uri"].removeprefix("file://"))
    folder.parent.mkdir(parents=True)
    folder.symlink_to(secrets)
    query = {"run_id": run["run_id"], "path": "ray.token"}
    assert behind.get("/get-artifact", params=query).text == "nobody may read this", "MLflow itself hands it out"
    return query


def test_no_file_of_the_serving_user_is_handed_out(client: httpx.Client, stolen: dict[str, str]) -> None:
    run, path = stolen["run_id"], stolen["path"]
    listing = {"run_id": run}
    for asked, query in [
        ("/get-artifact", stolen),
        ("/get-artifact", {"run_uuid": run, "path": path}),
        ("/api/2.0/mlflow/artifacts/list", listing),
        ("/ajax-api/2.0/mlflow/artifacts/list", {"run_uuid": run}),
    ]:
        answer = client.get(f"/mlflow{asked}", params=query)
        assert answer.status_code == 404, asked
        assert "nobody may read" not in answer.text
        assert "from which it serves nothing" in answer.json()["detail"]
    query = "query Q($i: MlflowListArtifactsInput!) { mlflowListArtifacts(input: $i) { files { path } } }"
    posted = {"query": query, "variables": {"i": {"runId": run}}}
    assert client.post("/mlflow/graphql", json=posted).status_code == 400


def test_two_ids_in_one_query_are_one(client: httpx.Client, stolen: dict[str, str]) -> None:
    made = told(client, "experiments/create", name=f"innocent {uuid4().hex}")
    run = told(client, "runs/create", experiment_id=made["experiment_id"])["run"]["info"]["run_id"]
    for query in (
        [("run_id", run), ("run_id", stolen["run_id"]), ("path", stolen["path"])],
        [("run_id", stolen["run_id"]), ("run_id", run), ("path", stolen["path"])],
        [("run_id", run), ("run_uuid", stolen["run_id"]), ("path", stolen["path"])],
        [("run_id", ""), ("run_uuid", stolen["run_id"]), ("path", stolen["path"])],
    ):
        answer = client.get("/mlflow/get-artifact", params=httpx.QueryParams(query))
        assert answer.status_code >= 400, query
        assert "nobody may read" not in answer.text


def test_a_kept_place_leads_nowhere_else(client: httpx.Client, behind: httpx.Client) -> None:
    for location in ("mlflow-artifacts:/../../..", "mlflow-artifacts:/a/%2e%2e/%2e%2e"):
        made = told(behind, "experiments/create", name=f"up {uuid4().hex}", artifact_location=location)
        run = told(behind, "runs/create", experiment_id=made["experiment_id"])["run"]["info"]["run_id"]
        answer = client.get("/mlflow/api/2.0/mlflow/artifacts/list", params={"run_id": run})
        assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_file_is_kept_and_cannot_act_as_a_page(client: httpx.Client, mlflow: Child) -> None:
    made = told(client, "experiments/create", name=f"files {uuid4().hex}")
    run = told(client, "runs/create", experiment_id=made["experiment_id"])["run"]["info"]
    place = run["artifact_uri"].removeprefix("mlflow-artifacts:/")
    large = os.urandom(3_000_000)  # over what anything else may post
    for path, content in (("page.html", b"<script>alert(1)</script>"), ("deep/large.bin", large)):
        put = client.put(f"/mlflow/api/2.0/mlflow-artifacts/artifacts/{place}/{path}", content=content)
        assert put.status_code == 200, put.text
        got = client.get("/mlflow/get-artifact", params={"run_id": run["run_id"], "path": path})
        assert got.content == content
        assert "sandbox" in got.headers["content-security-policy"]
        assert got.headers["content-disposition"].startswith("attachment")
        assert got.headers["x-content-type-options"] == "nosniff"
    part = {"Range": "bytes=10-19"}
    got = client.get("/mlflow/get-artifact", params={"run_id": run["run_id"], "path": "deep/large.bin"}, headers=part)
    assert (got.status_code, got.content) == (206, large[10:20])
    assert mlflow.spec.socket is not None
    assert (mlflow.spec.socket.parent / "mlartifacts" / place / "deep" / "large.bin").stat().st_size == len(large)
    for path in ("%2e%2e/%2e%2e/x", "..%2f..%2fx", "a%5c..%5cx"):
        put = client.put(f"/mlflow/api/2.0/mlflow-artifacts/artifacts/{place}/{path}", content=b"x")
        assert put.status_code in {400, 404}, path


def test_bodies_are_bounded(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = client.post("/mlflow/api/2.0/mlflow/runs/log-batch", content=b"x" * 1_100_000)
    assert answer.status_code == 413
    monkeypatch.setattr("api.http.middleware.UPLOAD_BYTES", 2_000_000)
    answer = client.put("/mlflow/api/2.0/mlflow-artifacts/artifacts/0/large", content=b"x" * 2_100_000)
    assert answer.status_code == 413


def test_secrets_and_cookies_stay_on_their_side(gate: Gate, tmp_path: Path) -> None:
    socket = tmp_path / "echo.sock"
    heard: list[dict[str, str]] = []

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        heard.append({name.decode(): value.decode() for name, value in scope["headers"]})
        headers = [(b"set-cookie", b"a=b"), (b"access-control-allow-origin", b"*"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"OK"})

    with over_socket(echo, socket), Gate.served(tmp_path / "home", socket) as own, own.client() as client:
        sent = {"Cookie": "a=1", "X-Forwarded-For": "10.0.0.1", "Origin": own.address, "X-MLflow-Workspace": "x"}
        answer = client.get("/mlflow/health", headers=sent)
        assert answer.text == "OK"
        assert not {"set-cookie", "access-control-allow-origin"} & set(answer.headers)
    assert set(heard[0]) <= {"host", "accept", "user-agent", "connection", "accept-encoding"}
    assert heard[0]["host"] == "localhost"
    assert TOKEN not in str(heard)


def test_it_says_so_where_mlflow_is_away(tmp_path: Path) -> None:
    with Gate.served(tmp_path / "home", tmp_path / "nobody.sock") as away, away.client() as client:
        answer = client.post("/mlflow/api/2.0/mlflow/experiments/search", json={"max_results": 1})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json()["detail"].startswith("MLflow does not answer")
        page = client.get("/mlflow/", headers={"Accept": "text/html"})
        assert page.status_code == 503
        assert "MLflow does not answer" in page.text
        assert client.get("/healthz").status_code == 200


def test_it_says_so_where_mlflow_is_elsewhere(tmp_path: Path) -> None:
    with Gate.served(tmp_path, None, mlflow_url="http://mlflow.example:5000") as without, without.client() as client:
        answer = client.get("/mlflow/")
        assert answer.status_code == 404
        assert "it is at http://mlflow.example:5000" in answer.json()["detail"]


def test_links_of_the_pages_lead_to_the_mlflow_that_is_meant(tmp_path: Path) -> None:
    own = Settings(home=tmp_path, mlflow_socket=tmp_path / "s", mlflow_url="http://127.0.0.1:8787/mlflow")
    assert Links(own.mlflow_pages).to("3", "abc") == "/mlflow/#/experiments/3/runs/abc"  # of the host that was typed
    named = Settings(home=tmp_path, mlflow_url="http://mlflow.example:5000")
    assert Links(named.mlflow_pages).to("3") == "http://mlflow.example:5000/#/experiments/3/runs"
    public = own.model_copy(update={"mlflow_public_url": "https://lab.example/mlflow"})
    assert Links(public.mlflow_pages).to("3") == "https://lab.example/mlflow/#/experiments/3/runs"


def test_a_malformed_request_is_refused_and_no_error_of_ours(gate: Gate) -> None:
    search = "/mlflow/api/2.0/mlflow/experiments/search"
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json", "Content-Length": "30"}
    answers: dict[str, int] = {}
    for method, target, headers, body in [
        ("GET", "/mlflow/get-artifact?path=#/../x", {}, b""),
        ("POST", search, chunked, b"5\r\nhello\r\n0\r\n\r\n"),
    ]:
        own = httpx.URL(gate.address)
        connection = http.client.HTTPConnection(own.host, own.port, timeout=60)
        connection.putrequest(method, target)
        for name, value in {"Authorization": f"Bearer {TOKEN}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answers[target] = connection.getresponse().status
        connection.close()
    assert set(answers.values()) == {400}, answers
