"""The demand: what an autoscaling cluster is told of the slots that train and of those that are waited for."""

import json
import time
from collections.abc import Sequence
from typing import Final

from ray.autoscaler.sdk import request_resources

from orchestrator.views.resources import Shape

MOST_BUNDLES: Final = 256
"""More than that is told once these have come."""
AGAIN_SECONDS: Final = 60.0
"""A head that was started anew forgets it, and a conductor that lost its lease withdraws it behind our back."""


class ClusterDemand:
    """Ray's standing request for resources, which its autoscaler counts as pending demand until it is withdrawn."""

    def __init__(self) -> None:
        self._told: str | None = None
        self._at = 0.0

    def tell(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Ask for room for both; the request is for all of it, since what trains takes of the same nodes."""
        bundles = [shape.bundle for shape in (*training, *waiting)][:MOST_BUNDLES]
        bundles.sort(key=lambda bundle: sorted(bundle.items()))
        said = json.dumps(bundles)
        if said != self._told or (bundles and time.monotonic() - self._at > AGAIN_SECONDS):
            request_resources(bundles=bundles)
            self._told, self._at = said, time.monotonic()

    def withdraw(self) -> None:
        """Ask for nothing any more."""
        if self._told not in (None, "[]"):
            request_resources(bundles=[])
        self._told = None
