"""A metric whose numbers change gets a new version: each is compared with what its version gave on one fixed split."""

import pytest

from tests.workers.inputs import EMBEDDED, block_labels, golden_embeddings
from workers.catalog.inventory import parse_metric
from workers.evaluation.evaluate import evaluate
from workers.registry import find

GIVEN: dict[str, tuple[int, float]] = {
    "ami": (1, -0.01577610845955423),
    "cos_an": (1, -0.003109729095252561),
    "cos_an@std": (1, 0.3513270774498065),
    "cos_ap": (1, -0.010908750847627173),
    "cos_ap@std": (1, 0.29345140106566997),
    "f1": (1, 0.16267942583732056),
    "f1_sec": (1, 0.13427561837455831),
    "map@r": (2, 0.04408509700176366),
    "nmi": (1, 0.1319581157688845),
    "nmi@geometric": (1, 0.132088777958734),
    "nmi_sec": (1, 0.0989127528845208),
    "norm_mean": (1, 2.4789284173069897),
    "norm_var": (1, 0.30734006524328034),
    "r_precision": (2, 0.15),
    "recall@1": (2, 0.05),
    "recall@4": (2, 0.4166666666666667),
    "recall_sec@1": (1, 0.05),
    "recall_sec@4": (1, 0.4166666666666667),
    "s_mu": (1, 2.7177321993357797),
    "s_mu_lower": (1, 0.9682458365518543),
    "s_mu_upper": (1, 2.7386127875258306),
}
"""The version and the value of each metric; a new metric adds a line, and a new version replaces its own."""


@pytest.mark.parametrize("name", GIVEN)
def test_a_version_always_gives_the_same(name: str) -> None:
    version, expected = GIVEN[name]
    assert find("metric", parse_metric(name)[0]).version == version
    found = evaluate(golden_embeddings(60, 8), block_labels(6, 10), [name])[name]
    assert found == pytest.approx(expected, rel=1e-9), f"give {name} a new version, and write its value here"


def test_every_metric_is_held_to_its_version() -> None:
    assert {parse_metric(name)[0] for name in GIVEN} == set(EMBEDDED)
