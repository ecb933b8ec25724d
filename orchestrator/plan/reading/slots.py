"""The slot of each trial: that of the spec, and what `slots` changes for values of some axes."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from pydantic import JsonValue, ValidationError

from orchestrator.plan.problems.sentences import sentences
from orchestrator.plan.reading.points import cells_of, points
from orchestrator.plan.reading.when import Known, read_when
from orchestrator.spec.slot import Slot, SlotRule
from orchestrator.spec.spec import Spec
from orchestrator.spec.when import applies
from orchestrator.views.planned import Labels
from workers.catalog import Problem, meant, shown

MOST_LOOKED_AT: Final = 100_000
MOST_RULES: Final = 1_000
FIELDS: Final = tuple(Slot.model_fields)


def read_slot(posted: Mapping[str, Any], source: str, problems: list[Problem]) -> dict[str, JsonValue]:
    """The fields of a slot that are named, with shares of a GPU written out; notes what is wrong with them."""
    try:
        slot = Slot.model_validate(dict(posted), strict=True)
    except ValidationError as error:
        problems.extend(sentences(error, source, Slot))
        return {}
    named = {field: value for field, value in slot.model_dump(mode="json").items() if field in posted}
    if isinstance(slot.gpus, float | int) and "gpus" in posted:
        right, share = _share(slot.gpus)
        if right:
            problems.append(Problem(f"{source}.gpus", f"expected {right}; found {shown(slot.gpus)}"))
        named["gpus"] = share
    if "resources" in posted:  # which an empty mapping takes back
        named["resources"] = dict(slot.resources)
    return named


def read_slots(posted: Any, known: Known, problems: list[Problem]) -> list[SlotRule]:
    """The entries of `slots`; notes what is wrong with them."""
    if posted is None:
        return []
    expected = "expected a list of mappings with `when` and what the slot has there"
    if not isinstance(posted, list):
        problems.append(Problem("slots", f"{expected}, found {shown(posted)}"))
        return []
    if len(posted) > MOST_RULES:
        problems.append(Problem("slots", f"there are {len(posted):,} entries; at most {MOST_RULES:,} are allowed"))
        return []
    rules: list[SlotRule] = []
    for at, entry in enumerate(posted):
        source = f"slots[{at}]"
        if not isinstance(entry, Mapping):
            problems.append(Problem(source, f"{expected}, found {shown(entry)}"))
            continue
        when = read_when(entry.get("when"), f"{source}.when", known, problems)
        given = {field: value for field, value in entry.items() if field != "when"}
        if not given:
            problems.append(Problem(source, f"names nothing of a slot; {meant('', FIELDS)}"))
            continue
        rules.append(SlotRule(when=when, slot=read_slot(given, source, problems)))
    return rules


def slot_of(spec: Spec, labels: Labels) -> Slot | None:
    """The slot of the trials with these labels of compare and tune axes; none: that of the spec."""
    if not spec.slots:
        return None
    slot = _slot(spec, labels)
    return None if slot == spec.slot else slot


def where(spec: Spec, labels: Labels) -> str:
    """What gives trials with these labels a slot of their own: `dataset=sop`; empty where nothing does."""
    rules = [rule for rule in spec.slots if applies(rule.when, labels)]
    axes = dict.fromkeys(axis for rule in rules for axis in rule.when)
    return ", ".join(f"{axis}={labels[axis]}" for axis in axes)


def slots(spec: Spec) -> Iterator[tuple[Slot, str]]:
    """Every different slot of a spec's trials, and which trials it is of (empty: those without a slot of their own)."""
    told: set[str] = set()
    for labels in islice(_places(spec), MOST_LOOKED_AT):
        slot = _slot(spec, labels)
        key = slot.model_dump_json()
        if key not in told:
            told.add(key)
            yield slot, "" if slot == spec.slot else where(spec, labels)


def _slot(spec: Spec, labels: Labels) -> Slot:
    named: dict[str, JsonValue] = spec.slot.model_dump(mode="json")
    for rule in spec.slots:
        if applies(rule.when, labels):
            named |= rule.slot
    return Slot.model_validate(named)


def _places(spec: Spec) -> Iterator[Labels]:
    """The labels that decide on slots, of every candidate."""
    if not spec.slots:
        yield {}
        return
    tuned = any(axis in spec.tune for rule in spec.slots for axis in rule.when)
    for cell in cells_of(spec):
        if not tuned:
            yield cell.labels
            continue
        for candidate in points(spec.tune, cell.labels):
            yield {**cell.labels, **candidate.labels}


def _share(gpus: float) -> tuple[str | None, float]:
    """What would be right instead of a number of GPUs (none: it is right), and the number that is meant."""
    if 0 <= gpus <= 1024 and float(gpus).is_integer():
        return None, gpus
    if 0.001 <= gpus < 1 and 0.98 <= gpus * round(1 / gpus) <= 1.005:  # 0.33 and 0.334 mean a third
        return None, 1 / round(1 / gpus)
    if not 0.001 <= gpus <= 1024:
        return "0, a whole number up to 1,024, or a share that fills a GPU, such as 0.5 or 0.25", gpus
    if gpus > 1:
        return f"a whole number such as {int(gpus)} or {int(gpus) + 1}, or a share that fills a GPU, such as 0.5", gpus
    parts = int(1 / gpus)
    near = [f"{1 / count:.4g}" for count in (parts, parts + 1)]
    return f"a share that fills a GPU (1/k), such as {near[0]} or {near[1]}", gpus
