"""The manifests of docker/kubernetes, without a cluster: by schema, and by the code of Ray that reads them."""

import copy
import functools
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from orchestrator.run.ray.__main__ import main as start_node
from orchestrator.settings import SECRET_VARIABLES
from tests.compose_file import COMPOSE, ROOT, load
from tests.kubernetes_schema import problems
from tests.test_compose import GIVEN, SETTINGS, ray_knows

FOLDER = ROOT / "docker" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
GROUPS = ("cpu", "gpu", "gpu-spot")
SECRET_KEYS = {"ray-token", "postgres-password", "token"}


def manifests() -> list[dict[str, Any]]:
    return copy.deepcopy(_read())


@functools.cache
def _read() -> list[dict[str, Any]]:
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in KUSTOMIZATION["resources"]]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def ray_cluster() -> dict[str, Any]:
    return named("RayCluster", "metricsweep")


def templates() -> dict[str, dict[str, Any]]:
    """The pods by name."""
    pods = {}
    for one in manifests():
        if one["kind"] in ("Deployment", "StatefulSet"):
            pods[one["metadata"]["name"]] = one["spec"]["template"]
    spec = ray_cluster()["spec"]
    pods["head"] = spec["headGroupSpec"]["template"]
    return pods | {group["groupName"]: group["template"] for group in spec["workerGroupSpecs"]}


PODS = ("metricsweep-api", "metricsweep-conductor", "metricsweep-postgres", "head", *GROUPS)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


def test_every_manifest_is_what_kubernetes_and_kuberay_take() -> None:
    assert {one["kind"] for one in manifests()} >= {"RayCluster", "Deployment", "StatefulSet", "NetworkPolicy"}
    for one in manifests():
        assert list(problems(one)) == [], one["metadata"]["name"]
    wrong = ray_cluster()
    wrong["spec"]["workerGroupSpecs"][0]["maxReplica"] = 3
    wrong["spec"]["autoscalerOptions"]["version"] = "v3"
    found = sorted(problem.split(":")[0] for problem in problems(wrong))
    assert found == ["$.spec.autoscalerOptions.version", "$.spec.workerGroupSpecs[0]"]
    there = {path.name for path in FOLDER.glob("*.yaml")}
    assert there == {"kustomization.yaml", *KUSTOMIZATION["resources"], *KUSTOMIZATION["configurations"]}


def test_pods_are_as_restricted_as_their_namespace_demands() -> None:
    """Kubernetes' profile `restricted`, and a root file system that is only read."""
    assert named("Namespace", "metricsweep")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    claims = {one["metadata"]["name"] for one in manifests() if one["kind"] == "PersistentVolumeClaim"}
    assert set(templates()) == set(PODS)
    for name, template in templates().items():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert all(set(volume) <= {"name", "emptyDir", "persistentVolumeClaim"} for volume in spec["volumes"]), name
        containers = spec["containers"] + ([ray_cluster()["spec"]["autoscalerOptions"]] if name == "head" else [])
        for container in containers:
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["readOnlyRootFilesystem"] is True, name
            assert "memory" in container["resources"]["limits"], name
            assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/tmp"}, name
        if name != "head":  # its autoscaler asks Kubernetes for pods
            assert spec["automountServiceAccountToken"] is False, name
        volumes = {volume["name"]: volume.get("persistentVolumeClaim") for volume in spec["volumes"]}
        own = {"postgres"} if name == "metricsweep-postgres" else set()
        for container in spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes) | own, name
        assert {one["claimName"] for one in volumes.values() if one} <= claims, name


def test_no_file_holds_a_secret() -> None:
    assert not [one for one in manifests() if one["kind"] == "Secret"]
    keys = set()
    for name, template in templates().items():
        for container in template["spec"]["containers"]:
            for variable in container.get("env", []):
                secret = variable["name"] in SECRET_VARIABLES or variable["name"].endswith(("TOKEN", "PASSWORD", "KEY"))
                if secret and "DATABASE_URL" not in variable["name"]:
                    found = variable["valueFrom"]["secretKeyRef"]
                    assert found["name"] == "metricsweep", (name, variable)
                    keys.add(found["key"])
    assert keys == SECRET_KEYS
    assert not any("://metricsweep:" in text and "$(POSTGRES_PASSWORD)" not in text for text in strings(manifests()))


def test_settings_exist_and_are_those_of_compose() -> None:
    told = named("ConfigMap", "metricsweep")["data"]
    assert {name for name in told if name.startswith("METRICSWEEP_")} <= SETTINGS
    services = load(COMPOSE, GIVEN)["services"]
    ray = {name: value for name, value in services["ray-worker"]["environment"].items() if name != "RAY_AUTH_TOKEN"}
    for name in ray.keys() - {"METRICSWEEP_TRACES_URL"}:
        assert told[name] == ray[name], name
    for pod, service in (("metricsweep-api", "api"), ("metricsweep-conductor", "conductor")):
        container = templates()[pod]["spec"]["containers"][0]
        own = {variable["name"] for variable in container["env"]}
        assert own | set(told) >= set(services[service]["environment"]) - {
            "METRICSWEEP_TRACES_URL", "METRICSWEEP_WEBHOOK_URL", "METRICSWEEP_WEBHOOK_SECRET",
        }  # fmt: skip
    mlflow = templates()["metricsweep-api"]["spec"]["containers"][1]
    assert {variable["name"]: variable["value"] for variable in mlflow["env"]} == services["mlflow"]["environment"]
    assert mlflow["command"] == services["mlflow"]["command"]


def test_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    conduct = shlex.split(templates()["metricsweep-conductor"]["spec"]["containers"][0]["command"][2])
    assert ray_knows(conduct[2 : conduct.index("&&")])
    assert conduct[conduct.index("&&") + 1 :] == ["exec", "python", "-m", "orchestrator", "conduct"]
    spec = ray_cluster()["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert ray_knows([f"--{name}={value}" for name, value in group["rayStartParams"].items()])
        command = group["template"]["spec"]["containers"][0]["command"]
        assert command[:3] == ["python", "-m", "orchestrator.run.ray"]
    assert start_node(["--grace=75"]) == 1
    assert "no options of `ray start` are given" in capsys.readouterr().err


def test_workers_have_time_to_give_back_what_they_train() -> None:
    for name in GROUPS:
        spec = templates()[name]["spec"]
        (grace,) = [word for word in spec["containers"][0]["command"] if word.startswith("--grace=")]
        assert 0 < float(grace.partition("=")[2]) < spec["terminationGracePeriodSeconds"], name
        assert spec["restartPolicy"] == "Never", name
    assert ray_cluster()["metadata"]["annotations"] == {"ray.io/overwrite-container-cmd": "true"}


def test_policies_name_pods_that_are_there() -> None:
    labels = [template["metadata"]["labels"] for template in templates().values()]
    policies = [one for one in manifests() if one["kind"] == "NetworkPolicy"]
    assert policies[0]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    for policy in policies[1:]:
        wanted = policy["spec"]["podSelector"]["matchLabels"]
        assert any(wanted.items() <= there.items() for there in labels), policy["metadata"]["name"]
    trains = [name for name, one in templates().items() if one["metadata"]["labels"].get("metricsweep/trains")]
    assert trains == list(GROUPS)
    ray = [name for name, one in templates().items() if one["metadata"]["labels"].get("metricsweep/ray")]
    assert ray == ["metricsweep-conductor", "head", *GROUPS]


def test_they_find_one_another() -> None:
    services = {one["metadata"]["name"] for one in manifests() if one["kind"] == "Service"} | {"metricsweep-head-svc"}
    api = templates()["metricsweep-api"]["spec"]
    assert api["hostname"] in services
    probes = [api["containers"][0][f"{name}Probe"]["httpGet"]["path"] for name in ("readiness", "liveness")]
    assert probes == ["/healthz"] * 2, "a service without conductors still has pages, and MLflow for those that come"
    told = {variable["name"]: variable.get("value") for name in ("metricsweep-api", "metricsweep-conductor")
            for variable in templates()[name]["spec"]["containers"][0]["env"]}  # fmt: skip
    hosts = (
        told["METRICSWEEP_RAY_ADDRESS"].partition(":")[0],
        told["METRICSWEEP_MLFLOW_URL"].split("/")[2].partition(":")[0],
        told["METRICSWEEP_DATABASE_URL"].rpartition("@")[2].partition(":")[0],
    )
    assert set(hosts) <= services


def test_rays_autoscaler_reads_from_it_which_nodes_it_may_start() -> None:
    """By Ray's own code, as it runs next to the head; with the installed version of Ray."""
    import ray
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

    cluster = ray_cluster()
    cluster["metadata"]["namespace"] = KUSTOMIZATION["namespace"]
    assert cluster["spec"]["rayVersion"] == ray.__version__
    read = _derive_autoscaling_config_from_ray_cr(cluster)
    kinds = {name: one["resources"] for name, one in read["available_node_types"].items()}
    assert kinds == {
        "headgroup": {"CPU": 0, "GPU": 0, "memory": 2 * 2**30},
        "cpu": {"CPU": 4, "memory": 16 * 2**30},
        "gpu": {"CPU": 4, "GPU": 1, "memory": 32 * 2**30},
        "gpu-spot": {"CPU": 4, "GPU": 1, "memory": 32 * 2**30},
    }
    assert read["idle_timeout_minutes"] == 5
    assert read["max_workers"] == 20
