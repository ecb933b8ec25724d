"""The names that modules had which a researcher's own parts import: they lead to where these live now."""

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

FORMER: Final = {
    "workers.augment": "workers.data.augmentation",
    "workers.cifar": "workers.data.cifar",
    "workers.cosines": "workers.embeddings.cosines",
    "workers.decoded": "workers.data.decoded",
    "workers.diagnostics": "workers.embeddings.diagnostics",
    "workers.draws": "workers.training.random_state",
    "workers.embedder": "workers.tasks._network",
    "workers.evaluate": "workers.evaluation.evaluate",
    "workers.fetch": "workers.data.fetch",
    "workers.geometry": "workers.embeddings.geometry",
    "workers.images": "workers.data.images",
    "workers.k_means": "workers.evaluation.k_means",
    "workers.length": "workers.training.length",
    "workers.listing": "workers.data.listing",
    "workers.looking": "workers.data.looking",
    "workers.nearest": "workers.evaluation.neighbours",
    "workers.packs": "workers.data.packs",
    "workers.pairs": "workers.embeddings.pairs",
    "workers.preprocess": "workers.data.preprocess",
    "workers.ranking": "workers.evaluation.ranking",
    "workers.scratch": "workers.data.scratch",
    "workers.ties": "workers.evaluation.ties",
    "workers.weights": "workers.data.weights",
}
"""By the name of a module in a release without rooms, its name of today."""


class _Renamed(Loader):
    """Loads a module of today under a former name: the very module, so that its classes stay one."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(FORMER[spec.name])
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own  # the import system wrote the former name's over it


class _FormerNames:
    """Asked by an import that nobody else could answer."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Renamed()) if name in FORMER else None


def honour() -> None:
    """Let imports find these modules under their former names too; a second call changes nothing."""
    if _FormerNames not in sys.meta_path:
        sys.meta_path.append(_FormerNames)
