"""What the record promises of sweeps, trials and trainings, as an oracle in memory: dictionaries and no database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

Key = tuple[str, int]
"""Of a training: the loss and the seed of its recipe."""
Attempt = tuple[Key, int]
"""An attempt: the training, and its number."""

ACTIVE: Final = ("waiting", "running")
ENDED: Final = ("finished", "failed", "cancelled")
WITHOUT_RESULT: Final = ("failed", "cancelled")


@dataclass
class OracleSweep:
    """A sweep with its trials, in order."""

    keys: list[Key]
    state: str = "running"
    priority: int = 0
    trials: list[str] = field(default_factory=list)


class Oracle:
    """Answers as the store's writers do, one conductor at a time."""

    def __init__(self) -> None:
        self.sweeps: list[OracleSweep] = []
        self.trainings: dict[Key, str] = {}
        self.attempts: dict[Attempt, str] = {}

    def start(self, losses: Sequence[str], seeds: Sequence[int]) -> None:
        """Add a running sweep; what is known is shared, and what ended without a result waits again."""
        sweep = OracleSweep([(loss, seed) for loss in losses for seed in seeds])
        for key in sweep.keys:
            if self.trainings.get(key, "failed") in WITHOUT_RESULT:
                self.trainings[key] = "waiting"
        sweep.trials = [self.trainings[key] for key in sweep.keys]
        self.sweeps.append(sweep)

    def claim(self) -> Attempt | None:
        """Begin the first waiting trial of the running sweep with the highest priority, the oldest among equals."""
        ranked = sorted(range(len(self.sweeps)), key=lambda number: (-self.sweeps[number].priority, number))
        for sweep in (self.sweeps[number] for number in ranked if self.sweeps[number].state == "running"):
            for key, state in zip(sweep.keys, sweep.trials, strict=True):
                if state == "waiting" and self.trainings[key] == "waiting":
                    return self._begin(key)
        return None

    def _begin(self, key: Key) -> Attempt:
        self.trainings[key] = "running"
        self._each(key, ("waiting",), "running")
        made = key, 1 + sum(known == key for known, _ in self.attempts)
        self.attempts[made] = "running"
        return made

    def finish(self, attempt: Attempt) -> None:
        """Its training has a result, and so has every trial that still wants it."""
        if self._end(attempt, "finished"):
            self._move(attempt[0], "finished")

    def fail(self, attempt: Attempt, again: bool) -> None:
        """It ends without a result; `again`: the training waits where anybody wants it."""
        if self._end(attempt, "failed"):
            self._move(attempt[0], self._left(attempt[0]) if again else "failed")

    def stop(self, attempt: Attempt) -> None:
        """It stopped, since nobody seemed to want it."""
        if self._end(attempt, "stopped"):
            self._move(attempt[0], self._left(attempt[0]))

    def needed(self, attempt: Attempt) -> bool:
        """Whether it runs and a trial waits for it."""
        return self.attempts.get(attempt) == "running" and self._left(attempt[0]) == "waiting"

    def cancel(self, number: int, trial: int | None = None) -> None:
        """End a sweep's trials, or one; a training that waits and that nobody wants any more ends with them."""
        sweep = self.sweeps[number]
        which = [at for at, state in enumerate(sweep.trials) if state in ACTIVE and trial in (None, at)]
        for at in which:
            sweep.trials[at] = "cancelled"
        for key in sweep.keys if which else ():
            if self.trainings[key] == "waiting" and self._left(key) == "cancelled":
                self.trainings[key] = "cancelled"
        if trial is None and (sweep.state == "paused" or (sweep.state == "running" and which)):
            sweep.state = "cancelled"

    def retry(self, number: int) -> None:
        """Trials that ended without a result wait again, or follow what their trainings are by now."""
        sweep = self.sweeps[number]
        which = [at for at, state in enumerate(sweep.trials) if state in WITHOUT_RESULT]
        for at in which:
            if self.trainings[sweep.keys[at]] in WITHOUT_RESULT:
                self.trainings[sweep.keys[at]] = "waiting"
        for at in which:
            sweep.trials[at] = self.trainings[sweep.keys[at]]
        if which and sweep.state in ENDED:
            sweep.state = "running"

    def pause(self, number: int) -> None:
        """Nothing of it begins."""
        if self.sweeps[number].state == "running":
            self.sweeps[number].state = "paused"

    def resume(self, number: int) -> None:
        """It goes on."""
        if self.sweeps[number].state == "paused":
            self.sweeps[number].state = "running"

    def prioritize(self, number: int, priority: int) -> None:
        """Its turn comes earlier, or later."""
        self.sweeps[number].priority = priority

    def settle(self) -> None:
        """Running sweeps whose trials have all ended end."""
        for sweep in self.sweeps:
            if sweep.state == "running" and not set(sweep.trials) & set(ACTIVE):
                sweep.state = next((state for state in WITHOUT_RESULT if state in sweep.trials), "finished")

    def take_over(self) -> None:
        """Another conductor goes on; nothing changes."""

    def running(self) -> list[Attempt]:
        """Attempts that a next conductor finds."""
        return [one for one, state in self.attempts.items() if state == "running"]

    def _end(self, attempt: Attempt, state: str) -> bool:
        """False where it had ended before: then nothing more happens."""
        if self.attempts[attempt] != "running":
            return False
        self.attempts[attempt] = state
        return True

    def _left(self, key: Key) -> str:
        needed = any(state in ACTIVE for one, state in self._trials() if one == key)
        return "waiting" if needed else "cancelled"

    def _trials(self) -> list[tuple[Key, str]]:
        return [pair for sweep in self.sweeps for pair in zip(sweep.keys, sweep.trials, strict=True)]

    def _move(self, key: Key, state: str) -> None:
        self.trainings[key] = state
        self._each(key, ACTIVE, state)

    def _each(self, key: Key, states: Sequence[str], new: str) -> None:
        for sweep in self.sweeps:
            sweep.trials = [
                new if one == key and state in states else state
                for one, state in zip(sweep.keys, sweep.trials, strict=True)
            ]
