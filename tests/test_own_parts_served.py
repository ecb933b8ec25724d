"""A running `metricsweep serve` takes up own parts that are added or edited, and repeats the trainings they change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.sweeps import SweepView
from tests.served import Served, serving, until

pytestmark = [pytest.mark.ray, pytest.mark.soak]

LOSS = '''"""A loss of our own."""

from torch import nn


class Near(nn.Module):
    """The mean distance of neighbours in the batch."""

    version = 1
    order = "free"

    def forward(self, embeddings, labels):
        """A scalar."""
        return (embeddings[1:] - embeddings[:-1]).square().mean()
'''


def spec(name: str, loss: str, **changes: Any) -> bytes:
    document = {
        "version": 1,
        "name": name,
        "recipe": {
            "dataset": "digits",
            "backbone": {"name": "mlp", "width": 8},
            "embedding": 8,
            "sampler": {"name": "balanced", "classes": 4, "per_class": 4},
            "iterations": 5,
            "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
        },
        "compare": {"loss": [loss]},
        "repeat": {"seed": [0, 1]},
        "slot": {"cpus": 1, "gpus": 0},
    }
    return yaml.safe_dump({**document, **changes}, sort_keys=False).encode()


def trained(served: Served, document: bytes) -> SweepView:
    """Submit a sweep and wait for its end."""
    sweep = served.client.submit(document).id
    until(lambda: served.client.sweep(sweep).state in SWEEP_ENDED, f"sweep {sweep} ends")
    return served.client.sweep(sweep)


def test_a_running_service_trains_edited_and_added_losses(tmp_path: Path, migrated: Callable[[Path], Path]) -> None:
    losses, home = tmp_path / "own" / "losses", tmp_path / "home"
    losses.mkdir(parents=True)
    (losses / "near.py").write_text(LOSS)
    home.mkdir(mode=0o700)
    migrated(home)
    with serving(home, METRICSWEEP_PARTS=str(losses.parent)) as served:
        first = trained(served, spec("first", "near"))
        assert (first.state, first.counts.reused, first.reuse) == ("finished", 0, None)
        same = served.client.preview(spec("second", "near"))
        assert "2 different trainings: 0 to be trained, 2 trained already" in same.said
        second = trained(served, spec("second", "near"))
        assert (second.state, second.counts.reused) == ("finished", 2)
        assert second.reuse is not None
        assert second.reuse.said.startswith("2 of 2 trainings are reused, trained on ")

        (losses / "near.py").write_text(LOSS.replace(".mean()", ".mean() * 0.0"))
        edited = served.client.preview(spec("third", "near"))
        assert "2 different trainings: 2 to be trained, 0 trained already" in edited.said
        third = trained(served, spec("third", "near"))
        assert (third.state, third.counts.reused, third.reuse) == ("finished", 0, None)
        of_sweeps = [served.client.trials(sweep.id) for sweep in (first, second, third)]
        code = [{served.client.trial(trial.id).provenance["code"]["loss"] for trial in trials} for trials in of_sweeps]
        assert code[0] == code[1] != code[2]

        (losses / "later.py").write_text(LOSS.replace("class Near", "class Later"))
        assert served.client.catalog().get("loss", "later") is not None
        for name in ("fourth", "fifth"):
            fresh = trained(served, spec(name, "later", fresh=True))
            assert (fresh.state, fresh.counts.reused) == ("finished", 0)
