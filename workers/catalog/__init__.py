"""What exists and what is wrong with a recipe: the face of the catalog, which imports no part and no torch."""

from workers.catalog.added_metrics import (
    FurtherMetrics,
    asked_of,
    computed_alike,
    further_metrics,
    out_of_reach,
    without_further,
)
from workers.catalog.bounds import Bounds
from workers.catalog.clustering_cost import NEEDS, STARTS, Clustering, stated
from workers.catalog.defaults import complete
from workers.catalog.holdings import Holdings, holds, selected
from workers.catalog.inventory import Catalog, LiveCatalog, load, metric_entry, metric_problem, parse_metric
from workers.catalog.near_names import comparing, near
from workers.catalog.needs import UNKNOWN, Finding, Inspect, Need, decisive, need_of, undeclared, usual_needs
from workers.catalog.own_code import FILE as OWN_CODE
from workers.catalog.parameter import LONGEST_LIST, LONGEST_TEXT, Parameter
from workers.catalog.part_validation import BATCH, meant_of_parts
from workers.catalog.signature import Entry, PartSourceError
from workers.catalog.validation import RecipeValidation, problems
from workers.catalog.versions import Change, changes, edition, stamp
from workers.catalog.wording import Problem, brief, listed, meant, not_computed, sentence, shown, unknown

__all__ = [
    "BATCH",
    "LONGEST_LIST",
    "LONGEST_TEXT",
    "NEEDS",
    "OWN_CODE",
    "STARTS",
    "UNKNOWN",
    "Bounds",
    "Catalog",
    "Change",
    "Clustering",
    "Entry",
    "Finding",
    "FurtherMetrics",
    "Holdings",
    "Inspect",
    "LiveCatalog",
    "Need",
    "Parameter",
    "PartSourceError",
    "Problem",
    "RecipeValidation",
    "asked_of",
    "brief",
    "changes",
    "comparing",
    "complete",
    "computed_alike",
    "decisive",
    "edition",
    "further_metrics",
    "holds",
    "listed",
    "load",
    "meant",
    "meant_of_parts",
    "metric_entry",
    "metric_problem",
    "near",
    "need_of",
    "not_computed",
    "out_of_reach",
    "parse_metric",
    "problems",
    "selected",
    "sentence",
    "shown",
    "stamp",
    "stated",
    "undeclared",
    "unknown",
    "usual_needs",
    "without_further",
]
