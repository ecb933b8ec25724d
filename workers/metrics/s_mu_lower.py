"""The least mean singular value that embeddings could have."""

from workers.evaluation.evaluate import Evaluation
from workers.geometry import singular_bounds


class LowerBound:
    """L, the least s_mu of n unit embeddings of width d, to compare `s_mu` with."""

    label = "s_μ lower bound"
    paper = "SVMax eq. 4 and figure 15"
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        return singular_bounds(*evaluation.embeddings.shape)[0]
