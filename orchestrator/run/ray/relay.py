"""The relay: a Tune trial that follows one attempt on its slot actor and passes its messages on."""

from collections.abc import Mapping
from typing import Any, Final

import ray
from ray.exceptions import ActorUnschedulableError, RayActorError, RuntimeEnvSetupError

from orchestrator.run.message import Message
from orchestrator.run.ray import lean_tune as tune
from orchestrator.run.ray.actor_reuse import relay_bundle

POLL_SECONDS: Final = 5.0
"""How long its slot holds a question while there is nothing to say; what is said is answered at once."""


class Relay(tune.Trainable):  # type: ignore[misc]
    """A Tune trial: no torch, no resources; asks its slot actor for messages, hands them on and reports their metrics.

    `said` in a result are lines of the spool, as the slot gave them. What Tune shows is read off a copy.
    """

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        """Next to nothing, and for each slot something else."""
        return relay_bundle(config)

    def setup(self, config: dict[str, Any]) -> None:
        """Attach to the slot actor that `config` names; the rest of it is for people."""
        self._attempt, self._seen = str(config["attempt"]), int(config["seen"])
        self._slot, self._namespace = str(config["slot"]), str(config["namespace"])
        self._actor: Any = None
        self._shown: dict[str, Any] = {"evaluations": 0}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Serve another attempt in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """The attempt's next messages; a slot actor that died is told too."""
        host = worn = None
        try:
            if self._actor is None:
                self._actor = ray.get_actor(self._slot, namespace=self._namespace)
                host = ray.get(self._actor.describe.remote())["host"]
            lines: list[bytes] = ray.get(self._actor.poll.remote(self._attempt, self._seen, POLL_SECONDS))
            messages = [Message.of(line) for line in lines]
            final = bool(messages) and messages[-1].final
            if final:
                worn = ray.get(self._actor.describe.remote()).get("worn")
        except (ValueError, RayActorError, ActorUnschedulableError, RuntimeEnvSetupError) as error:
            return {**self._shown, "lost": _cause(error), "done": True}
        for message in messages:
            self._seen = message.seq
            self._show(message)
        return {**self._shown, "said": lines, "host": host, "worn": worn, "done": final}

    def _show(self, message: Message) -> None:
        """Take what a message says into what Tune shows."""
        try:
            shown = _shown(message.body)
        except (ValueError, TypeError, AttributeError):  # who is told of it says so
            return
        evaluated = message.kind == "finished" or any(not key.startswith("train/") for key in shown if "/" in key)
        self._shown = {**self._shown, **shown, "evaluations": self._shown["evaluations"] + evaluated}
        if message.final:
            self._shown["outcome"] = shown.get("outcome") or message.kind

    def __repr__(self) -> str:
        return f"relay of {self._slot}" if hasattr(self, "_slot") else "relay"


def _cause(error: Exception) -> str:
    """Ray's sentences about a slot that died, without the lines of the actor's fields: what may have killed it comes
    last."""
    sentences = " ".join(line for line in str(error).splitlines() if not line.startswith("\t"))
    return f"{type(error).__name__}: {' '.join(sentences.split())}"[:500]


def _shown(body: Mapping[str, Any]) -> dict[str, Any]:
    """Step, outcome and metrics. The keys of metrics have a `/`, which those that mean something to Tune have not."""
    known = {key: body[key] for key in ("step", "total", "outcome") if key in body}
    return {**known, **{key: value for key, value in (body.get("metrics") or {}).items() if "/" in key}}
