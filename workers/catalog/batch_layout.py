"""Whether what stands in a batch is what loss and task look for: its order, its labels, its views of images."""

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


def _layout(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """The loss can use the order in which the sampler lays out a batch."""
    loss, sampler = draft.parts.get("loss"), draft.parts.get("sampler")
    accepted, given = loss.fact("layout") if loss else None, sampler.fact("layout") if sampler else None
    accepted = [accepted] if isinstance(accepted, str) else accepted
    if not isinstance(accepted, list) or given is None or given in accepted or _several(draft):
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


def _unlabelled(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
    """Where a task looks at views of an image they differ, and nothing asks for classes."""
    task, loss, sampler = (draft.parts.get(kind) for kind in ("task", "loss", "sampler"))
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
    if sampler and sampler.fact("draws") == "classes":
        fitting = [entry.name for entry in catalog.of("sampler") if entry.facts.get("draws") != "classes"]
        yield Problem(
            path="sampler", message=f"{sampler} draws by classes, {blind}; samplers that fit: {listed(fitting)}"
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
