"""How far the numbers of fused seeds lie from those of the product's own trainings."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import torch

from benchmarks.fused.recipes import Candidate
from benchmarks.fused.training import FusedTraining
from workers.train import train
from workers.training import determinism
from workers.training.final_metrics import finish
from workers.training.last_checkpoint import LastCheckpoint
from workers.training.loop import iterate
from workers.training.progress_log import ProgressLog
from workers.training.session import Session

_UNBOUND: Final = {"norm", "s"}
"""How metrics begin that are no shares: `norm_mean`, `norm_var`, `s_mu`."""


class Numbers(NamedTuple):
    """What one training gave."""

    losses: Mapping[int, float]
    """By iteration, where its curve has a point."""
    metrics: Mapping[str, float]


def product(candidate: Candidate, iterations: int) -> list[Numbers]:
    """Those of `workers.train` for each seed."""
    every = []
    for seed in range(candidate.seeds):
        result = train(candidate.recipe(seed, iterations), candidate.place(f"seed {seed}"), lambda _: None)
        every.append(Numbers(dict(result.curves["train/loss"]), result.metrics))
    return every


def nudged(candidate: Candidate, iterations: int) -> list[Numbers]:
    """Those of the same, from weights of the head of which each is the next greater number: how rounding grows."""
    with determinism.applied(torch.device(candidate.device), 1):
        every = []
        for session in candidate.sessions(iterations):
            with torch.no_grad():
                for weight in session.task.modules()["head"].parameters():
                    weight.copy_(torch.nextafter(weight, weight.new_tensor(math.inf)))
            journal = _journal(session)
            iterate(session, LastCheckpoint(candidate.place("nudged"), journal, session.state_dict), journal)
            every.append(_ended(candidate, session, journal))
        return every


def fused(candidate: Candidate, iterations: int) -> list[Numbers]:
    """Those of all seeds trained as one."""
    with determinism.applied(torch.device(candidate.device), 1):
        sessions = candidate.sessions(iterations)
        training, journals = FusedTraining(sessions, candidate.place("fused")), [_journal(one) for one in sessions]
        for session in sessions:
            session.task.begin()
        for _ in range(iterations):
            training.iteration(journals)
        training.hand_back()
        return [_ended(candidate, *pair) for pair in zip(sessions, journals, strict=True)]


def _journal(session: Session) -> ProgressLog:
    return ProgressLog(session.total, session.length.every, session.curves, lambda _: None)


def _ended(candidate: Candidate, session: Session, journal: ProgressLog) -> Numbers:
    metrics = finish(session, LastCheckpoint(candidate.place("ended"), journal, session.state_dict), journal)
    return Numbers(dict(session.curves["train/loss"]), metrics)


def apart(these: Sequence[Numbers], those: Sequence[Numbers], at: Sequence[int]) -> dict[str, float]:
    """The greatest differences over the seeds: of a loss up to each iteration of `at`, and of final metrics.

    Of the latter those count that lie between 0 and 1 by what they are.
    """
    pairs, told = [*zip(these, those, strict=True)], {}
    for last in at:
        differences = [
            abs(one.losses[step] - other.losses[step]) for one, other in pairs for step in other.losses if step <= last
        ]
        told[f"loss to {last}"] = max(differences, default=math.nan)
    shares = [key for key in those[0].metrics if key.rpartition("/")[2].partition("_")[0] not in _UNBOUND]
    told["metrics"] = max(abs(one.metrics[key] - other.metrics[key]) for one, other in pairs for key in shares)
    return told
