"""What Kubernetes and KubeRay take, as JSON Schema; unknown fields are errors, as for `kubectl --validate=strict`."""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

DEFINITIONS: Final = Path(__file__).with_name("kubernetes_schema.json")
_KINDS: Final = {
    ("v1", "Namespace"): "core.v1.Namespace",
    ("v1", "ConfigMap"): "core.v1.ConfigMap",
    ("v1", "PersistentVolumeClaim"): "core.v1.PersistentVolumeClaim",
    ("v1", "Service"): "core.v1.Service",
    ("apps/v1", "Deployment"): "apps.v1.Deployment",
    ("apps/v1", "StatefulSet"): "apps.v1.StatefulSet",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networking.v1.NetworkPolicy",
    ("policy/v1", "PodDisruptionBudget"): "policy.v1.PodDisruptionBudget",
}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_TRUTH: Final = {"type": "boolean"}


def _of_kubernetes(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/io.k8s.api.{name}"}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _closed(required: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": fields}


def _ray_cluster() -> dict[str, Any]:
    """A RayCluster of ray.io/v1, written after the API reference of KubeRay 1.5; its pods are Kubernetes' own."""
    autoscaler = _closed(
        (),
        version={"enum": ["v1", "v2"]}, upscalingMode={"enum": ["Default", "Aggressive", "Conservative"]},
        idleTimeoutSeconds=_COUNT, image=_TEXT, imagePullPolicy=_TEXT,
        resources=_of_kubernetes("core.v1.ResourceRequirements"),
        securityContext=_of_kubernetes("core.v1.SecurityContext"), env=_list(_of_kubernetes("core.v1.EnvVar")),
        envFrom=_list(_of_kubernetes("core.v1.EnvFromSource")),
        volumeMounts=_list(_of_kubernetes("core.v1.VolumeMount")),
    )  # fmt: skip
    group: dict[str, Any] = {
        "template": _of_kubernetes("core.v1.PodTemplateSpec"), "rayStartParams": _TEXTS, "resources": _TEXTS,
        "labels": _TEXTS,
    }  # fmt: skip
    head = _closed(
        ("template",), **group, headService=_of_kubernetes("core.v1.Service"), enableIngress=_TRUTH,
        serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]},
    )  # fmt: skip
    worker = _closed(
        ("groupName", "maxReplicas", "minReplicas", "template"), **group, groupName=_TEXT, replicas=_COUNT,
        minReplicas=_COUNT, maxReplicas=_COUNT, numOfHosts=_COUNT, idleTimeoutSeconds=_COUNT, suspend=_TRUTH,
        scaleStrategy=_closed((), workersToDelete=_list(_TEXT)),
    )  # fmt: skip
    spec = _closed(
        ("headGroupSpec",), headGroupSpec=head, workerGroupSpecs=_list(worker), rayVersion=_TEXT,
        enableInTreeAutoscaling=_TRUTH, autoscalerOptions=autoscaler, headServiceAnnotations=_TEXTS, suspend=_TRUTH,
        managedBy=_TEXT, authOptions=_closed((), mode={"enum": ["disabled", "token"]}),
    )  # fmt: skip
    metadata = {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    named = {"apiVersion": {"const": "ray.io/v1"}, "kind": {"const": "RayCluster"}}
    return _closed(("metadata", "spec"), **named, metadata=metadata, spec=spec)


@functools.cache
def _validator(version: str, kind: str) -> Draft202012Validator:
    document = json.loads(DEFINITIONS.read_text(encoding="utf-8"))
    own = _ray_cluster() if (version, kind) == ("ray.io/v1", "RayCluster") else _of_kubernetes(_KINDS[version, kind])
    return Draft202012Validator({**own, "$defs": document["$defs"]})


def problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a manifest: the path and why."""
    key = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    if key not in _KINDS and key != ("ray.io/v1", "RayCluster"):
        yield f"no kind {key}"
        return
    for error in _validator(*key).iter_errors(manifest):
        yield f"{error.json_path}: {error.message[:200]}"
