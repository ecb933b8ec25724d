"""Tasks beside retrieval, from a posted spec by a real training to a table."""

from collections.abc import Callable
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


def table(settings: Settings, migrated: Callable[[Path], Path], sweep: str, *edits: str) -> str:
    """The table of a small twin of a bundled sweep, whose pages open."""
    migrated(settings.resolved_home)
    service = Service.open(settings)
    try:
        number = service.submissions.submit(edited((SWEEPS / f"{sweep}.yaml").read_bytes(), list(edits))).id
        conduct(settings)
        assert service.sweeps.get(number).state == "finished"
        known = {"Authorization": f"Bearer {TOKEN}"}
        pages = TestClient(create_app(service, settings), base_url="http://127.0.0.1:8787", headers=known)
        for path in (f"/sweeps/{number}", f"/v1/sweeps/{number}", f"/v1/sweeps/{number}/tables/main?format=latex"):
            assert pages.get(path).status_code == 200, path
        return service.tables.render(number, "main", "csv").content.decode()
    finally:
        service.close()


def test_two_players(tmp_path: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path, engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    short = ("recipe.iterations=4", "recipe.evaluate_every=2", "recipe.task={name: two_player, batch: 16}")
    edits = (*short, "recipe.figures=[{name: samples, every: 2, points: 20}]", "repeat.seed=[0]")
    text = table(settings, migrated, "svmax_f5", *edits)
    assert "svmax_unbounded" in text
    assert "modes" in text
    assert "high_quality" in text


def test_verification(tmp_path: Path, shared: Path, migrated: Callable[[Path], Path]) -> None:
    settings = Settings(home=tmp_path, data=shared / "data", engine="inline", lease_seconds=5, token=SecretStr(TOKEN))
    edits = ("recipe.iterations=4", "repeat.seed=[0]", "compare.loss=[triplet]")
    assert "accuracy" in table(settings, migrated, "orl_faces", *edits)


@pytest.mark.parametrize("sweep", ["svmax_f5", "orl_faces"])
def test_a_forecast_needs_no_images(sweep: str, service: Service) -> None:
    assert service.submissions.preview((SWEEPS / f"{sweep}.yaml").read_bytes()).trials
