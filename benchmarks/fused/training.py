"""A fused training: the sessions of several seeds of one recipe, trained together by one stacked network."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from benchmarks.fused.batched_losses import batched
from benchmarks.fused.stacking import hand_back, stacked
from workers.contract import Place
from workers.data.batches import LabelledBatch
from workers.tasks import At, Diverged, Terms
from workers.tasks._network import embedder
from workers.tasks.retrieval import Retrieval
from workers.training.late_losses import LateLosses, lateness
from workers.training.optimization import Optimization
from workers.training.progress_log import ProgressLog
from workers.training.session import Session


class FusedTraining:
    """Several sessions that have not begun, which differ by their seed alone.

    Each draws and augments its own batches and computes its own loss, as it would alone; network and optimizer are one.
    The network is of parts that can be stacked, the task is retrieval, and the loss learns nothing. What a training
    does beside its iterations (evaluations on the way, checkpoints, warm-up of its own) is left out. With `at_once` the
    losses of all seeds are one computation, without a regularizer.
    """

    def __init__(self, sessions: Sequence[Session], place: Place, *, at_once: bool = False) -> None:
        self.sessions, first = sessions, sessions[0]
        self.tasks = [session.task for session in sessions if isinstance(session.task, Retrieval)]
        if len(self.tasks) < len(sessions) or any(True for _ in self.tasks[0].loss.parameters()):
            raise TypeError("only retrieval by losses that learn nothing was fused yet")
        if first.recipe.clip_norm is not None or first.recipe.precision == "fp16":
            raise ValueError("a norm of gradients and float16's scale are of one seed, and were not fused yet")
        self._batched = batched(self.tasks[0].loss) if at_once else None
        self._backbones = [task.model.backbone for task in self.tasks]
        self._heads = [task.model.head for task in self.tasks]
        modules = {"backbone": stacked(self._backbones), "head": stacked(self._heads)}
        self.network = embedder(modules["backbone"], modules["head"], first.recipe)
        self._optimization = Optimization(first.recipe, first.length, modules, first.device, place.parts)
        self._losses, self._late = LateLosses(), lateness(first.device)
        self.step = 0

    def iteration(self, journals: Sequence[ProgressLog]) -> None:
        """One iteration of every seed, noted where it is a point of their curves; raises Diverged if one diverges."""
        at = At(self.step, self._optimization.prepare(self.step))
        batches = [session.batches.next() for session in self.sessions if session.batches]
        embeddings = self.network(torch.cat([batch.images for batch in batches], dim=1))
        apart = embeddings.view(len(embeddings), len(batches), -1).transpose(0, 1)
        terms, total = self._terms(at, apart, batches)
        self._losses.note(self.step, total)
        self._settle(self.step - self._late)
        self._optimization.down(total)
        self.step += 1
        for session, journal, one in zip(self.sessions, journals, terms, strict=True):
            session.step = self.step
            session.task.after(self.step)
            if journal.due(self.step):
                self._settle(self.step)
                journal.trained(self.step, {f"train/{name}": value for name, value in one.noted().items()})

    def _terms(self, at: At, embeddings: Tensor, batches: Sequence[LabelledBatch]) -> tuple[list[Terms], Tensor]:
        """What each seed minimizes of its embeddings [seeds, b, d], and the sum."""
        if self._batched is not None:
            losses = self._batched(embeddings, torch.stack([batch.labels for batch in batches]))
            return [Terms("model", one, partial(_noted, one)) for one in losses.unbind()], losses.sum()
        every = zip(self.tasks, embeddings.unbind(), batches, strict=True)
        terms = [task.terms(at, embedded, batch.labels) for task, embedded, batch in every]
        return terms, torch.stack([one.total for one in terms]).sum()

    def _settle(self, step: int) -> None:
        if self._losses.diverged(step) is not None:
            raise Diverged("the loss of a seed is not finite")

    def hand_back(self) -> None:
        """Give each session the weights of its seed."""
        hand_back(self.network.backbone, self._backbones)
        hand_back(self.network.head, self._heads)


def _noted(loss: Tensor) -> dict[str, float]:
    return {"loss": float(loss.detach())}
