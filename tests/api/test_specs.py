"""A spec made to train afresh keeps everything else, and so does one with values set."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app
from api.commands.sweeps import afresh
from tests.api.conftest import named
from tests.api.played import SPEC


@pytest.mark.parametrize("text", [SPEC, SPEC + "fresh: false  # not now\n", "fresh: no\n" + SPEC, SPEC.rstrip()])
def test_yaml_keeps_its_comments_and_gains_a_line(text: str) -> None:
    made = afresh(text.encode()).decode()
    assert yaml.safe_load(made) == yaml.safe_load(SPEC) | {"fresh": True}
    assert made.count("fresh") == 1


def test_a_nested_word_is_not_the_key() -> None:
    text = "name: x\nrecipe:\n  fresh: 1\n"
    assert yaml.safe_load(afresh(text.encode())) == {"name": "x", "recipe": {"fresh": 1}, "fresh": True}


def test_json_stays_json() -> None:
    body = json.dumps(yaml.safe_load(SPEC)).encode()
    assert json.loads(afresh(body)) == yaml.safe_load(SPEC) | {"fresh": True}


def test_values_are_set_before_a_spec_is_submitted_or_counted(url: str, spec: Path) -> None:
    here, sets = (
        named(url),
        ["--set", "select.split=test", "--set", "repeat.seed=[0, 1, 2]"],
    )
    counted = CliRunner().invoke(
        app, ["expand", str(spec), "--set", "recipe.validation=none", *sets, "--json"], env=here
    )
    assert json.loads(counted.stdout)["trials"] == 6
    submitted = CliRunner().invoke(app, ["submit", str(spec), "--json", *sets], env=here)
    assert json.loads(submitted.stdout)["id"] == 1
    text = json.loads(CliRunner().invoke(app, ["show", "1", "--json"], env=here).stdout)["text"]
    assert "seed: [0, 1, 2]" in text
    assert yaml.safe_load(text)["select"] == {"metric": "map@r", "split": "test"}


@pytest.mark.parametrize("command", ["submit", "expand", "run"])
def test_a_wrong_value_is_told_before_anything_starts(url: str, spec: Path, command: str) -> None:
    for wrong, told in {"recipe.iterations": "PATH=VALUE", "recipe.iterations=many": "recipe.iterations"}.items():
        answer = CliRunner().invoke(app, [command, str(spec), "--set", wrong], env=named(url))
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert told in answer.stderr
