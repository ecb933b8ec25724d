"""The scheduler of relays: Tune's plain order of trials, and what Tune has no setting for."""

from typing import Any

from orchestrator.run.ray import lean_tune as tune
from orchestrator.run.ray.actor_reuse import ActorReuse
from orchestrator.run.ray.tune_pace import TunePace


class RelayScheduler(tune.FIFOScheduler):  # type: ignore[misc]
    """A scheduler is the only one whom Tune shows its controller."""

    def __init__(self) -> None:
        super().__init__()
        self._reuse, self._pace = ActorReuse(), TunePace()

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """A relay is to begin."""
        super().on_trial_add(tune_controller, trial)
        self._reuse.keep(tune_controller, trial)
        self._pace.stir(tune_controller)

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """A relay ended."""
        super().on_trial_complete(tune_controller, trial, result)
        self._pace.stir(tune_controller)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """A relay's process was lost."""
        super().on_trial_error(tune_controller, trial)
        self._pace.stir(tune_controller)
