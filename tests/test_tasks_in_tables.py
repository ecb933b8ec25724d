"""Tasks other than retrieval, from a posted spec by a real training to a table."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.main import create_app
from orchestrator.conduct.conductor import Conductor
from orchestrator.plan.edit import edited
from orchestrator.record.store import Store
from orchestrator.service.offline import subset_of
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct, workplace
from tests.workers import faces
from workers import catalog as catalogs
from workers.datasets.megaface import Megaface

TOKEN = "a-token-of-the-tests"
SWEEPS = Path(__file__).parents[1] / "sweeps"


SHORT = ("recipe.iterations=4", "repeat.seed=[0]")
PLAYERS = (*SHORT, "recipe.evaluate_every=2", "recipe.task={name: two_player, batch: 16}")

VIEWS = ("compare.epochs=[1]", "recipe.task.probe_epochs=2", "recipe.task.probe_at=[1]")


def tables(
    settings: Settings,
    migrated: Callable[[Path], Path],
    posted: Mapping[str, Sequence[str]],
    texts: Mapping[str, bytes] | None = None,
    conducted: Callable[[Settings], object] = conduct,
) -> list[str]:
    """The tables of small twins of bundled sweeps that stood in the queue together, whose pages open."""
    migrated(settings.resolved_home)
    service = Service.open(settings)
    try:
        texts = texts or {sweep: (SWEEPS / f"{sweep}.yaml").read_bytes() for sweep in posted}
        every = [edited(texts[sweep], list(edits)) for sweep, edits in posted.items()]
        numbers = [service.submissions.submit(text).id for text in every]
        conducted(settings)
        return [_table(service, settings, number) for number in numbers]
    finally:
        service.close()


def _table(service: Service, settings: Settings, number: int) -> str:
    assert service.sweeps.get(number).state == "finished"
    known = {"Authorization": f"Bearer {TOKEN}"}
    pages = TestClient(create_app(service, settings), base_url="http://127.0.0.1:8787", headers=known)
    for path in (f"/sweeps/{number}", f"/v1/sweeps/{number}", f"/v1/sweeps/{number}/tables/main?format=latex"):
        assert pages.get(path).status_code == 200, path
    return service.tables.render(number, "main", "csv").content.decode()


def over_ray(settings: Settings) -> None:
    """Conduct until idle with slots of Ray, which train in processes of their own."""
    from orchestrator.run.ray.engine import RayTune

    engine = RayTune(workplace(settings), None, settings.resolved_home / "tune")
    with closing(Store.open(settings.database)) as store, pytest.MonkeyPatch.context() as brief:
        brief.setattr("orchestrator.run.dispatch.LINGER_SECONDS", 0)
        Conductor(settings, store, engine, catalogs.load(), None).conduct(until_idle=True)


@pytest.mark.ray
def test_players_and_views_share_the_queue_and_the_slots(
    tmp_path: Path, own_ray: None, migrated: Callable[[Path], Path]
) -> None:
    """Neither sweep waits for the other's end, and the numbers are those of one process that takes turns."""
    looks = "recipe.figures=[{name: samples, every: 2, points: 20}]"
    given = {"svmax_f5": (*PLAYERS, looks, "slot.cpus=1"), "quick/sec_t5": (*VIEWS, "slot.cpus=1")}
    inline, ray = (Settings(home=tmp_path / name, lease_seconds=5, token=SecretStr(TOKEN)) for name in ("one", "ray"))
    played, viewed = tables(inline.model_copy(update={"engine": "inline"}), migrated, given)
    for name in ("svmax_unbounded", "modes", "high_quality"):
        assert name in played
    assert "top@1" in viewed
    assert tables(ray, migrated, given, conducted=over_ray) == [played, viewed]
    service = Service.open(ray)
    trials = [service.store.trials.page(sweep, None, None, None, 100).items for sweep in (1, 2)]
    attempts = [[one for trial in its for one in service.trials.get(trial.id).attempts] for its in trials]
    service.close()
    assert [len(its) for its in attempts] == [len(its) for its in trials], "each took one attempt"
    began = [min(one.started for one in its if one.started) for its in attempts]
    ended = [max(one.ended for one in its if one.ended) for its in attempts]
    assert max(began) < min(ended)


def test_verification(tmp_path: Path, shared: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path, data=shared / "data", engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    (verified,) = tables(settings, migrated, {"orl_faces": (*SHORT, "compare.loss=[triplet]")})
    assert "accuracy" in verified


FACES = (
    *("recipe.backbone={name: small_cnn, width: 4}", "recipe.embedding=8", "recipe.sampler.batch=8"),
    *("recipe.schedule={name: step, at: [1]}", "recipe.epochs=2", "recipe.validation.folds=3", "repeat.seed=[0]"),
    *("recipe.dataset={name: casia_webface, official: false, side: 8, tests: [lfw, agedb30, cfp_fp, megaface]}",),
    "recipe.metrics=[verification_accuracy, eer, rank1@1e2, rank1@1e1]",
    *("tables.main.published=null", "slot.cpus=1"),
    "tables.main.metrics=["
    "{metric: verification_accuracy, split: test_lfw, label: LFW},"
    "{metric: verification_accuracy, split: test_agedb30, label: AgeDB30},"
    "{metric: verification_accuracy, split: test_cfp_fp, label: CFPFP},"
    "{metric: rank1@1e2, split: test_megaface, label: '100'}, {metric: rank1@1e1, split: test_megaface, label: '10'}]",
)
"""The preset of SEC's table 4 at the size of the faces that tests draw."""


def test_every_column_of_secs_table_of_faces_is_filled(
    tmp_path: Path, migrated: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path, engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    faces.of_sec(settings.data_root, sizes=(10, 100))
    monkeypatch.setitem(vars(Megaface)["__init__"].__kwdefaults__, "sizes", (10, 100))
    only = subset_of((SWEEPS / "sec_t4.yaml").read_bytes(), ["loss=softmax,arcface", "regularizer=none"], [])
    (filled,) = tables(settings, migrated, {"sec_t4": FACES}, {"sec_t4": only})
    lines = list(csv.DictReader(io.StringIO(filled)))
    assert [(line["loss"], line["metric"]) for line in lines] == [
        (loss, metric)
        for loss in ("softmax", "arcface")
        for metric in ("lfw:verification_accuracy", "agedb30:verification_accuracy", "cfp_fp:verification_accuracy",
                       "megaface:rank1@1e2", "megaface:rank1@1e1")
    ]  # fmt: skip
    assert all(0 <= float(line["mean"]) <= 1 for line in lines), "no column stays empty"
    assert len({line["mean"] for line in lines}) > 1, "nor is it one number that all have"


def test_a_forecast_needs_no_images(service: Service) -> None:
    for sweep in ("svmax_f5", "orl_faces"):
        assert service.submissions.preview((SWEEPS / f"{sweep}.yaml").read_bytes()).trials
