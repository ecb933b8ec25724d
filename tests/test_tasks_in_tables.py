"""Tasks beside retrieval, from a posted spec by a real training to a table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.main import create_app
from orchestrator.plan.reading.edit import edited
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.inline_conductor import conduct

TOKEN = "a-token-of-the-tests"
SWEEPS = Path(__file__).parents[1] / "sweeps"


SHORT = ("recipe.iterations=4", "repeat.seed=[0]")
PLAYERS = (*SHORT, "recipe.evaluate_every=2", "recipe.task={name: two_player, batch: 16}")

VIEWS = ("compare.epochs=[1]", "recipe.task.probe_epochs=2", "recipe.task.probe_at=[1]")


def tables(settings: Settings, migrated: Callable[[Path], Path], posted: Mapping[str, Sequence[str]]) -> list[str]:
    """The tables of small twins of bundled sweeps that stood in the queue together, whose pages open."""
    migrated(settings.resolved_home)
    service = Service.open(settings)
    try:
        every = [edited((SWEEPS / f"{sweep}.yaml").read_bytes(), list(edits)) for sweep, edits in posted.items()]
        numbers = [service.submissions.submit(text).id for text in every]
        conduct(settings)
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


def test_players_and_views_share_the_queue(tmp_path: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path, engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    looks = "recipe.figures=[{name: samples, every: 2, points: 20}]"
    played, viewed = tables(settings, migrated, {"svmax_f5": (*PLAYERS, looks), "quick/sec_t5": VIEWS})
    for name in ("svmax_unbounded", "modes", "high_quality"):
        assert name in played
    assert "top@1" in viewed


def test_verification(tmp_path: Path, shared: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path, data=shared / "data", engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    (verified,) = tables(settings, migrated, {"orl_faces": (*SHORT, "compare.loss=[triplet]")})
    assert "accuracy" in verified


@pytest.mark.parametrize("sweep", ["svmax_f5", "orl_faces"])
def test_a_forecast_needs_no_images(sweep: str, service: Service) -> None:
    assert service.submissions.preview((SWEEPS / f"{sweep}.yaml").read_bytes()).trials
