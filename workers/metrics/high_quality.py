"""The share of a generator's samples that could be from the Gaussians."""

from workers.evaluation.probe import Samples


class HighQuality:
    """The share of samples within three deviations of the nearest centre; Gaussians themselves have 0.989."""

    label = "High quality"
    paper = "SVMax sec. 4.2, after Srivastava et al. 2017"
    better = "higher"
    reads = "samples"

    def __call__(self, evaluation: Samples) -> float:
        return evaluation.good.double().mean().item()
