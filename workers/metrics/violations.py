"""The triplets in which an image of another class is nearer than one of the own class."""

from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class Violations:
    """The share of a query's triplets that violate cos_ap > cos_an, averaged over queries; a tie counts half.

    Of random embeddings it is 0.5. A query's triplets are all pairs of an image of its class and one of another. By
    the Euclidean distance with `distance: euclidean`.
    """

    label = "Violating triplets"
    paper = "SEC figure 5"
    better = "lower"
    over = "queries"
    needs = "embeddings"

    def each(self, evaluation: Evaluation) -> Tensor:
        """The share of each query's triplets, float64 [queries]."""
        return evaluation.violated

    def __call__(self, evaluation: Evaluation) -> float:
        return self.each(evaluation).mean().item()
