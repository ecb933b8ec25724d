"""A spec made to train afresh keeps everything else, and so does one with values set."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from api.cli import app
from api.commands.sweeps import afresh
from tests.api.conftest import named
from tests.api.played import SPEC


def test_a_spec_is_made_to_train_afresh() -> None:
    for text in (SPEC, SPEC + "fresh: false  # not now\n", "fresh: no\n" + SPEC, SPEC.rstrip()):
        made = afresh(text.encode()).decode()
        assert yaml.safe_load(made) == yaml.safe_load(SPEC) | {"fresh": True}
        assert made.count("fresh") == 1
    nested = afresh(b"name: x\nrecipe:\n  fresh: 1\n")
    assert yaml.safe_load(nested) == {"name": "x", "recipe": {"fresh": 1}, "fresh": True}
    assert json.loads(afresh(json.dumps(yaml.safe_load(SPEC)).encode())) == yaml.safe_load(SPEC) | {"fresh": True}


def test_values_are_set_before_a_spec_is_submitted_or_counted(url: str, spec: Path) -> None:
    here, sets = (named(url), ["--set", "select.split=test", "--set", "repeat.seed=[0, 1, 2]"])
    counted = CliRunner().invoke(
        app, ["expand", str(spec), "--set", "recipe.validation=none", *sets, "--json"], env=here
    )
    assert json.loads(counted.stdout)["trials"] == 6
    submitted = CliRunner().invoke(app, ["submit", str(spec), "--json", *sets], env=here)
    assert json.loads(submitted.stdout)["id"] == 1
    text = json.loads(CliRunner().invoke(app, ["show", "1", "--json"], env=here).stdout)["text"]
    assert "seed: [0, 1, 2]" in text
    assert yaml.safe_load(text)["select"] == {"metric": "map@r", "split": "test"}


def test_run_refuses_a_wrong_spec_before_it_starts_anything(spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC.replace("semihard", "semihart"))
    answer = CliRunner().invoke(app, ["run", str(spec), "--home", str(tmp_path / "none")])
    assert (answer.exit_code, "semihard" in answer.stderr) == (2, True)
    assert not (tmp_path / "none").exists()


def test_a_wrong_value_is_refused_before_anything_starts(url: str, spec: Path) -> None:
    for command in ("submit", "expand", "run"):
        for wrong, told in {"recipe.iterations": "PATH=VALUE", "recipe.iterations=many": "recipe.iterations"}.items():
            answer = CliRunner().invoke(app, [command, str(spec), "--set", wrong], env=named(url))
            assert (answer.exit_code, answer.stdout, told in answer.stderr) == (2, "", True), command
