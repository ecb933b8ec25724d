"""The relay: a Tune trial that follows one attempt on its slot actor and passes its messages on."""

from typing import Any, Final

import ray
from ray import tune
from ray.exceptions import ActorUnschedulableError, RayActorError, RuntimeEnvSetupError

from orchestrator.run.message import Message

POLL_SECONDS: Final = 1.0


class Relay(tune.Trainable):  # type: ignore[misc]
    """A Tune trial: no torch, no resources; asks its slot actor for news and passes them on."""

    def setup(self, config: dict[str, Any]) -> None:
        """Attach to the slot actor that `config` names; nothing but names and a number stands in it."""
        self._attempt, self._seen = str(config["attempt"]), int(config["seen"])
        self._slot, self._namespace = str(config["slot"]), str(config["namespace"])
        self._actor: Any = None

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Serve another attempt in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """The attempt's next messages; a slot actor that died is news too."""
        host = worn = None
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self._slot, namespace=self._namespace)
                host = ray.get(self._actor.describe.remote())["host"]
            lines: list[bytes] = ray.get(self._actor.poll.remote(self._attempt, self._seen, POLL_SECONDS))
            last = Message.of(lines[-1]) if lines else None
            final = last is not None and last.final
            if final:
                worn = ray.get(self._actor.describe.remote()).get("worn")
        except (ValueError, RayActorError, ActorUnschedulableError, RuntimeEnvSetupError) as error:
            return {"said": [], "lost": f"{type(error).__name__}: {error}"[:500], "done": True}
        if last is not None:
            self._seen = last.seq
        return {"said": lines, "lost": None, "host": host, "worn": worn, "done": final}
