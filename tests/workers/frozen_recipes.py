"""Recipes on the features of a tiny frozen network, whose weights a test writes."""

from pathlib import Path
from typing import Any

import torch

from tests.workers import recipes
from workers import registry
from workers.contract import Part, Recipe

TINY: dict[str, Any] = {"name": "mobilenet_v1", "width": 0.25, "weights": "tiny.pt"}


def weights_file(folder: Path, seed: int = 0) -> Path:
    """`data/tiny.pt` in a folder: random weights of the tiny network, with statistics that say something."""
    torch.manual_seed(seed)
    network = registry.build("backbone", Part(name="mobilenet_v1", width=0.25), channels=3, root=folder)
    for name, value in network.net.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.02, 0.1)
    (folder / "data").mkdir(exist_ok=True)
    torch.save(network.net.state_dict(), folder / "data" / "tiny.pt")
    return folder / "data" / "tiny.pt"


def frozen(**changes: Any) -> Recipe:
    """A complete recipe on digits; changes of the network within begin with `of_`."""
    within = {name.removeprefix("of_"): value for name, value in changes.items() if name.startswith("of_")}
    rest = {name: value for name, value in changes.items() if not name.startswith("of_")}
    return recipes.recipe(**{"backbone": {"name": "frozen", "of": {**TINY, **within}}, **rest})


def plain(**changes: Any) -> Recipe:
    """The same network as it is, of which only the head trains."""
    length = {"iterations": 12, **changes}["iterations"]
    return recipes.recipe(**{"backbone": {**TINY, "freeze_bn": True}, "warmup": length, **changes})
