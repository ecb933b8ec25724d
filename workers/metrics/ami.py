"""Adjusted mutual information of classes and clusters."""

import math

from sklearn.metrics import adjusted_mutual_info_score

from workers.evaluation.evaluate import Evaluation


class AdjustedMutualInformation:
    """NMI (arithmetic), adjusted for chance: 0 for random clusters, whatever their number."""

    label = "AMI"
    paper = "Vinh et al. 2010"
    better = "higher"
    needs = "clusters"
    caption = "of clusters by faiss's k-means (one random start, 20 iterations)"

    def __call__(self, evaluation: Evaluation) -> float:
        if not evaluation.finite:
            return math.nan
        classes, clusters = evaluation.classes.cpu().numpy(), evaluation.clusters.numpy()
        return float(adjusted_mutual_info_score(classes, clusters, average_method="arithmetic"))
