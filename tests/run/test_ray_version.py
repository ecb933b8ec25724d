"""A Ray without token authentication is refused before it listens or is joined."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Site
from orchestrator.run.engine_names import engine_named
from orchestrator.run.ray import TOKENS_SINCE
from orchestrator.run.ray.__main__ import main
from orchestrator.views.errors import MetricsweepError

SAID = "Ray 2.51.2 has no token authentication"


def test_a_ray_without_tokens_starts_no_node_and_is_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orchestrator.run.ray.version", lambda name: "2.51.2")
    assert main(["--head"]) == 1
    assert SAID in capsys.readouterr().err
    with pytest.raises(MetricsweepError, match=SAID):
        engine_named("ray_tune", Site(Workplace("tests.run.trainings:quick", tmp_path, tmp_path), tmp_path))


def test_only_a_ray_with_tokens_is_installed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (ray,) = (needed for needed in map(Requirement, project["optional-dependencies"]["server"]) if needed.name == "ray")
    (lowest,) = (Version(bound.version) for bound in ray.specifier if bound.operator == ">=")
    assert lowest.release >= TOKENS_SINCE
    assert f"{lowest.major + 1}.0.0" not in ray.specifier
