"""docker-compose.yml, what it builds, locks and asks for, without Docker."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from api.local.processes import MLFLOW_SWITCHES
from orchestrator.__main__ import main
from orchestrator.host.storage import parsed
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from tests.compose_file import COMPOSE, GPU, MONITORING, ROOT, S3, example, load, rendered, variables
from tests.extras import canonical

SERVICES = {"postgres", "mlflow", "ray-head", "ray-worker", "conductor", "conductor-standby", "api"}
GIVEN = {"POSTGRES_PASSWORD": "first", "RAY_AUTH_TOKEN": "second", "METRICSWEEP_TOKEN": "the-third-of-the-secrets"}
STORE = {
    "METRICSWEEP_STORAGE_URL": "s3://bucket/folder?endpoint_override=minio:9000&scheme=http",
    "AWS_ACCESS_KEY_ID": "fourth",
    "AWS_SECRET_ACCESS_KEY": "fifth",
}
WATCHED = {"GRAFANA_PASSWORD": "sixth"}
SETTINGS = {f"METRICSWEEP_{name.upper()}" for name in Settings.model_fields}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = load(COMPOSE, GIVEN)["services"]
    return found


def against_the_specification(*files: Path) -> subprocess.CompletedProcess[str]:
    """What the schema of the Compose specification, as check-jsonschema brings it, says of compose files."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_files_follow_the_specification(tmp_path: Path) -> None:
    done = against_the_specification(COMPOSE, GPU, S3, MONITORING)
    assert (done.returncode, done.stdout) == (0, "ok -- validation done\n"), done.stdout
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(COMPOSE.read_text(encoding="utf-8").replace("healthcheck:", "healthchecks:"), encoding="utf-8")
    done = against_the_specification(wrong)
    assert done.returncode == 1
    assert "'healthchecks' was unexpected" in done.stdout


def test_every_service_is_watched_and_bounded(services: dict[str, Any]) -> None:
    for name, service in services.items():
        environment = service.get("environment") or {}
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}, name
        assert ("RAY_AUTH_TOKEN" in environment) == ("RAY_ROTATION_MAX_BYTES" in environment), name
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert {"interval", "timeout", "retries"} <= set(service["healthcheck"]), name
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert service["restart"] == "unless-stopped", name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        waits = service.get("depends_on", {})
        assert all(wait == {"condition": "service_healthy"} for wait in waits.values()), name
        assert set(waits) <= SERVICES, name
        assert {key for key in environment if key.startswith("METRICSWEEP_")} <= SETTINGS, name
        mounts = [volume.split(":")[-1] for volume in service.get("volumes", [])]
        mounts += [place.split(":")[0] for place in service["tmpfs"]]
        assert {"/tmp", "/var/run/postgresql" if name == "postgres" else "/home/metricsweep"} <= set(mounts), name
        for key in ("METRICSWEEP_HOME", "METRICSWEEP_STORAGE_URL"):
            if (place := environment.get(key)) and (key, name) != ("METRICSWEEP_STORAGE_URL", "ray-head"):
                assert any(Path(place).is_relative_to(mount) for mount in mounts), (name, key)


def test_nothing_has_more_rights_than_it_needs() -> None:
    """Of what Compose makes of all files: no capability, no way to one, nothing written to an image, nobody is root."""
    whole = rendered(GIVEN | STORE | WATCHED, COMPOSE, GPU, S3, MONITORING)["services"]
    for name, service in whole.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["read_only"] is True, name
        assert not {"privileged", "cap_add", "devices", "pid", "ipc", "userns_mode"} & set(service), name
        assert not any("docker.sock" in volume for volume in service.get("volumes", [])), name
        assert service.get("network_mode", "none") == "none", name
    for file in {service["build"]["dockerfile"] for service in whole.values() if "build" in service}:
        assert re.findall(r"^USER (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.M) == ["metricsweep"]
    assert whole["postgres"]["user"] == "70:70"


def test_networks_are_apart() -> None:
    """A pair of containers that share a network reach each other; all others do not."""
    whole = rendered(GIVEN | WATCHED, COMPOSE, MONITORING)
    networks = {name: set(service.get("networks", [])) for name, service in whole["services"].items()}
    assert set.union(*networks.values()) == set(whole["networks"])
    assert whole["networks"]["database"] == {"internal": True}
    assert networks["postgres"] == {"database"}
    assert networks["mlflow"] == set()
    reach = {
        name: {other for other in networks if other != name and networks[name] & networks[other]} for name in networks
    }
    conductors = {"conductor", "conductor-standby"}
    assert reach["postgres"] == conductors | {"api"}
    assert reach["ray-worker"] == conductors | {"ray-head"}, "neither the database nor the API"
    assert reach["api"] == conductors | {"postgres", "prometheus"}
    assert reach["grafana"] == {"prometheus"}


def test_no_secret_has_a_default() -> None:
    for file, given in ((COMPOSE, GIVEN), (S3, STORE), (MONITORING, WATCHED)):
        for missing in given:
            with pytest.raises(KeyError, match=missing):
                load(file, {name: value for name, value in given.items() if name != missing})
            assert example()[missing] == ""
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines(), (
        "the filled example is not committed"
    )


def test_every_variable_stands_in_the_example_with_the_same_default() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in (COMPOSE, GPU, S3, MONITORING))
    assert set(variables(text)) == set(example())
    assert all(kinds in ({"-"}, {"?"}) for kinds in variables(text).values())
    for name, value in example().items():
        assert name in GIVEN | STORE | WATCHED or f"${{{name}:-{value}}}" in text, name


def test_mlflow_is_reached_through_the_api_alone(services: dict[str, Any]) -> None:
    mlflow, api = services["mlflow"], services["api"]
    assert mlflow["network_mode"] == "none"
    assert "ports" not in mlflow
    socket = api["environment"]["METRICSWEEP_MLFLOW_SOCKET"]
    assert f"--uvicorn-opts=--uds {socket} --log-level=warning" in mlflow["command"]
    assert not [word for word in mlflow["command"] if word.startswith(("--host", "--port"))]
    assert socket in mlflow["healthcheck"]["test"][-1]
    volume = f"mlflow-socket:{Path(socket).parent}"
    assert {name for name in services if volume in services[name].get("volumes", [])} == {"mlflow", "api"}
    image = (ROOT / "docker" / "control.Dockerfile").read_text(encoding="utf-8")
    assert f"install -d -m 700 -o metricsweep -g metricsweep {Path(socket).parent}" in image
    assert mlflow["environment"] == MLFLOW_SWITCHES
    for name in ("conductor", "conductor-standby"):
        told = services[name]["environment"]
        assert told["MLFLOW_TRACKING_TOKEN"] == api["environment"]["METRICSWEEP_TOKEN"]
        # Beside those of loopback, the only name that it answers to.
        assert urlsplit(told["METRICSWEEP_MLFLOW_URL"]).hostname == api["hostname"]


def test_dockerfiles(services: dict[str, Any]) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    for file in {service["build"]["dockerfile"] for service in services.values() if "build" in service}:
        text = (ROOT / file).read_text(encoding="utf-8")
        copied = [word for line in re.findall(r"^COPY (.*)$", text, re.M) for word in line.split()[:-1]]
        assert copied
        assert all((ROOT / name).exists() and f"!{name}" in ignored for name in copied)
        assert "USER metricsweep" in text


def ray_knows(words: list[str]) -> bool:
    from ray.scripts.scripts import start

    return known(start, words)


def known(command: Any, words: list[str]) -> bool:
    options = {option for parameter in command.params for option in parameter.opts}
    return {word.split("=")[0] for word in words} <= options


def test_gpus_are_an_override(services: dict[str, Any]) -> None:
    assert "reservations" not in services["ray-worker"]["deploy"]["resources"]
    whole = rendered(GIVEN, COMPOSE, GPU)["services"]
    assert [name for name in whole if "reservations" in whole[name]["deploy"]["resources"]] == ["ray-worker"]
    worker = whole["ray-worker"]
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert worker["command"] == services["ray-worker"]["command"]
    assert not any(word.startswith("--num-gpus") for word in worker["command"])  # Ray counts what the container sees
    # Docker gives the first GPUs to each container that asks for some; a name keeps Compose from scaling.
    assert worker["container_name"]
    assert "container_name" not in services["ray-worker"]


def test_a_worker_holds_the_slots_of_every_preset(services: dict[str, Any]) -> None:
    words = dict(word.split("=", 1) for word in services["ray-worker"]["command"] if "=" in word)
    for file in (ROOT / "sweeps").glob("*.yaml"):
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))
        asked = [spec.get("slot", {}), *(rule.get("slot", rule.get("patch", {})) for rule in spec.get("slots", []))]
        assert all(slot.get("cpus", 1) <= int(words["--num-cpus"]) for slot in asked), file.name
    assert services["ray-worker"]["deploy"]["resources"]["limits"]["cpus"] == "0"  # refused above the machine's own


def test_a_store_is_an_override(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(S3, STORE)["services"]
    assert set(found) == {name for name in services if "storage:/storage" in services[name].get("volumes", [])}
    for service in found.values():
        assert service == {"environment": {**STORE, "AWS_REGION": "us-east-1"}}
    monkeypatch.setenv("METRICSWEEP_STORAGE_URL", STORE["METRICSWEEP_STORAGE_URL"])
    assert Settings().storage == STORE["METRICSWEEP_STORAGE_URL"]
    assert str(parsed(STORE["METRICSWEEP_STORAGE_URL"])) == "s3://bucket/folder"


def test_what_watches_is_an_override(services: dict[str, Any]) -> None:
    whole = rendered(GIVEN | WATCHED, COMPOSE, MONITORING)
    added = {name: whole["services"][name] for name in whole["services"].keys() - services.keys()}
    assert set(added) == {"prometheus", "grafana"}
    for service in added.values():
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        mounts = [volume.split(":") for volume in service["volumes"]]
        for source, *_ in mounts:
            assert (ROOT / source).is_dir() if source.startswith("./") else source in whole["volumes"], source
    assert "ports" not in added["prometheus"], "it asks nobody who they are"
    scrape = yaml.safe_load((ROOT / "dashboards/grafana/prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    (secret,) = added["prometheus"]["secrets"]
    assert scrape["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert whole["secrets"][secret] == {"environment": "METRICSWEEP_TOKEN"}
    host, port = scrape["static_configs"][0]["targets"][0].split(":")
    api = services["api"]
    assert (host, port) == (api["hostname"], api["environment"]["METRICSWEEP_PORT"])
    boards = yaml.safe_load((ROOT / "dashboards/grafana/provisioning/dashboards/metricsweep.yml").read_text())
    (folder,) = [one["options"]["path"] for one in boards["providers"]]
    assert f"./dashboards/grafana/dashboards:{folder}:ro" in added["grafana"]["volumes"]


def test_health_follows_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICSWEEP_DATABASE_URL", f"sqlite:///{tmp_path / 'metricsweep.db'}")
    store = Store.open(f"sqlite:///{tmp_path / 'metricsweep.db'}")
    assert main(["healthy"]) == 1
    fence = store.lease.acquire("here:1", 60)
    assert fence is not None
    assert main(["healthy"]) == 0
    store.writer(fence).lease.release()
    assert main(["healthy"]) == 1
    store.close()


def test_no_database_is_not_healthy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("METRICSWEEP_DATABASE_URL", "postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert main(["healthy"]) == 1
    assert "Traceback" not in capsys.readouterr().err


IMAGES = ("control", "worker")
LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:(?P<hash>[0-9a-f]{64})")


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonical(name): version for name, version in (line.split("==") for line in lines)}


def locked(image: str) -> dict[str, re.Match[str]]:
    lines = (ROOT / "docker" / f"{image}.lock.txt").read_text(encoding="utf-8").splitlines()[1:]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), "a line is not a package with its version and its hash"
    return {match["name"]: match for match in found if match}


def test_every_package_is_of_the_version_that_is_tested() -> None:
    for image in IMAGES:
        known, found = constraints(), locked(image)
        assert {name: one["version"] for name, one in found.items()} == {name: known.get(name) for name in found}
        assert {"mlflow", "opentelemetry-sdk", "ray", "fastapi", "setuptools"} <= set(found)
        assert ("torch" in found) == (image == "worker")


def test_the_image_installs_nothing_else() -> None:
    for image in IMAGES:
        text = (ROOT / "docker" / f"{image}.Dockerfile").read_text(encoding="utf-8")
        assert f"docker/{image}.lock.txt" in text
        installing = re.findall(r"pip install ([^&\n\\]*)", text)
        assert installing[0].split() == ["--require-hashes", "-r", f"{image}.lock.txt"]
        assert all({"--no-deps", "--no-build-isolation", "."} <= set(one.split()) for one in installing[1:])
        assert len(installing) > 1
