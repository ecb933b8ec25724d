"""The engine `ray_tune`: detached slot actors train, the conductor listens to them, and Ray Tune's trials show it."""

import os
import re
from importlib.metadata import version

from orchestrator.views.errors import MetricsweepError

# Ray reads it when it is imported. Without it a call after the shutdown, such as the clean-up of a Tuner in its thread,
# would join any other cluster of this machine, or start one.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")

TOKENS_SINCE = (2, 52)
"""The first release of Ray that refuses requests without the token of RAY_AUTH_MODE=token; older ones ignore it."""


def require_tokens() -> None:
    """Raises MetricsweepError where the installed Ray would serve anybody who reaches its port."""
    installed = version("ray")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < TOKENS_SINCE:
        raise MetricsweepError(
            f"Ray {installed} has no token authentication: anyone who reaches its port could run code on its nodes. "
            "Install ray[tune]>=2.56,<3."
        )
