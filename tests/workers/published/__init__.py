"""The settings that the papers print, as recipes in full size, by a name; numbers come from ../shared/published.

Left out are counting (SVMax T5) and SVMax's toys.
"""

import tomllib
from pathlib import Path
from typing import Any

from tests.workers.published.proxies import isa, rivals, svmax_proxies
from tests.workers.published.sec import (
    faces,
    response_simclr,
    sec,
    sec_ablations,
    sec_response,
    sec_simclr,
    tuplet_margin,
)
from tests.workers.published.svmax import svmax, svmax_ablations, svmax_raw


def every(folder: Path) -> dict[str, dict[str, Any]]:
    """All recipes by name; `folder` is ../shared/published."""
    with (folder / "configs.toml").open("rb") as file:
        printed = tomllib.load(file)
    found: dict[str, dict[str, Any]] = {}
    groups = (
        sec, sec_ablations, sec_response, tuplet_margin, faces, svmax, svmax_ablations, svmax_raw, svmax_proxies, isa,
        rivals, sec_simclr, response_simclr,
    )  # fmt: skip
    for name, recipe in (one for group in groups for one in group(printed, folder)):
        assert name not in found, name
        found[name] = recipe
    return found
