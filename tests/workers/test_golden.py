"""Parts give the papers' golden values, and recorded values that change only with the version of the part."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from torch import Tensor, nn

from tests.workers.inputs import EMBEDDED, block_labels, evaluate, golden_embeddings, part, part_names, random_batch
from workers import geometry
from workers.catalog import load
from workers.catalog.inventory import parse_metric
from workers.eta_schedules.linear import Linear
from workers.eta_schedules.min_ramp import MinRamp
from workers.geometry import masks
from workers.losses.angular import Angular
from workers.losses.batch_hard import BatchHard
from workers.losses.contrastive import Contrastive
from workers.losses.multi_similarity import MultiSimilarity
from workers.losses.normalized_npair import NormalizedNPair
from workers.losses.npair import NPair
from workers.losses.nt_xent import NTXent
from workers.losses.proxy_isa import ProxyISA
from workers.losses.recall_at_k import RecallAtK
from workers.losses.semihard import Semihard
from workers.losses.sup_con import SupCon
from workers.losses.triplet import Triplet
from workers.losses.tuplet import Tuplet
from workers.losses.tuplet_margin import TupletMargin
from workers.registry import find
from workers.regularizers.l2 import L2
from workers.regularizers.sec import Sec
from workers.regularizers.sec_ema import SecEma
from workers.regularizers.sec_fixed import SecFixed
from workers.regularizers.spread_out import SpreadOut
from workers.regularizers.svmax import SVMax
from workers.regularizers.svmax_unbounded import SVMaxUnbounded

HERE = Path(__file__)
SHARED = Path(os.environ.get("METRICSWEEP_SHARED") or HERE.parents[2] / ".." / "shared").resolve()
GOLDEN: dict[str, float] = json.loads(HERE.with_name("golden_values.json").read_text())

TALL, WIDE, BLOCKS = golden_embeddings(12, 8), golden_embeddings(8, 12), block_labels(4, 3)


EMBEDDINGS, LABELS = golden_embeddings(12, 8), block_labels(4, 3)


def golden_vectors(n: int, d: int) -> Tensor:
    """W(n, d) of the golden values."""
    values = [[math.cos(2 + 0.5 * i * j + 0.2 * j) for j in range(d)] for i in range(n)]
    return torch.tensor(values, dtype=torch.float64)


def golden_loss(name: str, vectors: int = 5, **options: Any) -> Any:
    """A loss of 5 classes whose one matrix of parameters, or its transpose, is W(vectors, 8)."""
    loss = part("loss", name, classes=5, dim=8, **options)
    (parameter,) = loss.parameters()
    values = golden_vectors(vectors, 8)
    if parameter.shape != values.shape:
        values = values.T.contiguous()
    assert parameter.shape == values.shape
    parameter.data = values
    return loss


def value(name: str, vectors: int = 5, **options: Any) -> Callable[[], Tensor]:
    def computed() -> Tensor:
        found: Tensor = golden_loss(name, vectors, **options)(EMBEDDINGS, LABELS)
        return found

    return computed


def golden_isa() -> ProxyISA:
    """Proxy-ISA in the state of `proxy_isa_*`: in its fourth epoch, the filter on."""
    loss: ProxyISA = golden_loss("proxy_isa")
    loss.seen.fill_(36)
    loss.clean.copy_(torch.tensor([10, 50, 0, 200, 460]))
    loss.learned.copy_(torch.tensor([0.05, 0.1, 1.0, 0.08, 0.02], dtype=torch.float64))
    return loss


def omega(positive: bool) -> Callable[[], Tensor]:
    """The sum of the weights of the positive, or of the negative pairs."""

    def computed() -> Tensor:
        own = nn.functional.one_hot(LABELS, 5).bool()
        return golden_isa().weights(EMBEDDINGS, LABELS)[own if positive else ~own].sum()

    return computed


GOLDEN_PROXIES: dict[str, Callable[[], Tensor]] = {
    "proxy_anchor_a32_d01": value("proxy_anchor"),
    "proxy_nca_paper_scale1_positive_excluded": value("proxy_nca", scale=1.0),
    "proxy_nca_softmax_scale1_positive_included": value("proxy_nca", scale=1.0, positive="included"),
    "proxy_nca_isa_repo_cos12_positive_excluded": value("proxy_nca", scale=6.0),
    "normface_s64": value("normface"),
    "cosface_s64_m035": value("cosface"),
    "arcface_s64_m045": value("arcface"),
    "sphereface_s64_m3_normalized_features": value("sphereface"),
    "soft_triple_ce_only": value("soft_triple", 10, centers=2, tau=0.0),
    "soft_triple_total_reg02": value("soft_triple", 10, centers=2),
    "proxy_gml_cls_N2_r05": value("proxy_gml", 10, proxies=2, r=0.5, lam=0.0),
    "proxy_gml_total_lambda03": value("proxy_gml", 10, proxies=2, r=0.5),
    "proxy_isa_fixed_state": lambda: golden_isa()(EMBEDDINGS, LABELS),
    "proxy_isa_omega_pos_sum": omega(positive=True),
    "proxy_isa_omega_neg_sum": omega(positive=False),
}


ROWS, THREES, TWOS = golden_embeddings(12, 8), block_labels(4, 3), block_labels(6, 2)
EIGHT, FOURS = golden_embeddings(8, 8), block_labels(2, 4)
UNIT = geometry.unit(ROWS)


def surrogate(tau1: float, tau2: float) -> RecallAtK:
    """The loss as the authors' code has it."""
    return RecallAtK(k=(1, 2, 4, 8), tau1=tau1, tau2=tau2, query="included")


GOLDEN_PAIRS: dict[str, Callable[[], Tensor]] = {
    "triplet_all_avgnonzero_m1": lambda: Triplet(over="violating")(ROWS, THREES),
    "triplet_all_avgnonzero_m02": lambda: Triplet(margin=0.2, over="violating")(ROWS, THREES),
    "batch_hard_euclid_mean_m02": lambda: BatchHard()(ROWS, THREES),
    "eq3_tuplet_all_pairs_all_negatives_s25": lambda: Tuplet()(ROWS, THREES),
    "tml_s64_beta01": lambda: TupletMargin(intra=0.0)(ROWS, THREES),
    "tml_intra_eps001": lambda: TupletMargin().variance(UNIT @ UNIT.T, masks(THREES)),
    "tml_total_lambda05": lambda: TupletMargin()(ROWS, THREES),
    "npair_raw_no_reg": lambda: NPair(unit=False, l2=0.0)(ROWS, TWOS),
    "npair_raw_l2_0002": lambda: NPair(unit=False)(ROWS, TWOS),
    "angular_45_one_anchor_per_class": lambda: Angular()(ROWS, TWOS),
    "angular_45_all_pairs_all_negatives": lambda: Angular(pairs="all")(ROWS, TWOS),
    "nt_xent_T05": lambda: NTXent()(ROWS, TWOS),
    "contrastive_squared_eps1e-5_m1_code": lambda: Contrastive()(EIGHT, FOURS),
    "contrastive_unsquared_m1_eq6": lambda: Contrastive(squared=False)(EIGHT, FOURS),
    "sup_con_T007_one_view": lambda: SupCon()(ROWS, THREES),
    "sup_con_T05_one_view": lambda: SupCon(temperature=0.5)(ROWS, THREES),
    "recall_at_k_1248_tau_1_001_query_included": lambda: surrogate(1.0, 0.01)(ROWS, THREES),
    "recall_at_k_1248_tau_05_01_query_included": lambda: surrogate(0.5, 0.1)(ROWS, THREES),
    "sec_fixed_mu_870": lambda: SecFixed()(ROWS),
    "spread_out_pairs_i_iplus3": lambda: SpreadOut().penalty((UNIT * UNIT.roll(-3, 0)).sum(dim=1), 8),
}


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
    **GOLDEN_PAIRS,
    **GOLDEN_PROXIES,
}


@pytest.mark.parametrize("name", GOLDEN)
def test_gives_the_golden_value(name: str) -> None:
    assert COMPUTED[name]().item() == pytest.approx(GOLDEN[name], rel=0, abs=1e-6)


def test_computes_every_golden_value_of_the_copy() -> None:
    assert set(COMPUTED) == set(GOLDEN)


BY_AUTHORS_CODE: Final = {name for name in GOLDEN if name.startswith(("sup_con_", "recall_at_k_"))}
"""Values that HobbitLong/SupContrast and yash0307/RecallatK_surrogate give in float64 on E(12, 8), normalized."""


def test_the_copy_is_faithful() -> None:
    source = SHARED / "golden" / "values.json"
    if not source.is_file():
        pytest.skip(f"there is no {source}")
    values = json.loads(source.read_text())["values"]
    theirs = {name: value for name, value in GOLDEN.items() if name not in BY_AUTHORS_CODE}
    assert {name: values[name] for name in theirs} == theirs


TRAJECTORIES: Final = Path(__file__).with_name("trajectories.json")
WRITE: Final = os.environ.get("METRICSWEEP_WRITE_GOLDEN") == "1"
STEPS, KEPT = 20, (1, 2, 5, 10, 20)
RATE: Final = 0.02
CASES: Final = [("loss", name) for name in part_names("loss")] + [
    ("regularizer", name) for name in part_names("regularizer") if name != "none"
]


def version(kind: str, name: str) -> int:
    entry = load().get(kind, name)
    assert entry is not None
    return entry.version


def trajectory(kind: str, name: str) -> list[float]:
    """The values at some of 20 plain gradient steps on the embeddings and on what the part owns, in float64."""
    embeddings, labels = random_batch(seed=3, classes=4, per_class=4)
    built = part(kind, name, classes=4)
    built.train()
    if hasattr(built, "begin"):
        built.begin(lambda: 2.0)
    torch.manual_seed(5)  # for what draws
    moved = embeddings.clone().requires_grad_()
    owned = [parameter for parameter in built.parameters() if parameter.requires_grad]
    found = []
    for step in range(1, STEPS + 1):
        value = built(moved, labels) if kind == "loss" or getattr(built, "labelled", False) else built(moved)
        if step in KEPT:
            found.append(float(value.detach()))
        gradients = torch.autograd.grad(value, [moved, *owned], allow_unused=True)
        _descend([moved, *owned], gradients)
    return found


def _descend(parameters: list[Tensor], gradients: tuple[Tensor | None, ...]) -> None:
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter.sub_(RATE * gradient)


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TRAJECTORIES.read_text(encoding="utf-8")) if TRAJECTORIES.exists() else {}
    return found


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_numbers_change_only_with_the_version(kind: str, name: str) -> None:
    golden, key = recorded(), f"{kind}.{name}"
    known, now = golden.get(key), {"version": version(kind, name), "values": trajectory(kind, name)}
    if WRITE and (known is None or known["version"] < now["version"]):
        golden[key] = now
        TRAJECTORIES.write_text(json.dumps(dict(sorted(golden.items())), indent=1) + "\n", encoding="utf-8")
        return
    assert known is not None, f"{key} is new: record it with METRICSWEEP_WRITE_GOLDEN=1"
    assert known["version"] == now["version"], f"{key} has a new version: record it with METRICSWEEP_WRITE_GOLDEN=1"
    assert now["values"] == pytest.approx(known["values"], rel=1e-6, abs=1e-9), f"give {key} a new version"


def test_nothing_is_recorded_that_is_gone() -> None:
    assert set(recorded()) == {f"{kind}.{name}" for kind, name in CASES}


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
    "violations": (1, 0.49166666666666664),
}
"""The version and the value of each metric; a new metric adds a line, and a new version replaces its own."""


def test_a_version_always_gives_the_same() -> None:
    """Where this fails, give the metric a new version, and write its value here."""
    assert {parse_metric(name)[0] for name in GIVEN} == set(EMBEDDED)
    found = evaluate(golden_embeddings(60, 8), block_labels(6, 10), list(GIVEN))
    assert {name: getattr(find("metric", parse_metric(name)[0]), "version", 1) for name in GIVEN} == {
        name: version for name, (version, _) in GIVEN.items()
    }
    assert found == pytest.approx({name: value for name, (_, value) in GIVEN.items()}, rel=1e-9)
