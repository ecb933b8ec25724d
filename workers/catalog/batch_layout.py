"""Whether what stands in a batch is what loss and task look for: its order, its labels, views and tiles of images."""

from collections.abc import Iterator

from workers.catalog.draft import RecipeDraft
from workers.catalog.inventory import Catalog
from workers.catalog.signature import Entry
from workers.catalog.wording import Problem, listed


def disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
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
