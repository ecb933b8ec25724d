"""Whether a recipe fits a backbone that is never trained: what its features cannot tell is asked of images."""

from collections.abc import Iterator

from workers.catalog.chosen import Chosen, misfits
from workers.catalog.draft import RecipeDraft
from workers.catalog.inner_parts import holders, inner
from workers.catalog.inventory import Catalog
from workers.catalog.wording import Problem, listed


def disagreements(draft: RecipeDraft, catalog: Catalog) -> Iterator[Problem]:
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
