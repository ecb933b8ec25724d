"""How the golden values of losses over pairs, of sec_fixed and of spread_out are computed."""

from collections.abc import Callable

from torch import Tensor

from tests.workers.inputs import block_labels, golden_embeddings
from workers import geometry
from workers.geometry import masks
from workers.losses.angular import Angular
from workers.losses.batch_hard import BatchHard
from workers.losses.contrastive import Contrastive
from workers.losses.npair import NPair
from workers.losses.nt_xent import NTXent
from workers.losses.triplet import Triplet
from workers.losses.tuplet import Tuplet
from workers.losses.tuplet_margin import TupletMargin
from workers.regularizers.sec_fixed import SecFixed
from workers.regularizers.spread_out import SpreadOut

ROWS, THREES, TWOS = golden_embeddings(12, 8), block_labels(4, 3), block_labels(6, 2)
EIGHT, FOURS = golden_embeddings(8, 8), block_labels(2, 4)
UNIT = geometry.unit(ROWS)

COMPUTED: dict[str, Callable[[], Tensor]] = {
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
    "sec_fixed_mu_870": lambda: SecFixed()(ROWS),
    "spread_out_pairs_i_iplus3": lambda: SpreadOut().penalty((UNIT * UNIT.roll(-3, 0)).sum(dim=1), 8),
}
