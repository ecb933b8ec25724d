"""The public interface of the catalog, free of torch: which parts exist, and what is wrong with a recipe."""

from workers.catalog.compatibility import NEEDS, STARTS, Clustering, clustering_of
from workers.catalog.documents import Document, DocumentError, DocumentTooLargeError, load_document, nodes
from workers.catalog.inventory import (
    LONGEST_LIST,
    LONGEST_TEXT,
    Bounds,
    Catalog,
    Entry,
    Parameter,
    metric_entry,
    metric_problem,
    parse_metric,
    selected,
)
from workers.catalog.own_code import FILE as OWN_CODE
from workers.catalog.recipe import (
    UNKNOWN,
    Change,
    Finding,
    FurtherMetrics,
    Inspect,
    Need,
    changes,
    complete,
    computed_alike,
    decisive,
    defaults_for,
    edition,
    further_metrics,
    further_of_recipe,
    need_of,
    stamp,
    undeclared,
    usual_needs,
    without_further,
)
from workers.catalog.source import LiveCatalog, PartSourceError, load
from workers.catalog.validation import BATCH, RecipeValidation, holds, problems, suggested_part_field
from workers.catalog.wording import (
    MOST_REPORTED,
    Findings,
    Problem,
    brief,
    comparing,
    counted,
    listed,
    near,
    not_computed,
    sentence,
    shown,
    suggestion,
    unknown,
)
from workers.figures.options import figure_of
