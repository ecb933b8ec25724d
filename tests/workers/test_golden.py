"""Losses, regularizers and metrics give the golden values: the papers' forms, computed elsewhere in float64."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.workers import golden_pairs
from tests.workers.golden_proxies import GOLDEN_PROXIES
from tests.workers.inputs import block_labels, golden_embeddings
from workers import geometry
from workers.eta_schedules.linear import Linear
from workers.eta_schedules.min_ramp import MinRamp
from workers.evaluation.evaluate import evaluate
from workers.losses.multi_similarity import MultiSimilarity
from workers.losses.normalized_npair import NormalizedNPair
from workers.losses.semihard import Semihard
from workers.losses.triplet import Triplet
from workers.regularizers.l2 import L2
from workers.regularizers.sec import Sec
from workers.regularizers.sec_ema import SecEma
from workers.regularizers.svmax import SVMax
from workers.regularizers.svmax_unbounded import SVMaxUnbounded

HERE = Path(__file__)
SHARED = Path(os.environ.get("METRICSWEEP_SHARED") or HERE.parents[2] / ".." / "shared").resolve()
GOLDEN: dict[str, float] = json.loads(HERE.with_name("golden_values.json").read_text())

TALL, WIDE, BLOCKS = golden_embeddings(12, 8), golden_embeddings(8, 12), block_labels(4, 3)


def _metric(name: str, embeddings: Tensor) -> Tensor:
    labels = torch.arange(len(embeddings)) % 2
    return torch.tensor(evaluate(embeddings, labels, [name])[name], dtype=torch.float64)


def _sec_ema() -> Tensor:
    regularizer = SecEma(rho=0.01).double()
    regularizer.mu.fill_(2.0)
    regularizer.started.fill_(True)
    value: Tensor = regularizer(TALL)
    return value


COMPUTED: dict[str, Callable[[], Tensor]] = {
    "triplet_all_mean_m1": lambda: Triplet(margin=1.0)(TALL, BLOCKS),
    "triplet_all_mean_m02": lambda: Triplet(margin=0.2)(TALL, BLOCKS),
    "semihard_facenet_tf_mean_m02": lambda: Semihard(margin=0.2)(TALL, BLOCKS),
    "multi_similarity_with_miner_eps01_lam05_a2_b40": lambda: MultiSimilarity()(TALL, BLOCKS),
    "npair_normalized_s25_one_anchor_per_class": lambda: NormalizedNPair()(TALL, block_labels(6, 2)),
    "norm_mean": lambda: _metric("norm_mean", TALL),
    "norm_var_population": lambda: _metric("norm_var", TALL),
    "l2_reg": lambda: L2()(TALL),
    "sec": lambda: Sec()(TALL),
    "sec_ema_rho001_mu_prev_2": _sec_ema,
    "s_mu_b12_d8": lambda: _metric("s_mu", TALL),
    "svmax_L_b12_d8": lambda: torch.tensor(geometry.singular_bounds(12, 8)[0]),
    "svmax_U_b12_d8": lambda: torch.tensor(geometry.singular_bounds(12, 8)[1]),
    "svmax_bounded_b12_d8": lambda: SVMax()(TALL),
    "svmax_unbounded_b12_d8": lambda: SVMaxUnbounded()(geometry.unit(TALL)),
    "s_mu_b8_d12": lambda: _metric("s_mu", WIDE),
    "svmax_L_b8_d12": lambda: torch.tensor(geometry.singular_bounds(8, 12)[0]),
    "svmax_U_b8_d12": lambda: torch.tensor(geometry.singular_bounds(8, 12)[1]),
    "svmax_bounded_b8_d12": lambda: SVMax()(WIDE),
    "svmax_unbounded_b8_d12": lambda: SVMaxUnbounded()(geometry.unit(WIDE)),
    "eta_eq29_t250_T1000_eta1": lambda: torch.tensor(Linear(1.0, 1000)(250)),
    "eta_eq32_t5_T30000_eta1": lambda: torch.tensor(MinRamp(1.0, 30_000)(5)),
    **golden_pairs.COMPUTED,
    **GOLDEN_PROXIES,
}


@pytest.mark.parametrize("name", GOLDEN)
def test_gives_the_golden_value(name: str) -> None:
    assert COMPUTED[name]().item() == pytest.approx(GOLDEN[name], rel=0, abs=1e-6)


def test_computes_every_golden_value_of_the_copy() -> None:
    assert set(COMPUTED) == set(GOLDEN)


def test_the_copy_is_faithful() -> None:
    source = SHARED / "golden" / "values.json"
    if not source.is_file():
        pytest.skip(f"there is no {source}")
    values = json.loads(source.read_text())["values"]
    assert {name: values[name] for name in GOLDEN} == GOLDEN
