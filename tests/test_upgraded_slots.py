"""A release whose numbers are others takes over from a conductor whose slots train, with the real processes."""

import signal
from pathlib import Path

import pytest
import yaml

from orchestrator.views.states import TrialState
from tests.served import UNHURRIED, conductor_of, serving, until

pytestmark = [pytest.mark.ray, pytest.mark.soak]

PART = '''"""A part of two releases."""

import time

from torch import Tensor, nn


class Aged(nn.Module):
    """The mean square, as version {0} has it."""

    label = "Aged"
    version = {0}
    order = "free"

    def __init__(self) -> None:
        super().__init__()

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """A scalar."""
        time.sleep({1})
        return {0} * (embeddings**2).mean()
'''


def test_slots_of_another_release_are_stopped_and_never_used_again(tmp_path: Path) -> None:
    home, part = tmp_path / "home", tmp_path / "parts" / "losses" / "aged.py"
    part.parent.mkdir(parents=True)
    part.write_text(PART.format(1, 0.25))  # slow, so that it is not done before the next release is there
    home.mkdir(mode=0o700)
    recipe = {**UNHURRIED["recipe"], "loss": "aged", "iterations": 400}  # type: ignore[dict-item]
    spec = {**UNHURRIED, "name": "aged", "compare": {"regularizer": ["none"]}, "recipe": recipe}
    with serving(home, METRICSWEEP_PARTS=str(tmp_path / "parts")) as served:
        client, serve = served.client, served.process
        sweep = client.submit(yaml.safe_dump(spec).encode()).id
        until(lambda: [one.step > 0 for one in client.trials(sweep)] == [True, True], "both slots train")
        old = [client.trial(one.id) for one in client.trials(sweep)]
        before, slots = {one.training for one in old}, {attempt.slot for one in old for attempt in one.attempts}
        part.write_text(PART.format(2, 0.0))
        victim = conductor_of(serve)
        assert victim is not None
        victim.send_signal(signal.SIGKILL)
        until(lambda: client.sweep(sweep).ended is not None, "the sweep ended")
        trials = [client.trial(one.id) for one in client.trials(sweep)]
        log = (home / "logs" / "conductor.log").read_text()
        assert {one.state for one in trials} == {TrialState.FINISHED}, log[-3000:]
        assert {one.recipe["pins"]["versions"]["loss"] for one in trials} == {2}
        assert not before & {one.training for one in trials}
        assert {one.training for trial in trials for one in trial.replaced} == before, log[-3000:]
        assert [len(one.attempts) for one in trials] == [1, 1]
        assert all(attempt.resumed_from is None for one in trials for attempt in one.attempts)
        told = [one for one in client.sweep(sweep).requests if one.kind == "renew"]
        assert "loss 'aged' (version 1, now 2)" in (told[0].outcome or "")
        assert not slots & {attempt.slot for one in trials for attempt in one.attempts}, log[-3000:]
