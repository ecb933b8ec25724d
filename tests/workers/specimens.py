"""A small catalog and a sound recipe for it, so that the rules are tested apart from the parts that exist today."""

from typing import Any

from workers.catalog import Catalog, Entry, Parameter
from workers.figures.options import MODELS


def _part(kind: str, name: str, *parameters: Parameter, version: int = 1, **facts: Any) -> Entry:
    return Entry(kind=kind, name=name, label=name, version=version, parameters=list(parameters), facts=facts)


CATALOG = Catalog(
    entries=[
        Entry(
            kind="task",
            name="retrieval",
            label="retrieval",
            inputs=["model", "loss", "regularizer", "eta", "batches"],
            facts={
                "metrics": ["recall@1", "map@r"],
                "selects": "map@r",
                "split": "validation",
                "validations": ["class_holdout", "cross_validation"],
                "figures": [*MODELS],
                "watched": ["recall@1"],
                "curves": ["loss"],
            },
        ),
        _part(
            "loss",
            "triplet",
            Parameter(name="margin", type="float", default=0.2),
            Parameter(name="mining", type="literal", choices=["all", "hard"], default="all"),
            Parameter(name="cap", type="int", optional=True),
        ),
        _part("loss", "proxy_anchor", Parameter(name="alpha", type="float", default=32.0), lr_scale=100),
        _part("loss", "npair", order="positional", layout=["class_blocks"]),
        _part("regularizer", "none"),
        _part("regularizer", "sec", Parameter(name="eta", type="float", required=True), norms=True),
        _part(
            "dataset",
            "digits",
            classes={"train": 6, "test": 4},
            metrics=["recall@1", "map@r", "norm_var"],
            manifest="sha256:00",
            side=8,
        ),
        _part("dataset", "pair", classes={"train": 1, "test": 1}, metrics=["recall@1", "map@r"]),
        _part("backbone", "mlp", Parameter(name="width", type="int", default=128)),
        _part(
            "backbone",
            "pretrained",
            Parameter(name="weights", type="str", optional=True),
            known_weights={"a.pt": "11"},
        ),
        _part("head", "fc", output="raw"),
        _part("head", "unit_fc", output="unit"),
        _part(
            "sampler",
            "balanced",
            Parameter(name="classes", type="int", default=4),
            draws="classes",
            layout="class_blocks",
        ),
        _part("sampler", "shuffle", Parameter(name="batch", type="int", default=32), layout="shuffled"),
        _part(
            "optimizer",
            "adam",
            Parameter(name="lr", type="float", default=0.001),
            Parameter(name="amsgrad", type="bool", default=False),
            version=3,
        ),
        _part("schedule", "constant"),
        _part("eta_schedule", "constant"),
        _part("eta_schedule", "linear"),
        _part(
            "schedule",
            "step",
            Parameter(name="at", type="ints", default=[10]),
            Parameter(name="factors", type="floats", default=[0.1]),
        ),
        _part("metric", "recall", Parameter(name="k", type="int", default=1), better="higher"),
        _part("metric", "map", Parameter(name="k", type="literal", choices=["r"], default="r"), better="higher"),
        _part("metric", "nmi", better="higher"),
        _part("metric", "norm_var", better="none"),
    ]
)

RECIPE: dict[str, Any] = {
    "dataset": "digits",
    "backbone": "mlp",
    "loss": "triplet",
    "sampler": "balanced",
    "iterations": 300,
    "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
}
