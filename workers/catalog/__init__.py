"""What exists and what is wrong with a recipe: the face of the catalog, which imports no part and no torch."""

from workers.catalog.clustering_cost import NEEDS, STARTS, Clustering, stated
from workers.catalog.defaults import complete
from workers.catalog.inventory import Catalog, load, metric_entry, metric_problem, parse_metric
from workers.catalog.needs import Finding, Inspect, Need, need_of, usual_needs
from workers.catalog.signature import LONGEST_LIST, LONGEST_TEXT, Entry, Parameter, PartSourceError
from workers.catalog.validation import RecipeValidation, problems
from workers.catalog.versions import Change, changes, edition, stamp
from workers.catalog.wording import Problem, not_computed

__all__ = [
    "LONGEST_LIST",
    "LONGEST_TEXT",
    "NEEDS",
    "STARTS",
    "Catalog",
    "Change",
    "Clustering",
    "Entry",
    "Finding",
    "Inspect",
    "Need",
    "Parameter",
    "PartSourceError",
    "Problem",
    "RecipeValidation",
    "changes",
    "complete",
    "edition",
    "load",
    "metric_entry",
    "metric_problem",
    "need_of",
    "not_computed",
    "parse_metric",
    "problems",
    "stamp",
    "stated",
    "usual_needs",
]
