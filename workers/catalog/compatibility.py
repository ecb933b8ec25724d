"""Whether the parts of a recipe go together: labels, batches, hold-outs, frozen backbones, the cost of clustering."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import JsonValue

from workers.catalog.inventory import (
    EMBEDDINGS,
    Catalog,
    given,
    holders,
    inner,
    metric_entry,
    metric_problem,
    parse_metric,
)
from workers.catalog.source import Entry
from workers.catalog.wording import Problem, counted, listed, not_computed, shown
from workers.contract import ClassHoldout, CrossValidation, ImageHoldout, NoValidation, Recipe, Select, Validation
from workers.figures.options import Followed, Staged


@dataclass(frozen=True)
class Chosen:
    """A part that exists, and its hyper-parameters with the defaults filled in."""

    entry: Entry
    options: Mapping[str, JsonValue]

    def __str__(self) -> str:
        return f"{self.entry.kind} {self.entry.name!r}"

    def fact(self, name: str) -> JsonValue:
        """A fact of the part; None where it states none."""
        return self.entry.facts.get(name)


@dataclass(frozen=True)
class RecipeDraft:
    """What of a recipe is sound by itself; what is not is absent."""

    parts: Mapping[str, Chosen]
    validation: Validation | None
    select: Select | None
    rest: Recipe
    """Its plain fields; one that is not sound has its default."""
    length: int | None
    """Iterations or epochs, whichever it counts in."""


def misfits(parts: Mapping[str, Chosen]) -> Iterator[Problem]:
    """A hyper-parameter is given only where another has the value that the part's fact `only_where` asks for."""
    for kind, part in parts.items():
        rules = part.fact("only_where")
        for name, rule in rules.items() if isinstance(rules, dict) else ():
            for other, wanted in rule.items() if isinstance(rule, dict) else ():
                if part.options.get(name) is not None and part.options.get(other) != wanted:
                    found = f"`{other}: {wanted}`, but {other} is {shown(part.options.get(other))}"
                    yield Problem(path=f"{kind}.{name}", message=f"is only for {found}; leave one of them out")


def label_disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
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


NEEDS: Final = "clusters_sec"
"""What a metric needs that is computed from it."""
STARTS: Final = 10
DEAR: Final = 10**10
"""Multiplications of one iteration of one start above which a clustering is dear: with embeddings of width 512 CUB's
test images take 3e8, SOP's 3.5e11."""


class Clustering(NamedTuple):
    """Images to be put into as many clusters as they have classes, by embeddings of some width."""

    images: int
    classes: int
    width: int

    @property
    def products(self) -> int:
        """The multiplications of one iteration of one start: every image with every centre."""
        return self.images * self.classes * self.width

    @property
    def dear(self) -> bool:
        """Whether it is done once, at the end of a training, and not at each look."""
        return self.products > DEAR


def stated(dataset: Entry, options: Mapping[str, JsonValue], width: int) -> Clustering | None:
    """The clustering of a data set's test images, as far as it states their number and is taken whole."""
    images = _test(dataset, "queries") or _test(dataset, "images")
    classes = _test(dataset, "classes")
    if images is None or classes is None or options.get("official") is False:
        return None
    return Clustering(images, classes, width)


def _test(dataset: Entry, fact: str) -> int | None:
    found = dataset.facts.get(fact)
    number = found.get("test") if isinstance(found, dict) else None
    return number if isinstance(number, int) else None


def frozen_disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """What does not fit parts within parts, and a backbone that reads features."""
    for part in draft.parts.values():
        held = inner(part.entry, part.options, catalog)
        yield from misfits({one.path: Chosen(one.entry, one.part.options) for one in held})
    backbone = draft.parts.get("backbone")
    if backbone is not None and backbone.fact("reads") == "features":
        yield from _weights(backbone, catalog)
        yield from _augment(draft, backbone)
        yield from _seen_again(draft, backbone)


def _weights(backbone: Chosen, catalog: Catalog) -> Iterator[Problem]:
    """The network within has weights: nothing would ever train random ones. What an own part does is its own."""
    for one in inner(backbone.entry, backbone.options, catalog):
        said = one.part.options
        if one.entry.own or said.get("weights") is not None or said.get("pretrained") is True:
            continue
        right = [f"`{name}`" for name in ("weights", "pretrained: true") if one.entry.parameter(name.partition(":")[0])]
        fitting = [other.name for other in catalog.of("backbone") if other.parameter("weights") and not holders(other)]
        advice = f"give it {' or '.join(right)}" if right else f"backbones that can have others: {listed(fitting)}"
        message = f"{one.entry.kind} {one.entry.name!r} has random weights here, and {backbone} never trains them"
        yield Problem(path=one.path, message=f"{message}; {advice}")


def _augment(draft: RecipeDraft, backbone: Chosen) -> Iterator[Problem]:
    """An image has one look, of which its features are."""
    if draft.rest.augment != "none":
        why = f"{backbone} takes features of the centre of each image, computed once, and draws no crops or flips"
        right = "write `augment: none` (`crop` says how large the centre is), or train the backbone itself"
        yield Problem(path="augment", message=f"{why}; found {draft.rest.augment!r}; {right}")


def _seen_again(draft: RecipeDraft, backbone: Chosen) -> Iterator[Problem]:
    """No task looks at an image in another way."""
    task = draft.parts.get("task")
    if task is None:
        return
    views = task.fact("views")
    several = isinstance(views, int) and views > 1
    if several or task.fact("tiles") is True:
        looks = f"{views} views" if several else "tiles"
        message = f"{task} looks at {looks} of each image, and {backbone} takes features of the whole one"
        yield Problem(path="task", message=f"{message}; take another task, or train the backbone itself")
    if task.options.get("flip") is True:
        message = f"adds the mirror image, and {backbone} takes features of the image alone"
        yield Problem(path="task.flip", message=f"{message}; leave it out, or train the backbone itself")


FEWEST_CLASSES: Final = 2
"""Below it there is no pair of classes to tell apart: neither a training nor an evaluation means anything."""
_USUAL: Final = ("class_holdout",)
"""What a task allows that says nothing of it."""


def holdout_disagreements(draft: RecipeDraft) -> Iterator[Problem]:
    """What does not fit; each rule is silent where something that it needs is absent."""
    yield from _classes(draft)
    yield from _unallowed(draft)
    yield from _selection_split(draft)


def _classes(draft: RecipeDraft) -> Iterator[Problem]:
    """The hold-out leaves enough classes to validate on, and as many to train on as a batch holds."""
    dataset, validation = draft.parts.get("dataset"), draft.validation
    counts = dataset.fact("classes") if dataset else None
    if dataset is None or validation is None or not isinstance(counts, dict):
        return
    total = counts.get("train")
    if not isinstance(total, int):
        return
    remaining, message = total, f"{dataset} has only {counted(total, 'training class')}"
    if isinstance(validation, ImageHoldout):
        yield from _images(dataset, validation)
    elif not isinstance(validation, NoValidation):
        least, most = _extremes(validation, total)
        held, remaining = len(least.held_out(total)), total - len(most.held_out(total))
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training class')}"
        after = f"fold {most.fold} of {most.folds} is held out for validation"
        message = f"only {remaining} of {of_all} remain after {after}"
        message += f"; {_way_out(dataset, validation)}" if _chosen(dataset) else ""
        if held < FEWEST_CLASSES:
            fold = f"fold {least.fold} of {least.folds}"
            needs = f"validation needs at least {FEWEST_CLASSES}; {_way_out(dataset, validation)}"
            yield Problem(path="validation.folds", message=f"{fold} holds out {held} of {of_all}, but {needs}")
    yield from _drawn(draft.parts.get("sampler"), remaining, message)


def _chosen(dataset: Chosen) -> bool:
    """Whether the recipe says how many of the classes train."""
    return dataset.entry.parameter("train_classes") is not None


def _way_out(dataset: Chosen, validation: ClassHoldout | CrossValidation) -> str:
    """What to change where a hold-out is too small, or leaves too little."""
    if not _chosen(dataset):
        return "take fewer folds"
    folds = "take fewer folds, " if validation.folds > FEWEST_CLASSES else ""
    return f"{folds}let more classes train (`dataset.train_classes`), or hold nothing out (`validation: none`)"


@lru_cache(maxsize=256)
def _extremes(validation: ClassHoldout | CrossValidation, total: int) -> tuple[ClassHoldout, ClassHoldout]:
    """The folds that hold out the fewest and the most of the classes."""
    folds = validation.holdouts if isinstance(validation, CrossValidation) else [validation]
    sizes = [len(fold.held_out(total)) for fold in folds]
    return folds[sizes.index(min(sizes))], folds[sizes.index(max(sizes))]


def _drawn(sampler: Chosen | None, remaining: int, message: str) -> Iterator[Problem]:
    """A batch finds its classes among those that remain; `message` says how many these are."""
    option = sampler.fact("draws") if sampler else None
    draws = sampler.options.get(option) if sampler and isinstance(option, str) else None
    if isinstance(draws, int) and draws > remaining:
        drawn = f"the sampler draws {counted(draws, 'class')} a batch"
        yield Problem(path=f"sampler.{option}", message=f"{drawn}, but {message}")
    elif remaining < FEWEST_CLASSES:
        yield Problem(path="dataset", message=f"a training needs at least {FEWEST_CLASSES} classes, but {message}")


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _images(dataset: Chosen, validation: ImageHoldout) -> Iterator[Problem]:
    """The share of the images is large enough to judge by."""
    counts = dataset.fact("images")
    total = counts.get("train") if isinstance(counts, dict) else None
    if isinstance(total, int) and (held := total // validation.folds) < FEWEST_CLASSES:
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training image')}"
        needs = f"validation needs at least {FEWEST_CLASSES}; take fewer folds"
        message = f"fold {validation.fold} of {validation.folds} holds out {held} of {of_all}, but {needs}"
        yield Problem(path="validation.folds", message=message)


def _allowed(task: Chosen | None) -> list[str]:
    """The names of what a task can validate by: nothing where it takes no images, or says so."""
    if task is None or ("batches" in task.entry.asks and "validations" not in task.entry.facts):
        return [*_USUAL]
    return task.entry.stated("validations") if "batches" in task.entry.asks else []


def _unallowed(draft: RecipeDraft) -> Iterator[Problem]:
    """The task can validate so, and the models of several folds are joined only where that means something."""
    task, validation = draft.parts.get("task"), draft.validation
    if task is None or "batches" not in task.entry.asks or validation is None or isinstance(validation, NoValidation):
        return
    allowed = _allowed(task)
    if validation.name not in allowed:
        several = isinstance(validation, CrossValidation)
        why = "has no way to join the models of several folds" if several else f"does not validate by {validation.name}"
        named = ", ".join(f"{{name: {name}}}" for name in allowed)
        right = f"take {named}, or none" if named else "leave it out"
        yield Problem(path="validation", message=f"{task} {why}; {right}")


def _selection_split(draft: RecipeDraft) -> Iterator[Problem]:
    """What selects exists: a validation split only where something is held out."""
    if draft.select and draft.select.beside and draft.select.split != "validation":
        message = f"is only for `split: validation`, but split is {draft.select.split!r}; leave it out"
        yield Problem(path="select.beside", message=message)
    if draft.select and draft.select.split == "validation" and isinstance(draft.validation, NoValidation):
        first = next(iter(_allowed(draft.parts.get("task"))), None)
        right = f"add `validation: {{name: {first}}}`, or select" if first else "select"
        held = {"image_holdout": "no images are", None: "nothing is"}.get(first, "no classes are")
        found = f"{held} held out to select by 'validation'"
        yield Problem(path="select.split", message=f"{found}; {right} by 'test' or 'last'")


def batch_disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """What of a batch does not fit; each rule is silent where something that it needs is absent."""
    yield from _layout(draft, catalog)
    yield from _per_class(draft)
    yield from _views(draft)
    yield from _unlabelled(draft, catalog)
    yield from _by_classes(draft, catalog)
    yield from _tiled(draft, catalog)
    yield from _alone(draft)


def _layout(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """The loss can use the order in which the sampler lays out a batch."""
    loss, sampler = draft.parts.get("loss"), draft.parts.get("sampler")
    accepted, given = loss.fact("layout") if loss else None, sampler.fact("layout") if sampler else None
    accepted = [accepted] if isinstance(accepted, str) else accepted
    if not isinstance(accepted, list) or given is None or given in accepted or _blind(draft):
        return
    fitting = [entry.name for entry in catalog.of("sampler") if entry.facts.get("layout") in accepted]
    wants = f"{loss} takes batches laid out as {listed(accepted)}, but {sampler} gives {given!r}"
    yield Problem(path="sampler", message=f"{wants}; samplers that fit: {listed(fitting)}")


def _per_class(draft: RecipeDraft) -> Iterator[Problem]:
    """The loss finds a partner for every image of a class that the sampler draws."""
    loss, sampler = draft.parts.get("loss"), draft.parts.get("sampler")
    multiple = loss.fact("per_class_multiple") if loss and not _several(draft) else None
    given = sampler.options.get("per_class") if sampler else None
    if isinstance(multiple, int) and isinstance(given, int) and given % multiple:
        below = given - given % multiple
        right = f"take {below} or {below + multiple}" if below else f"take {multiple}"
        found = f"{loss} pairs the images of a class {multiple} by {multiple}, but the sampler draws {given}"
        yield Problem(path="sampler.per_class", message=f"{found}; {right}")


def _several(draft: RecipeDraft) -> bool:
    """Whether the task looks at several views of an image, and not at its label."""
    views = task.fact("views") if (task := draft.parts.get("task")) else None
    return isinstance(views, int) and views > 1


def _tiles(draft: RecipeDraft) -> bool:
    """Whether the task looks at an image and its tiles, and not at its label."""
    task = draft.parts.get("task")
    return bool(task and task.fact("tiles") is True)


def _blind(draft: RecipeDraft) -> bool:
    """Whether the task lays out what belongs together by itself, whatever the labels of images."""
    return _several(draft) or _tiles(draft)


def _tiled(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """A task of an image and its tiles has a loss of these, and no other task has one."""
    task, loss = draft.parts.get("task"), draft.parts.get("loss")
    if not (task and loss) or _tiles(draft) is (loss.fact("tiles") is True):
        return
    fitting = [entry.name for entry in catalog.of("loss") if entry.facts.get("tiles") is True]
    if _tiles(draft):
        message = f"{task} compares an image with its tiles, which {loss} does not; losses that fit: {listed(fitting)}"
    else:
        tasks = [entry.name for entry in catalog.of("task") if entry.facts.get("tiles") is True]
        message = f"{loss} compares an image with its tiles, which {task} does not make; take {listed(tasks)}"
    yield Problem(path="loss", message=message)


def _alone(draft: RecipeDraft) -> Iterator[Problem]:
    """A task that tells images apart by their views or tiles has two of them at least in a batch."""
    task, sampler = draft.parts.get("task"), draft.parts.get("sampler")
    batch = sampler.options.get("batch") if sampler else None
    if _blind(draft) and isinstance(batch, int) and batch < 2:
        yield Problem(path="sampler.batch", message=f"expected at least 2 for {task}, which tells images apart")


def _by_classes(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """Nothing draws by classes for a task that is to learn without them."""
    task, sampler = draft.parts.get("task"), draft.parts.get("sampler")
    if task and sampler and _blind(draft) and sampler.fact("draws") == "classes":
        blind = f"but {task} looks at {'views' if _several(draft) else 'tiles'} of images and at no labels"
        fitting = [entry.name for entry in catalog.of("sampler") if entry.facts.get("draws") != "classes"]
        yield Problem(
            path="sampler", message=f"{sampler} draws by classes, {blind}; samplers that fit: {listed(fitting)}"
        )


def _unlabelled(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """Where a task looks at views of an image they differ, and nothing asks for classes."""
    task, loss = draft.parts.get("task"), draft.parts.get("loss")
    if not (task and _several(draft)):
        return
    if draft.rest.augment == "none":
        message = f"{task} looks at {task.fact('views')} views of each image, which `none` leaves equal"
        yield Problem(path="augment", message=f"{message}; take 'simclr' or 'crop_flip'")
    blind = f"but {task} looks at views of images and at no labels"
    if loss and not _of_labels_alone(loss.entry):
        fitting = [entry.name for entry in catalog.of("loss") if _of_labels_alone(entry)]
        yield Problem(
            path="loss", message=f"{loss} needs the classes of images, {blind}; losses that fit: {listed(fitting)}"
        )


def _of_labels_alone(loss: Entry) -> bool:
    """Whether a loss is one of embeddings of which some belong together, whatever the classes and their order."""
    return not loss.facts.get("layout") and "classes" not in loss.asks


def _views(draft: RecipeDraft) -> Iterator[Problem]:
    """A loss over the views of an image finds views under the augmentation that names its method, and not labels."""
    loss, task, augment = draft.parts.get("loss"), draft.parts.get("task"), draft.rest.augment
    if loss and task and augment == "simclr" and loss.fact("views") and not _several(draft):
        found = f"{loss} with `augment: simclr` means SimCLR, whose positives are two views of an image"
        trained = f"but {task} gives it the labels, so that it would train supervised under SimCLR's name"
        yield Problem(path="loss", message=f"{found}, {trained}; take another loss, or another `augment`")


def disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """What does not fit together; each rule is silent where something that it needs is absent."""
    yield from misfits(draft.parts)
    yield from holdout_disagreements(draft)
    yield from batch_disagreements(draft, catalog)
    yield from label_disagreements(draft, catalog)
    yield from frozen_disagreements(draft, catalog)
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
    elif entry is not None and dataset and entry.facts.get("needs") == NEEDS and _dear(draft, dataset):
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
    clustered = stated(dataset.entry, dataset.options, draft.rest.embedding)
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
