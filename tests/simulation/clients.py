"""Clients: they submit, pause, extend, cancel, retry and delete at random, and ask again where no answer came."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import yaml

from orchestrator.service.service import Service
from orchestrator.views.errors import ConflictError, MetricsweepError
from tests.simulation.training import DIVERGING, KILLING, WRONG
from tests.simulation.world import World

RATES = [*[[0.01, 0.02], [0.01], [0.03, DIVERGING], [0.02, WRONG]] * 3, [0.01, KILLING]]
RIVALS = [0.03, 0.02, 0.01]
RULES: list[dict[str, Any]] = [
    *({} for _ in range(4)),
    {"search": {"name": "random", "trials": 2, "parallel": 2, "reproduce": 1}},
    {"search": {"name": "brute_force"}},
    {"prune": {"name": "asha", "min_evaluations": 1, "reduction": 2}},
    {"prune": {"name": "median", "startup": 1, "warmup": 0}},
]
"""How a sweep finds its candidates, and ends those that are hopeless; most try all of them to the end."""


def spec(name: str, rates: list[float], seeds: list[int], rule: Mapping[str, Any]) -> bytes:
    """A sweep of one cell, whose trainings others may share."""
    recipe: Mapping[str, Any] = {
        "dataset": "digits", "backbone": "mlp", "loss": "triplet",
        "sampler": {"name": "balanced", "classes": 4, "per_class": 4}, "iterations": 3,
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    }  # fmt: skip
    given = {
        "version": 1, "name": name, "recipe": recipe, "tune": {"optimizer.lr": rates}, "repeat": {"seed": seeds},
        "slot": {"cpus": 1, "gpus": 0}, "tables": {"main": {"rows": ["loss"], "columns": [], "metrics": ["map@r"]}},
    }  # fmt: skip
    return yaml.dump({**given, **rule}, Dumper=_Dumper, sort_keys=False).encode()


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Client:
    """One person with a browser: what is answered is not relied on."""

    def __init__(
        self, world: World, service: Service, name: str, wishes: int, first: tuple[str, bytes] | None = None
    ) -> None:
        self._world, self.service, self.name, self._wishes = world, service, name, wishes
        self.accepted: set[str] = set()
        """The names of sweeps whose creation was confirmed to the client."""
        self.revived: set[int] = set()
        """Sweeps that the client resumed: a cancelled sweep may go on."""
        self.asked = 0
        self.done = False
        self.regrets = 0.0  # the chance that it cancels and deletes a sweep in place of anything else
        self._unanswered = first

    def live(self) -> None:
        """Ask for so many things, one after the other, and end by having everything go on that pauses."""
        while self.asked < self._wishes or self._unanswered:
            self._world.sleep(self._world.drawn.choice([0.5, 1.0, 2.0, 4.0]))
            self.ask()
        self.done = True

    def ask(self) -> None:
        """One thing; what is refused with a reason is no error."""
        drawn, number = self._world.drawn, self.asked
        self.asked += 1
        sweep = drawn.randint(1, 3)
        kinds: list[tuple[str, Callable[[], object]]] = [
            ("submits", lambda: self._submit(number)),
            ("submits", lambda: self._submit(number)),
            ("pauses", lambda: self.service.commands.pause(sweep)),
            ("resumes", lambda: self.service.commands.resume(sweep)),
            ("cancels", lambda: self.service.commands.cancel(sweep)),
            ("retries", lambda: self.service.commands.retry(sweep)),
            ("prefers", lambda: self.service.commands.prioritize(sweep, drawn.randint(-2, 2))),
            ("extends", lambda: self._extend(sweep)),
            ("deletes", lambda: self.service.commands.delete(sweep, self.service.sweeps.get(sweep).name)),
        ]
        kind, act = kinds[0] if number == 0 or self._unanswered else drawn.choice(kinds)
        if number and not self._unanswered and self._world.chance(self.regrets):
            kind, act = "regrets", lambda: self._regret(sweep)
        if kind in ("retries", "extends"):
            self.revived.add(sweep)
        try:
            act()
        except MetricsweepError as error:
            self._world.tell(f"{self.name} {kind} {sweep}: refused, {str(error).splitlines()[0][:80]}")
        else:
            self._world.tell(f"{self.name} {kind} {sweep if kind != 'submits' else ''}")

    def _regret(self, sweep: int) -> None:
        """Cancel a sweep, and delete it while what it trains may not have stopped yet."""
        self.service.commands.cancel(sweep)
        for _ in range(8):
            self._world.sleep(0.5)
            with suppress(ConflictError):  # it has not ended yet
                self.service.commands.delete(sweep, self.service.sweeps.get(sweep).name)
                return

    def _submit(self, number: int) -> None:
        drawn = self._world.drawn
        if self._unanswered is None:
            name = f"{self.name}-{number}"
            seeds, rule = list(range(drawn.randint(1, 2))), drawn.choice(RULES)
            rates = RIVALS if "prune" in rule else drawn.choice(RATES)
            self._unanswered = name, spec(name, rates, seeds, rule)
        name, body = self._unanswered
        self.service.submissions.submit(body, name, self.name)
        self.accepted.add(name)
        self._unanswered = None

    def _extend(self, sweep: int) -> None:
        given = yaml.safe_load(self.service.sweeps.get(sweep).text)
        given["repeat"]["seed"] = list(range(3))
        self.service.commands.extend(sweep, yaml.dump(given, Dumper=_Dumper, sort_keys=False).encode())
