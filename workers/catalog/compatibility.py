"""Whether the parts of a recipe go together: labels, batches, hold-outs, frozen backbones, the cost of clustering."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import JsonValue

from workers.catalog.inventory import Catalog, Entry, Inner, MetricFacts, holders
from workers.catalog.wording import Problem, counted, listed, not_computed, shown
from workers.contract import PML, ClassHoldout, CrossValidation, ImageHoldout, NoValidation, Recipe, Select, Validation
from workers.figures.options import Followed, Staged

NEEDS: Final = "clusters_sec"
"""The fact `needs` of metrics that are computed from the k-means of SEC's code."""
STARTS: Final = 10
EXPENSIVE: Final = 10**10
"""A clustering with more multiplications for one iteration of one start is expensive. With embeddings of width 512,
CUB's test images take 3e8 and SOP's 3.5e11."""

_FEWEST_CLASSES: Final = 2  # with fewer classes there is no pair of classes to tell apart, in training or in evaluation


@dataclass(frozen=True)
class Chosen:
    """A part that a recipe names and that exists, with its hyper-parameters including defaults."""

    entry: Entry
    options: Mapping[str, JsonValue]
    inner: Sequence[Inner] = ()
    """The parts among its hyper-parameters."""

    def __str__(self) -> str:
        return f"{self.entry.kind} {self.entry.name!r}"

    def fact(self, name: str) -> JsonValue:
        return self.entry.facts.get(name)


@dataclass(frozen=True)
class RecipeDraft:
    """The valid parts and fields of a recipe that is being checked."""

    parts: Mapping[str, Chosen]
    validation: Validation | None
    select: Select | None
    rest: Recipe  # the plain fields; invalid ones have their defaults
    length: int | None  # iterations or epochs
    catalog: Catalog
    metrics: Mapping[str, MetricFacts] = field(default_factory=dict)  # of `rest.metrics` and `select.metric`

    def fact(self, kind: str, name: str) -> JsonValue:
        """A fact that the recipe's part of this kind declares; None without such a part or fact."""
        return self.parts[kind].fact(name) if kind in self.parts else None

    @property
    def views(self) -> int:
        """The number of views of each image that the task compares; 1 if it compares images by their labels."""
        views = self.fact("task", "views")
        return views if isinstance(views, int) else 1

    @property
    def tiles(self) -> bool:
        """Whether the task compares images with their tiles."""
        return self.fact("task", "tiles") is True

    @property
    def unlabelled(self) -> bool:
        """Whether the task ignores the labels of images."""
        return self.views > 1 or self.tiles

    def fitting(self, kind: str, fits: Callable[[Entry], bool]) -> str:
        """The names of the parts of a kind for which `fits` holds, listed for a message."""
        return listed(entry.name for entry in self.catalog.of(kind) if fits(entry))


def disagreements(draft: RecipeDraft) -> Iterator[Problem]:
    """The problems of a recipe whose parts do not go together. A rule is skipped if a part or field it needs is
    absent.
    """
    for rule in _RULES:
        yield from rule(draft)


class Clustering(NamedTuple):
    """A k-means clustering of images by embeddings, into as many clusters as classes; used to estimate its cost."""

    images: int
    classes: int
    width: int

    @property
    def products(self) -> int:
        """The multiplications of one k-means iteration of one start: every image with every centre."""
        return self.images * self.classes * self.width

    @property
    def expensive(self) -> bool:
        """Whether the clustering is computed only at the end of a training, instead of at each evaluation."""
        return self.products > EXPENSIVE


def clustering_of(dataset: Entry, options: Mapping[str, JsonValue], width: int) -> Clustering | None:
    """The clustering of a data set's test images; None if their number is not known or only a part of them is used."""
    images = _count(dataset, "queries", "test") or _count(dataset, "images", "test")
    classes = _count(dataset, "classes", "test")
    if images is None or classes is None or options.get("official") is False:
        return None
    return Clustering(images, classes, width)


def _count(dataset: Entry, fact: str, split: str) -> int | None:
    counts = dataset.facts.get(fact)
    number = counts.get(split) if isinstance(counts, dict) else None
    return number if isinstance(number, int) else None


def _options(draft: RecipeDraft) -> Iterator[Problem]:
    yield from _dependent_options(draft.parts)
    for part in draft.parts.values():
        yield from _dependent_options({one.path: Chosen(one.entry, one.part.options) for one in part.inner})


def _dependent_options(parts: Mapping[str, Chosen]) -> Iterator[Problem]:
    """A hyper-parameter is allowed only where others have the values that the part's fact `only_where` states."""
    for path, part in parts.items():
        rules = part.fact("only_where")
        for name, rule in rules.items() if isinstance(rules, dict) else ():
            for other, wanted in rule.items() if isinstance(rule, dict) else ():
                if part.options.get(name) is not None and part.options.get(other) != wanted:
                    found = f"`{other}: {wanted}`, but {other} is {shown(part.options.get(other))}"
                    yield Problem(path=f"{path}.{name}", message=f"is only for {found}; leave one of them out")


def _hold_out_of_classes(draft: RecipeDraft) -> Iterator[Problem]:
    """A hold-out leaves enough classes to validate on, and as many to train on as a batch needs."""
    dataset, validation = draft.parts.get("dataset"), draft.validation
    total = _count(dataset.entry, "classes", "train") if dataset else None
    if dataset is None or validation is None or total is None:
        return
    least = most = None
    held = remaining = total
    if isinstance(validation, ImageHoldout):
        yield from _hold_out_of_images(dataset, validation)
    elif not isinstance(validation, NoValidation):
        least, most = _extremes(validation, total)
        held, remaining = len(least.held_out(total)), total - len(most.held_out(total))
    sampler = draft.parts.get("sampler")
    option = sampler.fact("draws") if sampler else None
    draws = sampler.options.get(option) if sampler and isinstance(option, str) else None
    drawn = draws if isinstance(draws, int) else 0
    if held >= _FEWEST_CLASSES and remaining >= max(drawn, _FEWEST_CLASSES):
        return
    message = f"{dataset} has only {counted(total, 'training class')}"
    if least and most and not isinstance(validation, NoValidation):
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training class')}"
        after = f"fold {most.fold} of {most.folds} is held out for validation"
        message = f"only {remaining} of {of_all} remain after {after}"
        advice = "take fewer folds"
        if dataset.entry.parameter("train_classes") is not None:
            folds = f"{advice}, " if validation.folds > _FEWEST_CLASSES else ""
            more = "let more classes train (`dataset.train_classes`), or hold nothing out (`validation: none`)"
            advice = f"{folds}{more}"
            message += f"; {advice}"
        if held < _FEWEST_CLASSES:
            needs = f"validation needs at least {_FEWEST_CLASSES}; {advice}"
            found = f"fold {least.fold} of {least.folds} holds out {held} of {of_all}"
            yield Problem(path="validation.folds", message=f"{found}, but {needs}")
    if drawn > remaining:
        batch = f"the sampler draws {counted(drawn, 'class')} a batch"
        yield Problem(path=f"sampler.{option}", message=f"{batch}, but {message}")
    elif remaining < _FEWEST_CLASSES:
        yield Problem(path="dataset", message=f"a training needs at least {_FEWEST_CLASSES} classes, but {message}")


def _hold_out_of_images(dataset: Chosen, validation: ImageHoldout) -> Iterator[Problem]:
    total = _count(dataset.entry, "images", "train")
    if total is not None and (held := total // validation.folds) < _FEWEST_CLASSES:
        of_all = f"{_possessive(dataset.entry.name)} {counted(total, 'training image')}"
        needs = f"validation needs at least {_FEWEST_CLASSES}; take fewer folds"
        message = f"fold {validation.fold} of {validation.folds} holds out {held} of {of_all}, but {needs}"
        yield Problem(path="validation.folds", message=message)


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


@lru_cache(maxsize=256)  # a spec may have 10,000 recipes of 1,000 folds
def _extremes(validation: ClassHoldout | CrossValidation, total: int) -> tuple[ClassHoldout, ClassHoldout]:
    """The folds that hold out the fewest and the most classes."""
    folds = validation.holdouts if isinstance(validation, CrossValidation) else [validation]
    sizes = [len(fold.held_out(total)) for fold in folds]
    return folds[sizes.index(min(sizes))], folds[sizes.index(max(sizes))]


def _kind_of_hold_out(draft: RecipeDraft) -> Iterator[Problem]:
    task, validation = draft.parts.get("task"), draft.validation
    if task is None or "batches" not in task.entry.inputs or validation is None or isinstance(validation, NoValidation):
        return
    allowed = _allowed_hold_outs(task)
    if validation.name not in allowed:
        several = isinstance(validation, CrossValidation)
        why = "has no way to join the models of several folds" if several else f"does not validate by {validation.name}"
        named = ", ".join(f"{{name: {name}}}" for name in allowed)
        right = f"take {named}, or none" if named else "leave it out"
        yield Problem(path="validation", message=f"{task} {why}; {right}")


def _allowed_hold_outs(task: Chosen | None) -> list[str]:
    """The names of the hold-outs that a task allows; a task of images that states none allows `class_holdout`."""
    if task is None or ("batches" in task.entry.inputs and "validations" not in task.entry.facts):
        return ["class_holdout"]
    return task.entry.fact_names("validations") if "batches" in task.entry.inputs else []


def _selection_split(draft: RecipeDraft) -> Iterator[Problem]:
    if draft.select is None:
        return
    if draft.select.beside and draft.select.split != "validation":
        message = f"is only for `split: validation`, but split is {draft.select.split!r}; leave it out"
        yield Problem(path="select.beside", message=message)
    if draft.select.split == "validation" and isinstance(draft.validation, NoValidation):
        first = next(iter(_allowed_hold_outs(draft.parts.get("task"))), None)
        right = f"add `validation: {{name: {first}}}`, or select" if first else "select"
        held = {"image_holdout": "no images are", None: "nothing is"}.get(first, "no classes are")
        found = f"{held} held out to select by 'validation'"
        yield Problem(path="select.split", message=f"{found}; {right} by 'test' or 'last'")


def _layout(draft: RecipeDraft) -> Iterator[Problem]:
    """The loss can use the order in which the sampler arranges a batch."""
    accepted, layout = draft.fact("loss", "layout"), draft.fact("sampler", "layout")
    accepted = [accepted] if isinstance(accepted, str) else accepted
    if not isinstance(accepted, list) or layout is None or layout in accepted or draft.unlabelled:
        return
    fitting = draft.fitting("sampler", lambda entry: entry.facts.get("layout") in accepted)
    wants = f"{draft.parts['loss']} takes batches laid out as {listed(accepted)}"
    found = f"but {draft.parts['sampler']} gives {layout!r}"
    yield Problem(path="sampler", message=f"{wants}, {found}; samplers that fit: {fitting}")


def _per_class(draft: RecipeDraft) -> Iterator[Problem]:
    """The loss finds a partner for every image of a class that the sampler draws."""
    multiple = draft.fact("loss", "per_class_multiple") if draft.views == 1 else None
    drawn = draft.parts["sampler"].options.get("per_class") if "sampler" in draft.parts else None
    if isinstance(multiple, int) and isinstance(drawn, int) and drawn % multiple:
        below = drawn - drawn % multiple
        right = f"take {below} or {below + multiple}" if below else f"take {multiple}"
        pairs = f"{draft.parts['loss']} pairs the images of a class {multiple} by {multiple}"
        yield Problem(path="sampler.per_class", message=f"{pairs}, but the sampler draws {drawn}; {right}")


def _supervised_simclr(draft: RecipeDraft) -> Iterator[Problem]:
    loss, task = draft.parts.get("loss"), draft.parts.get("task")
    if loss and task and draft.rest.augment == "simclr" and loss.fact("views") and draft.views == 1:
        found = f"{loss} with `augment: simclr` means SimCLR, whose positives are two views of an image"
        trained = f"but {task} gives it the labels, so that it would train supervised under SimCLR's name"
        yield Problem(path="loss", message=f"{found}, {trained}; take another loss, or another `augment`")


def _views(draft: RecipeDraft) -> Iterator[Problem]:
    """The views of an image differ, and the loss needs no classes."""
    if draft.views == 1:
        return
    task, loss = draft.parts["task"], draft.parts.get("loss")
    if draft.rest.augment == "none":
        message = f"{task} looks at {draft.views} views of each image, which `none` leaves equal"
        yield Problem(path="augment", message=f"{message}; take 'simclr' or 'crop_flip'")
    if loss and not _ignores_classes(loss.entry):
        needs = f"{loss} needs the classes of images, but {task} looks at views of images and at no labels"
        fitting = draft.fitting("loss", _ignores_classes)
        yield Problem(path="loss", message=f"{needs}; losses that fit: {fitting}")


def _ignores_classes(loss: Entry) -> bool:
    """Whether a loss only needs to know which embeddings belong together."""
    return not loss.facts.get("layout") and "classes" not in loss.inputs


def _draws_by_classes(draft: RecipeDraft) -> Iterator[Problem]:
    if draft.unlabelled and draft.fact("sampler", "draws") == "classes":
        what = "views" if draft.views > 1 else "tiles"
        found = f"{draft.parts['sampler']} draws by classes"
        blind = f"but {draft.parts['task']} looks at {what} of images and at no labels"
        fitting = draft.fitting("sampler", lambda entry: entry.facts.get("draws") != "classes")
        yield Problem(path="sampler", message=f"{found}, {blind}; samplers that fit: {fitting}")


def _tiles(draft: RecipeDraft) -> Iterator[Problem]:
    """A task that compares images with their tiles has a loss of these, and no other task has one."""
    task, loss = draft.parts.get("task"), draft.parts.get("loss")
    if not (task and loss) or draft.tiles is (loss.fact("tiles") is True):
        return
    if draft.tiles:
        fitting = draft.fitting("loss", lambda entry: entry.facts.get("tiles") is True)
        message = f"{task} compares an image with its tiles, which {loss} does not; losses that fit: {fitting}"
    else:
        tasks = draft.fitting("task", lambda entry: entry.facts.get("tiles") is True)
        message = f"{loss} compares an image with its tiles, which {task} does not make; take {tasks}"
    yield Problem(path="loss", message=message)


def _batch_of_one(draft: RecipeDraft) -> Iterator[Problem]:
    batch = draft.parts["sampler"].options.get("batch") if "sampler" in draft.parts else None
    if draft.unlabelled and isinstance(batch, int) and batch < 2:
        message = f"expected at least 2 for {draft.parts['task']}, which tells images apart"
        yield Problem(path="sampler.batch", message=message)


def _probe(draft: RecipeDraft) -> Iterator[Problem]:
    """A probe is tested on the classes that it has learned; a data set that states no classes is accepted."""
    if draft.fact("task", "probes") is not True or not isinstance(draft.fact("dataset", "classes"), dict):
        return
    if draft.fact("dataset", "same_classes") is not True:
        judges = f"{draft.parts['task']} judges features by classes that a probe has learned"
        found = f"the test images of {draft.parts['dataset']} are of other classes than its training images"
        fitting = draft.fitting("dataset", lambda entry: entry.facts.get("same_classes") is True)
        yield Problem(path="dataset", message=f"{judges}, but {found}; data sets that fit: {fitting}")


def _top_k(draft: RecipeDraft) -> Iterator[Problem]:
    """The k of a top-k accuracy is at most the number of classes."""
    dataset = draft.parts.get("dataset")
    classes = _count(dataset.entry, "classes", "test") if dataset else None
    named = [(f"metrics.{place}", name) for place, name in enumerate(draft.rest.metrics)]
    for path, name in [*named, *([("select.metric", draft.select.metric)] if draft.select else [])]:
        entry, k = draft.metrics[name].entry, name.partition("@")[2]
        wanted = int(k) if k.isdecimal() else 0
        if entry and entry.facts.get("of_classes") is True and classes is not None and wanted > classes:
            message = f"metric {name!r} has no meaning where {dataset} has {classes} classes; take a smaller k"
            yield Problem(path=path, message=message)


def _frozen(draft: RecipeDraft) -> Iterator[Problem]:
    """A frozen backbone has weights, and gives each image one feature vector."""
    if draft.fact("backbone", "reads") != "features":
        return
    backbone, task = draft.parts["backbone"], draft.parts.get("task")
    yield from _frozen_weights(backbone, draft.catalog)
    if draft.rest.augment != "none":
        why = f"{backbone} takes features of the centre of each image, computed once, and draws no crops or flips"
        right = "write `augment: none` (`crop` says how large the centre is), or train the backbone itself"
        yield Problem(path="augment", message=f"{why}; found {draft.rest.augment!r}; {right}")
    if draft.unlabelled:
        looks = f"{draft.views} views" if draft.views > 1 else "tiles"
        message = f"{task} looks at {looks} of each image, and {backbone} takes features of the whole one"
        yield Problem(path="task", message=f"{message}; take another task, or train the backbone itself")
    if task and task.options.get("flip") is True:
        message = f"adds the mirror image, and {backbone} takes features of the image alone"
        yield Problem(path="task.flip", message=f"{message}; leave it out, or train the backbone itself")


def _frozen_weights(backbone: Chosen, catalog: Catalog) -> Iterator[Problem]:
    for within in backbone.inner:
        entry, options = within.entry, within.part.options
        if entry.own or options.get("weights") is not None or options.get("pretrained") is True:
            continue
        right = [f"`{name}`" for name in ("weights", "pretrained: true") if entry.parameter(name.partition(":")[0])]
        fitting = [other.name for other in catalog.of("backbone") if other.parameter("weights") and not holders(other)]
        advice = f"give it {' or '.join(right)}" if right else f"backbones that can have others: {listed(fitting)}"
        message = f"{entry.kind} {entry.name!r} has random weights here, and {backbone} never trains them"
        yield Problem(path=within.path, message=f"{message}; {advice}")


def _library(draft: RecipeDraft) -> Iterator[Problem]:
    """What a loss of pytorch-metric-learning takes, and the distances that it and its miner need."""
    loss, sampler = draft.parts.get("loss"), draft.parts.get("sampler")
    held = {within.option: within for within in loss.inner} if loss else {}
    if loss is None or "of" not in held or held["of"].entry.kind != PML[0]:
        return
    of, memory = held["of"].entry, loss.options["memory"]
    for option, value in loss.options.items():
        if value and option not in of.fact_names("takes") and option in {*_TAKEN, "memory"}:
            yield Problem(f"loss.{option}", f"{of.name} takes none; leave it out")
    for option, needed in {"miner_distance": "miner", "memory_start": "memory"}.items():
        if loss.options[option] and not loss.options[needed]:
            yield Problem(f"loss.{option}", f"is only for `{needed}`; leave it out, or give both")
    for owner, option in {"of": "distance", "miner": "miner_distance"}.items():
        if owner in held and option in held:
            yield from _unfit_distance(held[owner].entry, held[option])
    if of.facts.get("square") and sampler and sampler.options.get("classes") != sampler.options.get("per_class"):
        message = f"{of.name} is right only in batches with as many classes as images of each; change one of them"
        yield Problem("sampler.per_class", message)
    batch = sampler and (sampler.options.get("batch") or _product(sampler.options))
    if isinstance(memory, int) and isinstance(batch, int) and 0 < memory < batch:
        yield Problem(
            "loss.memory", f"expected at least the batch, which has {counted(batch, 'image')}; found {memory}"
        )


_TAKEN: Final = ("miner", "distance", "reducer", "embedding_regularizer", "weight_regularizer")


def _product(options: Mapping[str, JsonValue]) -> int | None:
    """The images of a batch of `classes` x `per_class`."""
    classes, images = options.get("classes"), options.get("per_class")
    return classes * images if isinstance(classes, int) and isinstance(images, int) else None


def _unfit_distance(owner: Entry, distance: Inner) -> Iterator[Problem]:
    fitting, options = owner.fact_names("distances"), owner.facts.get("distance_options")
    if fitting and distance.part.name not in fitting:
        yield Problem(distance.path, f"{owner.name} takes no {distance.part.name}; it takes {listed(fitting)}")
        return
    for name, value in options.items() if isinstance(options, dict) else ():
        found = distance.entry.filled(distance.part.options)[name]
        if found != value:
            message = f"{owner.name} takes {shown(value)} alone, found {shown(found)}; leave it out"
            yield Problem(f"{distance.path}.{name}", message)


def _norms(draft: RecipeDraft) -> Iterator[Problem]:
    """A regularizer of norms needs embeddings of different norms."""
    if draft.fact("regularizer", "norms") is True and draft.fact("head", "output") == "unit":
        raw = draft.fitting("head", lambda entry: entry.facts.get("output") == "raw")
        acts = f"{draft.parts['regularizer']} acts on the norms of embeddings"
        message = f"{acts}, but with {draft.parts['head']} every norm is 1; heads that fit: {raw}"
        yield Problem(path="regularizer", message=message)


def _metrics(draft: RecipeDraft) -> Iterator[Problem]:
    for place, metric in enumerate(draft.rest.metrics):
        if message := draft.metrics[metric].problem:
            yield Problem(path=f"metrics.{place}", message=message)


def _selection_metric(draft: RecipeDraft) -> Iterator[Problem]:
    """The metric that selects exists, is computed on this data set, and has better and worse values."""
    if draft.select is None:
        return
    metric = draft.select.metric
    dataset, task = draft.parts.get("dataset"), draft.parts.get("task")
    owner = dataset or (task if task and "batches" not in task.entry.inputs else None)
    entry, message, at_the_end, declared = draft.metrics[metric]
    declared = [*declared, *draft.rest.metrics] if owner and task else []
    if entry is not None and entry.facts.get("better") == "none":
        message = f"metric {metric!r} has no better value to select by"
    elif entry is not None and owner and not message and metric not in declared:
        message = not_computed(str(owner), metric, declared)
    elif entry is not None and at_the_end and draft.select.split != "last":
        reason = f"{task} measures {metric!r} at the end only, of the weights that are kept"
        message = f"{reason}; write `split: last`, or select by another"
    elif (
        entry is not None and dataset and entry.facts.get("needs") == NEEDS and _expensive(draft.select, dataset, draft)
    ):
        message = f"metric {metric!r} is expensive on {dataset}, and computed only at the end; select by another"
    if message:
        yield Problem(path="select.metric", message=message)


def _expensive(select: Select, dataset: Chosen, draft: RecipeDraft) -> bool:
    """Whether the clustering by which a checkpoint is chosen is expensive."""
    clustered = clustering_of(dataset.entry, dataset.options, draft.rest.embedding)
    return "test" in select.watched and clustered is not None and clustered.expensive


def _patience(draft: RecipeDraft) -> Iterator[Problem]:
    if draft.rest.patience is not None and draft.select and draft.select.split == "last":
        message = "waits for a better score, but `select.split` 'last' keeps the last checkpoint whatever its score"
        yield Problem(path="patience", message=f"{message}; leave it out, or select by 'validation' or 'test'")


def _warmup(draft: RecipeDraft) -> Iterator[Problem]:
    """The warm-up may be the whole training; what a part's fact `shorter_than_training` names is shorter than it."""
    if draft.length is None:
        return
    length = f"the {draft.length:,} {'iterations' if draft.rest.epochs is None else 'epochs'} of the training"
    if draft.rest.warmup > draft.length:
        yield Problem(path="warmup", message=f"expected at most {length}, found {draft.rest.warmup:,}")
    for kind, part in draft.parts.items():
        for name in part.entry.fact_names("shorter_than_training"):
            value = part.options.get(name)
            if isinstance(value, int | float) and value >= draft.length:
                yield Problem(path=f"{kind}.{name}", message=f"expected less than {length}, found {value:,}")


def _crop(draft: RecipeDraft) -> Iterator[Problem]:
    dataset, crop = draft.parts.get("dataset"), draft.rest.crop
    # The hyper-parameter says how large images are made; the fact, how large they are.
    side = dataset.options.get("side", dataset.fact("side")) if dataset else None
    if crop is not None and isinstance(side, int) and crop > side:
        yield Problem(path="crop", message=f"the images of {dataset} have {side} pixels a side; found {crop}")


def _figures(draft: RecipeDraft) -> Iterator[Problem]:
    figures, task = draft.rest.figures, draft.parts.get("task")
    drawn = task.entry.fact_names("figures") if task else []
    files = [figure.file for figure in figures]
    if len(set(files)) < len(files):
        yield Problem(path="figures", message=f"expected each figure once, found {listed(files)}")
    for place, figure in enumerate(figures):
        path = f"figures.{place}"
        if task and figure.name not in drawn:
            known = f"it draws {listed(drawn)}" if drawn else "it draws none"
            yield Problem(path=path, message=f"{task} draws no figure {figure.name!r}; {known}")
            continue
        if figure.name == "unit_circle" and draft.rest.embedding != 2:
            dimensions = f"`embedding` is {draft.rest.embedding}"
            yield Problem(path=path, message=f"'unit_circle' shows embeddings in 2 dimensions, but {dimensions}")
        if figure.name == "feature_maps" and draft.fact("backbone", "flat"):
            shows = f"'feature_maps' shows maps, but {draft.parts['backbone']} makes none of an image"
            yield Problem(path=path, message=shows)
        if isinstance(figure, Staged):
            if draft.length and (trouble := figure.trouble(draft.length)):
                yield Problem(path=f"{path}.at", message=f"{figure.name!r} {trouble}")
        elif isinstance(figure, Followed):
            # Only the trainer knows how many iterations an epoch has.
            if draft.length and draft.rest.epochs is None and (trouble := figure.trouble(draft.length)):
                yield Problem(path=path, message=f"{figure.name!r} {trouble}")
        elif figure.split == "validation" and isinstance(draft.validation, NoValidation):
            message = "no classes are held out; take split 'test' or 'train', or add `validation`"
            yield Problem(path=f"{path}.split", message=message)


def _distance(draft: RecipeDraft) -> Iterator[Problem]:
    task, distance = draft.parts.get("task"), draft.rest.distance
    if task and distance != "cosine" and distance not in (known := task.entry.fact_names("distances")):
        ranks = f"it takes {listed(known)}" if known else "leave `distance` out"
        yield Problem(path="distance", message=f"{task} does not rank by the distance {distance!r}; {ranks}")


_RULES: Final[tuple[Callable[[RecipeDraft], Iterator[Problem]], ...]] = (
    _options, _kind_of_hold_out, _selection_split, _layout, _per_class, _supervised_simclr, _views, _draws_by_classes,
    _tiles, _batch_of_one, _probe, _top_k, _frozen, _library, _norms, _metrics, _selection_metric, _patience, _warmup,
    _crop, _figures, _distance, _hold_out_of_classes,
)  # fmt: skip
