"""Which requests ask for more than to be somebody: what changes, what concerns all projects, and MLflow.

Whose sweeps a request sees and steers is decided below, where rows are read and written (orchestrator/record).
"""

import re
from typing import Final

from api.protection.guards import SAFE_METHODS
from orchestrator.views.callers import Caller, Scope

METRICS_PATH: Final = "/metrics"
OWN: Final = frozenset({"/login", "/logout", "/v1/login-links", "/submit/check"})
"""What concerns nobody but who asks, and changes nothing of anybody's."""
TOKENS: Final = re.compile(r"(/v1)?/tokens(/.*)?")
"""Everybody's own, viewers' too: what ends or makes one asks for a token that may write."""
FOR_ADMINS: Final = re.compile(
    r"/v1/(storage|collections|audit)|/sweeps/[^/]*/storage|/v1/quotas/.*|(/v1/(users|projects)|/people)(/.*)?"
)
"""What tells of all projects: the audit, who there is, and what lists or removes files, which they share."""


def refusal(method: str, path: str, who: Caller, mlflow: str) -> str | None:
    """Why a caller may not ask this, in words; none: it may. `mlflow`: below which path MLflow is."""
    if who.user is None:
        return None
    in_mlflow = path == mlflow or path.startswith(f"{mlflow}/")
    if path == METRICS_PATH:
        allowed, said = who.administers or who.scope is Scope.METRICS, "what is measured is for administrators"
    elif who.scope is Scope.METRICS:
        allowed, said = False, f"your token opens {METRICS_PATH} and nothing else"
    elif in_mlflow:
        allowed, said = who.opens_mlflow, "MLflow knows no projects: it is for members of all of them"
    elif who.scope is Scope.MLFLOW:
        allowed, said = False, "your token opens MLflow and nothing else"
    elif TOKENS.fullmatch(path):
        allowed = method in SAFE_METHODS or who.scope in (Scope.WRITE, Scope.ADMIN)
        said = "a token that may only read makes and ends no tokens"
    elif FOR_ADMINS.fullmatch(path):
        allowed, said = who.administers, "what concerns all projects is for administrators"
    else:
        allowed = method in SAFE_METHODS or path in OWN or who.steers
        said = "you may look, and change nothing: that takes a member, and a token that may write"
    return None if allowed else said
