"""The source of own parts: it is part of the fingerprint, and a process that runs takes up what changed."""

from pathlib import Path

import pytest

from workers.catalog import Catalog, complete, load, own_code
from workers.contract import CodeChangedError, Recipe
from workers.registry import find
from workers.training import session

CIRCLE = '''"""A loss."""

from torch import nn

from ._terms import SCALE


class Circle(nn.Module):
    version = 1
    order = "free"
    scale = SCALE

    def forward(self, embeddings, labels):
        return embeddings.mean() * SCALE
'''
OTHER = CIRCLE.replace("Circle", "Other").replace("from ._terms import SCALE", "SCALE = 1")
SPREAD = '''"""A metric."""


class Spread:
    version = 1
    better = "lower"

    def __call__(self, evaluation):
        return 0.0
'''


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """An own folder with a loss that imports a module of it, another loss, and a metric."""
    files = {
        "losses/circle.py": CIRCLE, "losses/other.py": OTHER, "metrics/spread.py": SPREAD,
        "losses/_terms.py": "from ..shared.numbers import ONE\n\nSCALE = ONE\n", "shared/numbers.py": "ONE = 1.0\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def recipe(catalog: Catalog, loss: str = "circle", *metrics: str) -> Recipe:
    parts = {"dataset": "digits", "backbone": "mlp", "sampler": "balanced", "loss": loss}
    return complete(Recipe.model_validate({**parts, "iterations": 10, "metrics": [*metrics]}), catalog)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_a_recipe_does_not_use_leaves_its_fingerprint_alone(parts: Path) -> None:
    before = recipe(load(parts), "other"), recipe(load(), "triplet")
    edit(parts / "losses/circle.py", ".mean()", ".sum()")
    edit(parts / "metrics/spread.py", "0.0", "1.0")
    after = recipe(load(parts), "other"), recipe(load(), "triplet")
    assert [one.fingerprint for one in after] == [one.fingerprint for one in before]
    assert "code" not in after[1].model_dump(mode="json")["pins"], "built-in parts have versions"


def test_metrics_and_parts_that_are_named_in_a_text_count(parts: Path) -> None:
    first = recipe(load(parts), "other", "spread")
    assert set(first.pins.code) == {"loss", "metric.spread"}
    edit(parts / "metrics/spread.py", "0.0", "1.0")
    second = recipe(load(parts), "other", "spread")
    assert second.pins.code["loss"] == first.pins.code["loss"]
    assert second.pins.code["metric.spread"] != first.pins.code["metric.spread"]
    edit(parts / "losses/other.py", "SCALE = 1", "SCALE, INNER = 1, 'circle'")
    named = own_code.sources(parts / "losses/other.py", parts)
    assert list(named) == ["losses/_terms.py", "losses/circle.py", "losses/other.py", "shared/numbers.py"]


def test_a_worker_refuses_a_recipe_for_other_code(parts: Path) -> None:
    planned = recipe(load(parts))
    session.check(planned, parts)
    edit(parts / "losses/_terms.py", "SCALE = ONE", "SCALE = 2 * ONE")
    with pytest.raises(CodeChangedError, match=r"the code of own loss 'circle' is sha256:.* was edited since"):
        session.check(planned, parts)


def test_an_edited_module_is_imported_anew_even_within_a_second_and_with_the_same_size(parts: Path) -> None:
    first = find("loss", "circle", parts)
    assert find("loss", "circle", parts) is first
    for number in "2", "3", "4":
        edit(parts / "shared/numbers.py", (parts / "shared/numbers.py").read_text()[6], number)
        assert find("loss", "circle", parts).scale == float(f"{number}.0")
    assert first.scale == 1.0
