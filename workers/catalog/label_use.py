"""Whether labels can judge features: a probe is tested on classes that it learned, and names no more of them."""

from collections.abc import Iterator

from workers.catalog.draft import RecipeDraft
from workers.catalog.inventory import Catalog, metric_entry, parse_metric
from workers.catalog.wording import Problem, listed


def disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """What of classes does not fit; each rule is silent where something that it needs is absent."""
    yield from _other_classes(draft, catalog)
    yield from _beyond_the_classes(draft, catalog)


def _other_classes(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """A classifier of features can only be tested on the classes that it learned; unknown where nothing is stated."""
    task, dataset = draft.parts.get("task"), draft.parts.get("dataset")
    if not (task and dataset and task.fact("probes") is True and isinstance(dataset.fact("classes"), dict)):
        return
    if dataset.fact("same_classes") is not True:
        fitting = [entry.name for entry in catalog.of("dataset") if entry.facts.get("same_classes") is True]
        found = f"the test images of {dataset} are of other classes than its training images"
        message = f"{task} judges features by classes that a probe has learned, but {found}"
        yield Problem(path="dataset", message=f"{message}; data sets that fit: {listed(fitting)}")


def _beyond_the_classes(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """The k of a top-k accuracy is no more than there are classes."""
    dataset = draft.parts.get("dataset")
    counts = dataset.fact("classes") if dataset else None
    classes = counts.get("test") if isinstance(counts, dict) else None
    named = [(f"metrics.{at}", name) for at, name in enumerate(draft.rest.metrics)]
    for path, name in [*named, *([("select.metric", draft.select.metric)] if draft.select else [])]:
        entry, k = metric_entry(name, catalog), parse_metric(name)[1]
        wanted = int(k) if k and k.isdecimal() else 0
        if entry and entry.facts.get("of_classes") is True and isinstance(classes, int) and wanted > classes:
            message = f"metric {name!r} has no meaning where {dataset} has {classes} classes; take a smaller k"
            yield Problem(path=path, message=message)
