"""A spec made to train afresh keeps everything else."""

import json

import pytest
import yaml

from api.commands.specs import afresh
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
