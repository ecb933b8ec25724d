"""The engine `ray_tune`: detached slot actors train, and Ray Tune's trials show what they report."""

import os
import re
from importlib.metadata import version

from orchestrator.views.errors import MetricsweepError

# Read when Ray is imported. Without it a call after the shutdown, such as the clean-up of a Tuner in its thread, would
# connect to another cluster of this machine, or start one.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")

TOKENS_SINCE = (2, 52)  # the first release of Ray that supports RAY_AUTH_MODE=token


def require_tokens() -> None:
    """Raise MetricsweepError if the installed Ray has no token authentication."""
    installed = version("ray")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < TOKENS_SINCE:
        raise MetricsweepError(
            f"Ray {installed} has no token authentication: anyone who reaches its port could run code on its nodes. "
            "Install ray[tune]>=2.56,<3."
        )
