"""The share of the Gaussians that a generator covers."""

from workers.evaluation.probe import Samples


class Modes:
    """The share of Gaussians with a sample within three deviations of their centre; 1/8 where all collapse on one."""

    label = "Modes"
    paper = "SVMax sec. 4.2, after Srivastava et al. 2017"
    better = "higher"
    reads = "samples"

    def __call__(self, evaluation: Samples) -> float:
        return evaluation.caught / len(evaluation.centres)
