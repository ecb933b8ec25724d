"""The mean norm of embeddings."""

from workers.evaluation.evaluate import Evaluation


class NormMean:
    """Mean of ||f|| over the raw embeddings."""

    label = "Norm mean"
    paper = "SEC table 9"
    better = "none"
    needs = "embeddings"

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.norms.double().mean().item()
