"""Figures of sweeps and trainings: from results, curves and data files to Vega-Lite, and to files for print.

The modules that draw are imported on first use, so that processes which draw nothing do not load Altair.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.publish.figures import drawing, pages, rendering

__all__ = ["drawing", "pages", "rendering"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
