"""Trainings on features of a frozen network: equal numbers, computed once, stored whole or not at all."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.workers import recipes
from tests.workers.recipes import batches, begun, numbers, place, retrieval, run, same, weights
from tests.workers.test_checkpoint import stopping_after
from workers import model, registry
from workers import train as training
from workers.contract import CheckpointError, Part, Place, Progress, Recipe, Result, Stopped
from workers.data import features, scratch
from workers.data.features import SETTING, FeatureSet, NetworkIdentity, stored
from workers.data.images import DataSet, Images, load
from workers.data.scratch import UnsafeFolderError
from workers.data.weights import WeightsError
from workers.train import train
from workers.training import determinism, kept_weights

CPU = torch.device("cpu")


def of(recipe: Recipe, where: Place, said: list[str] | None = None) -> FeatureSet:
    """The features of a recipe, not from this process's memory."""
    return features_of(recipe, load(recipe.part("dataset"), where.data_root, where.scratch), where, said)


def features_of(recipe: Recipe, dataset: DataSet, where: Place, said: list[str] | None = None) -> FeatureSet:
    """Those of any data set."""
    features._kept.cache_clear()
    held = features.frozen(recipe, None)
    assert held is not None
    return stored(recipe, held, dataset, where, CPU, (said if said is not None else []).append)


@pytest.fixture
def where(tmp_path: Path) -> Place:
    weights_file(tmp_path)
    return place(tmp_path)


def folders(where: Place) -> list[Path]:
    return [one for one in (where.scratch / "features").iterdir() if one.is_dir()]


def test_test_sets_have_their_own_rows_in_whatever_order_they_are_named(where: Place) -> None:
    digits = load(frozen().part("dataset"), where.data_root, where.scratch)

    def some(first: int) -> Images:
        return replace(digits.test, images=digits.test.images[first : first + 8], labels=torch.arange(8))

    def told(*names: str) -> FeatureSet:
        tests = {name: some(8 * number) for number, name in enumerate(("one", "other"), 1) if name in names}
        dataset = FeatureSet(some(0), some(0), None, NetworkIdentity("", None), {name: tests[name] for name in names})
        return features_of(frozen(), dataset, where)

    before, after = told("one", "other"), told("other", "one")
    assert len(folders(where)) == 1
    assert not torch.equal(before.tests["one"].images, before.tests["other"].images)
    for name in ("one", "other"):
        assert torch.equal(after.tests[name].images, before.tests[name].images)


def test_data_roots_share_features_of_equal_weights_and_images_only(where: Place, tmp_path: Path) -> None:
    digits = load(frozen().part("dataset"), where.data_root, where.scratch).test
    images = digits.images[:8].clone()

    def rows(home: str, seed: int) -> torch.Tensor:
        (tmp_path / home).mkdir(exist_ok=True)
        weights_file(tmp_path / home, seed)
        some = replace(digits, images=images.clone(), labels=torch.arange(8))
        dataset = FeatureSet(some, some, None, NetworkIdentity("", None))
        return features_of(frozen(), dataset, replace(where, data_root=tmp_path / home / "data")).train.images

    first = rows("here", 0)
    assert torch.equal(rows("there", 0), first)
    assert len(folders(where)) == 1
    assert not torch.equal(rows("other weights", 1), first)
    images[3, 0, 4, 4] ^= 255
    assert not torch.equal(rows("here", 0), first)
    assert len(folders(where)) == 3


def test_who_is_stopped_half_way_leaves_nothing(where: Place) -> None:
    asked = iter([False, False, True])
    stopping = Place(**{**vars(where), "stop": lambda: next(asked, True)})
    with pytest.raises(Stopped, match=r"stopped after features of mobilenet_v1: 96 of 1,797 images"):
        of(frozen(), stopping)
    assert folders(where) == []
    assert of(frozen(), where).train.images.shape[0] == 1083


def test_damaged_features_are_computed_again_and_links_are_refused(
    where: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = of(frozen(), where).train.images.clone()
    (folder,) = folders(where)
    rows = np.memmap(folder / "features", "<f4", mode="r+")
    rows[5] += 1
    rows.flush()
    assert torch.equal(of(frozen(), where).train.images, before)
    assert "is damaged: computing anew" in capfd.readouterr().err
    (folder / "about.json").write_text("{")
    assert torch.equal(of(frozen(), where).train.images, before)
    (folder / "features").rename(tmp_path / "elsewhere")
    (folder / "features").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFolderError, match="is a link"):
        of(frozen(), where)


def test_the_longest_unused_make_room(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1797 * 256 * 4
    monkeypatch.setenv(SETTING, str(2.5 * size / 1e9))
    for number, crop in enumerate((8, 7)):
        of(frozen(crop=crop), where)
        newest = max(folders(where), key=lambda one: one.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    kept = of(frozen(crop=8), where)  # used again, so that the other one is the longest unused
    abandoned = where.scratch / "features" / ".mobilenet_v1-0123"
    abandoned.mkdir()
    of(frozen(crop=6), where)
    assert len(folders(where)) == 2
    assert not abandoned.exists()
    assert torch.equal(of(frozen(crop=8), where).train.images, kept.train.images)


def test_what_never_fits_is_refused(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "0.001")
    with pytest.raises(ValueError, match=r"would take 0\.0 GB, and METRICSWEEP_FEATURES_GB allows 0\.001; raise it"):
        of(frozen(), where)
    assert folders(where) == []
    for gigabytes in ("0", "-1", "nan", "much"):
        monkeypatch.setenv(SETTING, gigabytes)
        with pytest.raises(ValueError, match="METRICSWEEP_FEATURES_GB: expected a number of gigabytes above 0, found"):
            of(frozen(), where)


ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from tests.workers.recipes import numbers, place, run
from workers.contract import Recipe
from workers.train import train

asked = 0

def stop():  # asked after each batch of features: stays in the middle until it is killed
    global asked
    asked += 1
    if asked == 5:
        print("in the middle", flush=True)
        sys.stdin.read()
    return False

train(Recipe.model_validate_json(sys.argv[2]), place(Path(sys.argv[1]), stop=stop), lambda _: None)
"""


def test_killed_while_it_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_WAITED", 0.01)
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        weights_file(tmp_path / name)
    home, what = tmp_path / "killed", frozen()
    lines: list[str] = []
    results: list[Result] = []
    waiting = threading.Event()

    def report(progress: Progress) -> None:
        lines.append(progress.log)
        waiting.set()

    other = threading.Thread(target=lambda: results.append(train(what, place(home), report)), daemon=True)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(home), what.model_dump_json()],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "in the middle\n"
            (aside,) = folders(place(home))
            assert aside.name.startswith(".")
            assert (aside / "features").stat().st_size == 1797 * 256 * 4
            other.start()
            assert waiting.wait(60)
            assert lines == ["waiting for features of mobilenet_v1, which another training of this machine computes\n"]
            with pytest.raises(Stopped, match="stopped while it waited for features of mobilenet_v1"):
                train(what, place(home, stop=lambda: True), lambda _: None)
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    other.join(120)
    assert lines[1] == "computing features of mobilenet_v1: 1,797 images, once for this machine\n"
    whole, _ = run(what, tmp_path / "whole")
    assert [numbers(one) for one in results] == [numbers(whole)]
    (left,), (right,) = folders(place(home)), folders(place(tmp_path / "whole"))
    assert left.name == right.name
    assert np.array_equal(*(np.fromfile(one / "features", "<f4") for one in (left, right)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    weights_file(tmp_path)
    return tmp_path


@pytest.mark.parametrize("changes", [{}, {"crop": 6, "regularizer": {"name": "sec", "eta": 0.5}, "head": "bn_fc"}])
def test_the_numbers_are_those_of_the_network_itself(home: Path, changes: dict[str, Any]) -> None:
    ours, theirs = (run(make(**changes), home)[0] for make in (frozen, plain))
    # Two images that are equally near within rounding may change places: 1 of 1,428 queries.
    assert ours.metrics == pytest.approx(theirs.metrics, abs=1e-3)
    assert ours.curves.keys() == theirs.curves.keys()
    for key, points in ours.curves.items():
        assert points == [(step, pytest.approx(value, rel=1e-3, abs=1e-4)) for step, value in theirs.curves[key]]
    assert ours.provenance["weights"] == theirs.provenance["weights"]
    assert ours.provenance["manifest"] == theirs.provenance["manifest"]


def test_features_are_computed_once_for_all_trainings(home: Path) -> None:
    first, said = run(frozen(), home)
    assert any("computing features of mobilenet_v1: 1,797 images" in one.log for one in said)
    folds = {"name": "cross_validation", "folds": 2}
    again, said = run(
        frozen(loss="contrastive", seed=3, validation=folds, sampler={"name": "balanced", "classes": 2, "per_class": 4},
               figures=[{"name": "panels", "queries": 2}], iterations=2, evaluate_every=2), home,
    )  # fmt: skip
    assert not any("computing features" in one.log for one in said)
    assert again.provenance["weights"] == first.provenance["weights"]
    assert {"panels-fold0.npz", "panels-fold0.png"} <= {*again.artifacts}, "panels show images, not features"


def test_what_changes_features_has_them_computed_anew(home: Path) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"crop": 6}, {"of_pool": "max"}, {"precision": "bf16"}, {"of_resize": 12},
        {"channels_last": True, "head": "bn_fc"},
    ]  # fmt: skip
    for other in changes:
        run(frozen(iterations=1, **other), home)
    weights_file(home, seed=1)
    run(frozen(iterations=1), home)
    assert len([*(home / "scratch" / "features").glob("mobilenet*/about.json")]) == 7


def test_numbers_do_not_depend_on_how_many_processors_there_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for count in (1, 3):
        monkeypatch.setattr(features, "processors", lambda count=count: count)
        (home / str(count)).mkdir()
        weights_file(home / str(count))
        run(frozen(iterations=1), home / str(count))
        found += [np.fromfile(path, "<f4") for path in (home / str(count) / "scratch").glob("features/*/features")]
    assert len(found) == 2
    assert np.array_equal(*found)
    assert np.isfinite(found[0]).all()
    assert found[0].std() > 0
    assert torch.get_num_threads() >= 1


def test_a_training_resumes_to_the_same_bits(home: Path) -> None:
    what = frozen(regularizer={"name": "sec_ema", "eta": 0.5})
    whole, _ = run(what, home)
    kept = weights(home / "best.safetensors")
    with pytest.raises(Stopped):
        run(what, home, stop=stopping_after(5))
    resumed, _ = run(what, home, resume=home / "last.pt")
    assert numbers(resumed) == numbers(whole)
    assert same(weights(home / "best.safetensors"), kept)
    further = what.model_copy(update={"metrics": ["recall@3"]})
    found = training.evaluate(further, place(home), lambda _: None, home / "best.safetensors", ["recall@3"])
    assert 0 < found.metrics["best/test/recall@3"] <= 1, "kept weights give further metrics"
    loaded = model.load(home / "best.safetensors", "cpu", threads=1, data=home / "data")
    session = begun(what, home)
    session.load(kept_weights.read(home / "best.safetensors").models[0])
    pictures = batches(session).pictures.test.images.permute(0, 2, 3, 1).numpy()
    with determinism.applied(torch.device("cpu"), 1):
        expected = retrieval(session).embed(batches(session).splits.test).numpy()
    assert np.array_equal(loaded.embed(pictures), expected), "the frozen network is computed first"


def test_what_was_trained_on_other_features_is_not_gone_on_with(home: Path) -> None:
    with pytest.raises(Stopped):
        run(frozen(), home, stop=lambda: any((home / "scratch" / "features").glob("mobilenet*/about.json")))
    weights_file(home, seed=1)
    with pytest.raises(CheckpointError, match="trained on features of mobilenet_v1 with other weights than are here"):
        run(frozen(), home, resume=home / "last.pt")
    run(frozen(), home)
    weights_file(home, seed=2)
    with pytest.raises(CheckpointError, match="the weights do not fit their recipe: it was trained on features of"):
        training.evaluate(
            frozen(metrics=["recall@3"]), place(home), lambda _: None, home / "best.safetensors", ["recall@3"]
        )


def test_weights_outside_of_the_data_folder_are_refused(home: Path) -> None:
    (home / "data" / "tiny.pt").rename(home / "tiny.pt")
    (home / "data" / "link.pt").symlink_to(home / "tiny.pt")
    for path in ("../tiny.pt", "/etc/passwd", "link.pt"):
        with pytest.raises(WeightsError, match="give a path relative to the data folder, and within it"):
            run(frozen(of_weights=path), home)


def test_features_that_are_not_finite_are_reported(home: Path) -> None:
    state = torch.load(home / "data" / "tiny.pt", weights_only=True)
    state[next(iter(state))].fill_(torch.nan)
    torch.save(state, home / "data" / "tiny.pt")
    with pytest.raises(ValueError, match=r"backbone\.of: features of mobilenet_v1 are not finite"):
        run(frozen(), home)
    assert [*(home / "scratch" / "features").glob("*/*")] == []


TINY: dict[str, Any] = {"name": "mobilenet_v1", "width": 0.25, "weights": "tiny.pt"}


def weights_file(folder: Path, seed: int = 0) -> Path:
    """`data/tiny.pt` in a folder: random weights of the tiny network, with statistics that say something."""
    torch.manual_seed(seed)
    network = registry.build("backbone", Part(name="mobilenet_v1", width=0.25), channels=3, root=folder)
    for name, value in network.net.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.02, 0.1)
    (folder / "data").mkdir(exist_ok=True)
    torch.save(network.net.state_dict(), folder / "data" / "tiny.pt")
    return folder / "data" / "tiny.pt"


def frozen(**changes: Any) -> Recipe:
    """A complete recipe on digits; changes of the network within begin with `of_`."""
    within = {name.removeprefix("of_"): value for name, value in changes.items() if name.startswith("of_")}
    rest = {name: value for name, value in changes.items() if not name.startswith("of_")}
    return recipes.recipe(**{"backbone": {"name": "frozen", "of": {**TINY, **within}}, **rest})


def plain(**changes: Any) -> Recipe:
    """The same network as it is, of which only the head trains."""
    length = {"iterations": 12, **changes}["iterations"]
    return recipes.recipe(**{"backbone": {**TINY, "freeze_bn": True}, "warmup": length, **changes})
