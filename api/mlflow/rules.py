"""Which of MLflow's requests pass: tracking, and what its pages read. Everything else does not exist here.

A list of what passes, since MLflow 3.17 has 400 routes and every release adds some: routes that fetch addresses
(webhooks, gateways), run code or commands (the assistant, scorers, jobs), or read where a tag says (traces).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from urllib.parse import unquote

PREFIX: Final = "/mlflow"
"""Where MLflow is on this server."""


class Treatment(Enum):
    """What happens to a request that passes."""

    AS_IS = "forwarded as it is"
    PAGE = "forwarded; the answer is MLflow's page"
    FILE = "forwarded; the answer may be any file and must not act as a page"
    NEW_EXPERIMENT = "forwarded without a place for artifacts"
    RUN_FILES = "forwarded if the run's artifacts are where MLflow keeps them"
    MODEL_FILES = "forwarded if the model's artifacts are where MLflow keeps them"
    QUERY = "forwarded if the GraphQL query reads experiments and runs"
    ANSWERED = "answered here, without MLflow"


@dataclass(frozen=True, slots=True)
class PassRule:
    """Requests of one form."""

    methods: frozenset[str]
    form: re.Pattern[str]
    treatment: Treatment


ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/ajax-api/3.0/mlflow/assistant/config": {"providers": {}, "projects": {}, "remote_access_allowed": False},
    "/ajax-api/3.0/mlflow/assistant/providers": {"providers": [], "resolved": None, "gateway_vendor_options": {}},
    "/ajax-api/2.0/mlflow/gateway-proxy": {"endpoints": []},
    "/ajax-api/3.0/mlflow/ui-telemetry": {
        "disable_ui_telemetry": True,
        "disable_ui_events": [],
        "ui_rollout_percentage": 0,
    },
    "/ajax-api/2.0/mlflow/users/current": {"user": None},
}
"""What MLflow's pages ask for at every start and is switched off: that there is none of it, so that they go on."""

READ_BY_QUERIES: Final = frozenset({"mlflowGetExperiment", "mlflowGetRun", "mlflowSearchRuns"})
"""The GraphQL fields that pass: those of MLflow's pages. `mlflowListArtifacts` would list any folder."""

_GET: Final = frozenset({"GET", "HEAD"})
_POST: Final = frozenset({"POST"})
_ONE: Final = "[^/]+"  # a segment, such as an id
_ANY: Final = ".+"

_READS: Final = (
    "experiments/get", "experiments/get-by-name", "experiments/search", "runs/get", "metrics/get-history",
    "metrics/get-history-bulk", "metrics/get-history-bulk-interval", f"logged-models/{_ONE}",
    # The pages ask whether a run became a registered model. There is none: registering names a source to copy from.
    "model-versions/search", "registered-models/search",
)  # fmt: skip
_CHANGES: Final = (
    "experiments/delete", "experiments/restore", "experiments/update", "experiments/search",
    "experiments/search-datasets", "experiments/set-experiment-tag", "experiments/delete-experiment-tag",
    "runs/create", "runs/delete", "runs/restore", "runs/update", "runs/search", "runs/log-batch", "runs/log-metric",
    "runs/log-parameter", "runs/log-inputs", "runs/log-model", "runs/outputs", "runs/set-tag", "runs/delete-tag",
    "logged-models", "logged-models/search", f"logged-models/{_ONE}/params",
)  # fmt: skip


def _rule(methods: Iterable[str], form: str, treatment: Treatment = Treatment.AS_IS) -> PassRule:
    return PassRule(frozenset(methods), re.compile(form), treatment)


def _tracking(ends: Iterable[str]) -> str:
    return rf"/(?:ajax-)?api/2\.0/mlflow/(?:{'|'.join(ends)})"


_KEPT: Final = r"/(?:ajax-)?api/2\.0/mlflow-artifacts/artifacts"
_RULES: Final = (
    _rule(_GET, "/", Treatment.PAGE),
    _rule(_GET, rf"/static-files/{_ANY}|/health|/version|/(?:ajax-)?api/3\.0/mlflow/server-info"),
    _rule(_GET, "|".join(map(re.escape, ANSWERS)), Treatment.ANSWERED),
    _rule(_POST, _tracking(["experiments/create"]), Treatment.NEW_EXPERIMENT),
    _rule(_GET, _tracking(_READS)),
    _rule(_POST, _tracking(_CHANGES)),
    _rule({"PATCH", "DELETE"}, _tracking([f"logged-models/{_ONE}"])),
    _rule({"PATCH"}, _tracking([f"logged-models/{_ONE}/tags"])),
    _rule({"DELETE"}, _tracking([f"logged-models/{_ONE}/tags/{_ONE}"])),
    _rule(_GET, rf"/get-artifact|{_tracking(['artifacts/list'])}", Treatment.RUN_FILES),
    _rule(_GET, _tracking([rf"logged-models/{_ONE}/artifacts/(?:directories|files)"]), Treatment.MODEL_FILES),
    _rule(_GET, _KEPT),
    _rule({"GET", "HEAD", "PUT"}, f"{_KEPT}/{_ANY}", Treatment.FILE),
    _rule(_POST, "/graphql", Treatment.QUERY),
)


def rule_for(method: str, path: str) -> PassRule | None:
    """The rule under which a request passes; `path` is decoded and begins behind our own prefix."""
    if not is_plain(path):
        return None
    return next((rule for rule in _RULES if method in rule.methods and rule.form.fullmatch(path)), None)


def is_upload(method: str, path: str) -> bool:
    """Whether a request of our own server brings MLflow a file, which may be larger than what else is posted."""
    inside = path.startswith(f"{PREFIX}/") and method == "PUT"
    return inside and rule_for(method, path.removeprefix(PREFIX)) is not None


def is_plain(path: str) -> bool:
    """Whether a path means the same to everybody who reads it, decoded once more or not; deeper nesting is refused."""
    decoded = unquote(path)
    if unquote(decoded) != decoded:
        return False
    path = decoded
    odd = "\\" in path or not path.isprintable() or "�" in path
    return not odd and not {".", ".."} & set(path.split("/")) and "//" not in path


def fields_of(query: str) -> frozenset[str]:
    """The fields of MLflow's that a GraphQL document names; the language has no other way to write a name."""
    return frozenset(re.findall(r"(?a:\bmlflow\w*)", query))
