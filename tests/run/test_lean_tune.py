"""What a relay's process loads of Ray Tune, and what it does with a Ray that needs more."""

import subprocess
import sys

AS_IT_IS = """
import sys
from orchestrator.run.ray.relay import Relay
print(sorted({"pandas", "ray.data", "torch"} & set(sys.modules)))
"""
WHEN_ASKED = """
from ray.tune import result_grid
import orchestrator.run.ray.engine
print(result_grid.pd.isnull(float("nan")), result_grid.pd.DataFrame([{"a": 1}]).a.tolist())
import pandas, ray.data
from ray import data
print(ray.data is data, data.Dataset.__name__, pandas.DataFrame.__name__)
"""
ANOTHER_RAY = """
import inspect, sys
from pathlib import Path
from importlib.util import find_spec
source = Path(find_spec("orchestrator.run.ray.lean_tune").origin).read_text()
needing = source.replace("self.DataFrame = self.Dataset = Unseen", "")
assert needing != source
exec(compile(needing, "lean_tune.py", "exec"), {"__name__": "needing"})
import pandas, ray.data, ray.tune
print(ray.tune.Tuner.__module__, ray.data.Dataset.__name__, pandas.DataFrame.__name__)
"""


def _said(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_relay_loads_neither_pandas_nor_ray_data() -> None:
    assert _said(AS_IT_IS) == "[]"


def test_what_was_not_loaded_is_there_when_asked_for() -> None:
    assert _said("import orchestrator.run.ray.relay" + WHEN_ASKED) == "True [1]\nTrue Dataset DataFrame"


def test_what_another_part_has_loaded_stays_as_it_was() -> None:
    assert _said("import pandas" + WHEN_ASKED) == "True [1]\nTrue Dataset DataFrame"


def test_a_ray_that_needs_data_frames_while_it_is_loaded_gets_them() -> None:
    assert _said(ANOTHER_RAY) == "ray.tune.tuner Dataset DataFrame"
