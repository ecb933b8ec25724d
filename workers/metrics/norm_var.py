"""The variance of the norms of embeddings."""

from workers.evaluation.evaluate import Evaluation


class NormVar:
    """Population variance (divided by n) of ||f|| over the raw embeddings."""

    label = "Norm var"
    paper = "SEC table 9"
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.norms.double().var(correction=0).item()
