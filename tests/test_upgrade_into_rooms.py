"""What the commit before the rooms (59d5504) left, taken on today: every state, half a training, a spool, own parts."""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import torch
from PIL import Image

from orchestrator.run.attempt import resolve
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests import inline_conductor
from workers import catalog as catalogs
from workers import registry
from workers.catalog import complete
from workers.contract import Place, Recipe, Result
from workers.data.images import load
from workers.data.preprocess import SIGNED
from workers.data.splits import splits
from workers.evaluation.evaluate import evaluate
from workers.train import train
from workers.training import checkpoint

LEFT = Path(__file__).parent / "record" / "trained" / "59d5504"
SWEEPS = {
    "finished": "finished", "failed": "failed", "diverged": "finished", "pruned": "finished", "cancelled": "cancelled",
    "half": "running", "held": "running", "paused": "paused", "queued": "queued",
}  # fmt: skip
STEP = 10  # of the checkpoints


@pytest.fixture
def home(settings: Settings) -> Settings:
    """The installation as it was left."""
    with sqlite3.connect(settings.resolved_home / "metricsweep.db") as connection:
        connection.executescript((LEFT / "database.sql").read_text(encoding="utf-8"))
    connection.close()
    shutil.copytree(LEFT / "storage", settings.storage, dirs_exist_ok=True)
    return settings.model_copy(update={"train": "workers.train:train"})


@pytest.fixture
def service(home: Settings) -> Iterator[Service]:
    opened = Service.open(home)
    yield opened
    opened.close()


def numbered(service: Service) -> dict[str, int]:
    return {sweep.name: sweep.id for sweep in service.sweeps.page(None, None, None, 20).items}


def tables(service: Service) -> dict[str, Any]:
    """As the script that left it wrote them down."""
    told: dict[str, Any] = json.loads((LEFT / "tables.json").read_text(encoding="utf-8"))
    ids = numbered(service)
    return {
        name: {form: service.tables.render(ids[name], "main", form).content.decode() for form in forms}
        for name, forms in told.items()
    }


def place(tmp_path: Path, **more: Any) -> Place:
    return Place(tmp_path, tmp_path / "scratch", tmp_path / "out", device="cpu", checkpoint_seconds=1e9, **more)


def test_rows_of_every_state_are_read(service: Service) -> None:
    ids = numbered(service)
    assert {name: service.sweeps.get(number).state.value for name, number in ids.items()} == SWEEPS
    trials = [one for number in ids.values() for one in service.trials.page(number, None, None, None, 100).items]
    assert {one.state.value for one in trials} == {"waiting", "running", "finished", "failed", "cancelled", "pruned"}
    assert any(one.diverged for one in trials)
    assert any(one.reused for one in trials)
    for one in trials:
        whole = service.trials.get(one.id)
        assert whole.outdated == []
        assert (one.state.value not in {"finished", "running"}) or service.trials.log(one.id).text
        assert (one.state.value != "finished") or one.diverged or service.trials.curves(one.id)
    assert {one.kind for number in ids.values() for one in service.commands.requests(number, None, 50).items} == {
        "cancel", "pause"
    }  # fmt: skip
    assert all(service.sweeps.grid(number) for name, number in ids.items() if name != "queued")


def test_recipes_keep_their_fingerprints(service: Service, home: Settings) -> None:
    catalog = catalogs.load()
    engine = sa.create_engine(home.database)
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT recipe, fingerprint FROM training")).all()
    engine.dispose()
    assert len(rows) == 17
    for recipe, fingerprint in rows:
        read = Recipe.model_validate_json(recipe)
        assert read.fingerprint == complete(read, catalog).fingerprint == fingerprint


def test_tables_are_the_same(service: Service) -> None:
    assert tables(service) == json.loads((LEFT / "tables.json").read_text(encoding="utf-8"))


def test_what_was_left_goes_on_to_the_same_bits(service: Service, home: Settings, tmp_path: Path) -> None:
    ids = numbered(service)
    begun = [one for one in service.trials.page(ids["half"], None, None, None, 100).items if one.step]
    assert Counter(one.state.value for one in begun) == {"finished": 2, "running": 1, "waiting": 1}
    half = [one.id for one in begun if one.state.value != "finished"]
    running = next(one for one in begun if one.state.value == "running")
    assert service.trials.get(running.id).attempts[0].slot == "slot-of-59d5504"
    assert running.step < STEP, "the spool holds what nobody has heard"
    inline_conductor.conduct(home)
    assert {name: service.sweeps.get(number).state.value for name, number in ids.items()} == SWEEPS | {
        "half": "finished", "queued": "finished"
    }  # fmt: skip
    for number in half:
        trial = service.trials.get(number)
        assert [one.state for one in trial.attempts] == ["lost", "finished"]
        assert trial.attempts[1].resumed_from == f"{trial.training}/1/last.pt"
        assert f"training from step {STEP} on cpu" in service.trials.log(number).text
        alone = train(Recipe.model_validate(trial.recipe), place(tmp_path / str(number)), lambda _: None)
        assert trial.metrics == alone.metrics
        assert {one.key: one.points for one in service.trials.curves(number)} == {
            key: [tuple(point) for point in points] for key, points in alone.curves.items()
        }


def test_the_kept_weights_are_those_of_the_numbers(service: Service, tmp_path: Path) -> None:
    (kept,) = LEFT.glob("storage/*/1/best.pt")
    state = checkpoint.load(kept)
    recipe = Recipe.model_validate_json(state["recipe"])
    finished = service.trials.page(numbered(service)["finished"], None, None, None, 9).items
    whole = (service.trials.get(one.id) for one in finished)
    trial = next(one for one in whole if one.training == kept.parents[1].name)
    assert (recipe.fingerprint, state["step"]) == (trial.fingerprint, trial.best_step)
    test = splits(recipe, load(recipe.part("dataset"), tmp_path, tmp_path)).test
    channels, side = test.channels, test.side
    asked = {"channels": channels, "side": side, "root": tmp_path, "scratch": tmp_path}
    backbone = registry.build("backbone", recipe.backbone, **asked)
    head = registry.build("head", recipe.head, features=backbone.features, dim=recipe.embedding)
    for name, module in (("backbone", backbone), ("head", head)):
        module.load_state_dict(state["modules"][name])
        module.eval()
    every = test.take(torch.arange(len(test)))
    with torch.inference_mode():
        found = evaluate(head(backbone(SIGNED(every.images))), test.labels, ["recall@1", "map@r"])
    assert found == pytest.approx({name: trial.metrics[f"best/test/{name}"] for name in found}, rel=1e-5)


def test_the_training_functions_name_is_the_same() -> None:
    assert Settings().train == "workers.train:train"
    assert resolve("workers.train:train") is train
    assert Settings().inspection == "workers.data.inspection:inspect"


LOSS = '''
from torch import nn
from workers import geometry
from workers.geometry import unit

class Own(nn.Module):
    """The mean cosine of all pairs."""
    label = "Own"
    order = "free"

    def forward(self, embeddings, labels):
        assert geometry.unit is unit
        return (unit(embeddings) @ unit(embeddings).T).mean()
'''
METRIC = '''
from workers.evaluate import Evaluation

class Length:
    """The mean norm."""
    label = "Length"
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.norms.mean().item()
'''
DATA = '''
from workers import listing
from workers.decoded import Form, Picture
from workers.images import Images
from workers.listing import Listed, Source

class Squares:
    """Pictures of squares."""
    label = "Squares"
    channels = 3
    metrics = ("recall@1", "length")
    manifest = None

    def __init__(self, root, scratch):
        halves = [[Listed(Picture(path), path.parent.name) for path in sorted((root / half).glob("*/*.png"))]
                  for half in ("seen", "unseen")]
        source = Source("squares", Form("square", 8), scratch)
        self.train, self.test, self.content, self.notes = listing.load(source, *halves)
        assert isinstance(self.train, Images)
'''


def test_a_folder_of_own_parts_trains(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for kind, name, source in (("losses", "own", LOSS), ("metrics", "length", METRIC), ("datasets", "squares", DATA)):
        (parts / kind).mkdir(parents=True)
        (parts / kind / f"{name}.py").write_text(source)
    pixels = np.random.default_rng(0)
    for number in range(4):
        folder = tmp_path / ("seen" if number < 2 else "unseen") / f"class{number}"
        folder.mkdir(parents=True)
        for image in range(4):
            Image.fromarray(pixels.integers(0, 255, (8, 8, 3), "uint8")).save(folder / f"{image}.png")
    raw = {
        "dataset": "squares", "backbone": "mlp", "loss": "own", "iterations": 2,
        "sampler": {"name": "balanced", "classes": 2, "per_class": 2},
        "validation": "none", "select": {"split": "test"},
    }  # fmt: skip
    recipe = complete(Recipe.model_validate(raw), catalogs.load(parts))
    result: Result = train(recipe, place(tmp_path, parts=parts), lambda _: None)
    assert result.outcome == "ok"
    assert {"last/test/length", "last/test/recall@1"} <= set(result.metrics)
