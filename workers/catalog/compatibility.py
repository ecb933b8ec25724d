"""Whether the parts of a recipe fit one another, judged from the facts that the catalog holds."""

from collections.abc import Iterator

from workers.catalog import batch_layout, clustering_cost, frozen_backbone, holdout, label_use
from workers.catalog.chosen import Chosen, misfits
from workers.catalog.draft import RecipeDraft
from workers.catalog.inventory import EMBEDDINGS, Catalog, given, metric_entry, metric_problem
from workers.catalog.wording import Problem, listed, not_computed
from workers.contract import NoValidation
from workers.figures.options import Followed, Staged


def disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """What does not fit together; each rule is silent where something that it needs is absent."""
    yield from misfits(draft.parts)
    yield from holdout.disagreements(draft)
    yield from batch_layout.disagreements(draft, catalog)
    yield from label_use.disagreements(draft, catalog)
    yield from frozen_backbone.disagreements(draft, catalog)
    yield from _norms(draft, catalog)
    yield from _metrics(draft, catalog)
    yield from _selection_metric(draft, catalog)
    yield from _patience(draft)
    yield from _warmup(draft)
    yield from _crop(draft)
    yield from _figures(draft)
    yield from _distance(draft)


def _norms(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """A regularizer of norms has norms to act on."""
    regularizer, head = draft.parts.get("regularizer"), draft.parts.get("head")
    if regularizer and head and regularizer.fact("norms") is True and head.fact("output") == "unit":
        raw = [entry.name for entry in catalog.of("head") if entry.facts.get("output") == "raw"]
        message = f"{regularizer} acts on the norms of embeddings, but with {head} every norm is 1"
        yield Problem(path="regularizer", message=f"{message}; heads that fit: {listed(raw)}")


def _metrics(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """The metrics that are asked for exist."""
    for at, metric in enumerate(draft.rest.metrics):
        if message := metric_problem(metric, catalog) or _unread(metric, draft, catalog):
            yield Problem(path=f"metrics.{at}", message=message)


def _selection_metric(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """The metric that selects exists, is computed on this data set, and says which value is better."""
    if draft.select is None:
        return
    metric, dataset = draft.select.metric, draft.parts.get("dataset")
    task = draft.parts.get("task")
    owner = dataset or (task if task and "batches" not in task.entry.asks else None)
    named = dataset.entry.name if dataset else None
    declared = [*catalog.metrics(named, task.entry.name), *draft.rest.metrics] if owner and task else []
    entry = metric_entry(metric, catalog)
    message = metric_problem(metric, catalog) or _unread(metric, draft, catalog)
    if entry is not None and entry.facts.get("better") == "none":
        message = f"metric {metric!r} has no better value to select by"
    elif entry is not None and owner and not message and metric not in declared:
        message = not_computed(str(owner), metric, declared)
    elif entry is not None and task and catalog.at_the_end(metric, task.entry) and draft.select.split != "last":
        reason = f"{task} measures {metric!r} at the end only, of the weights that are kept"
        message = f"{reason}; write `split: last`, or select by another"
    elif entry is not None and dataset and entry.facts.get("needs") == clustering_cost.NEEDS and _dear(draft, dataset):
        message = f"metric {metric!r} is dear on {dataset}, and computed only at the end; select by another"
    if message:
        yield Problem(path="select.metric", message=message)


def _unread(metric: str, draft: RecipeDraft, catalog: Catalog) -> str | None:
    """Why a metric has nothing to read in this task; none where it has."""
    task, entry = draft.parts.get("task"), metric_entry(metric, catalog)
    if task is None or entry is None or catalog.read_by(metric, task.entry):
        return None
    reads = entry.facts.get("reads", EMBEDDINGS)
    return f"metric {metric!r} reads {reads}, but {task} gives {' and '.join(given(task.entry))}"


def _dear(draft: RecipeDraft, dataset: Chosen) -> bool:
    """Whether clustering the test images, by which a checkpoint is to be chosen, is dear."""
    if draft.select is None or "test" not in draft.select.watched:
        return False
    clustered = clustering_cost.stated(dataset.entry, dataset.options, draft.rest.embedding)
    return clustered is not None and clustered.dear


def _patience(draft: RecipeDraft) -> Iterator[Problem]:
    """What patience waits for is a better score."""
    if draft.rest.patience is not None and draft.select and draft.select.split == "last":
        message = "waits for a better score, but `select.split` 'last' keeps the last checkpoint whatever its score"
        yield Problem(path="patience", message=f"{message}; leave it out, or select by 'validation' or 'test'")


def _warmup(draft: RecipeDraft) -> Iterator[Problem]:
    """The warm-up is a part of the training; it may be all of it, where only the head is to learn.

    That of a schedule is shorter, as is each hyper-parameter that a part's fact `shorter_than_training` names.
    """
    if draft.length is None:
        return
    length = f"the {draft.length:,} {'iterations' if draft.rest.epochs is None else 'epochs'} of the training"
    if draft.rest.warmup > draft.length:
        yield Problem(path="warmup", message=f"expected at most {length}, found {draft.rest.warmup:,}")
    for kind, part in draft.parts.items():
        for name in part.entry.stated("shorter_than_training"):
            given = part.options.get(name)
            if isinstance(given, int | float) and given >= draft.length:
                yield Problem(path=f"{kind}.{name}", message=f"expected less than {length}, found {given:,}")


def _crop(draft: RecipeDraft) -> Iterator[Problem]:
    """The images are as large as the crop."""
    dataset, crop = draft.parts.get("dataset"), draft.rest.crop
    # The hyper-parameter where there is one: it says how large the images are made, the fact how large they are.
    side = dataset.options.get("side", dataset.fact("side")) if dataset else None
    if dataset and crop is not None and isinstance(side, int) and crop > side:
        yield Problem(path="crop", message=f"the images of {dataset} have {side} pixels a side; found {crop}")


def _figures(draft: RecipeDraft) -> Iterator[Problem]:
    """Each figure of a split is drawn once, by a task that draws it, and has what it shows."""
    figures, task = draft.rest.figures, draft.parts.get("task")
    drawn = task.fact("figures") if task else None
    files = [one.file for one in figures]
    if len(set(files)) < len(files):
        yield Problem(path="figures", message=f"expected each figure once, found {listed(files)}")
    for place, figure in enumerate(figures):
        path = f"figures.{place}"
        if task and figure.name not in (drawn if isinstance(drawn, list) else ()):
            known = f"it draws {listed(drawn)}" if isinstance(drawn, list) and drawn else "it draws none"
            yield Problem(path=path, message=f"{task} draws no figure {figure.name!r}; {known}")
            continue
        if figure.name == "unit_circle" and draft.rest.embedding != 2:
            dimensions = f"`embedding` is {draft.rest.embedding}"
            yield Problem(path=path, message=f"'unit_circle' shows embeddings in 2 dimensions, but {dimensions}")
        backbone = draft.parts.get("backbone")
        if figure.name == "feature_maps" and backbone and backbone.fact("flat"):
            yield Problem(path=path, message=f"'feature_maps' shows maps, but {backbone} makes none of an image")
        if isinstance(figure, Staged):
            if draft.length and (trouble := figure.trouble(draft.length)):
                yield Problem(path=f"{path}.at", message=f"{figure.name!r} {trouble}")
        elif isinstance(figure, Followed):
            # How many iterations epochs are only the trainer knows.
            trouble = figure.trouble(draft.length) if draft.length and draft.rest.epochs is None else ""
            if trouble:
                yield Problem(path=path, message=f"{figure.name!r} {trouble}")
        elif figure.split == "validation" and isinstance(draft.validation, NoValidation):
            message = "no classes are held out; take split 'test' or 'train', or add `validation`"
            yield Problem(path=f"{path}.split", message=message)


def _distance(draft: RecipeDraft) -> Iterator[Problem]:
    """The task ranks by the distance."""
    task, distance = draft.parts.get("task"), draft.rest.distance
    if task and distance != "cosine" and distance not in (known := task.entry.stated("distances")):
        ranks = f"it takes {listed(known)}" if known else "leave `distance` out"
        yield Problem(path="distance", message=f"{task} does not rank by the distance {distance!r}; {ranks}")
