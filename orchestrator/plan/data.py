"""What the cluster lacks for a sweep: data sets that no node has, and slots that no node offers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from orchestrator.plan.grid import needs
from orchestrator.plan.points import slots
from orchestrator.spec.spec import Spec
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, capacity, shortage
from workers.catalog import Catalog, Need
from workers.contract import Part

ABSENT: Final = frozenset({"missing", "wrong"})
_OLD_SECONDS: Final = 120.0
_SHOWN: Final = 3
_EXPECTED: Final = frozenset({"official", "content"})
"""Hyper-parameters that say what a data set must hold, not which files are looked for."""


def absences(spec: Spec, catalog: Catalog, found: Sequence[Inspected]) -> list[str]:
    """Messages on the data sets and weights of a spec that nodes lack, for each need that a node has examined."""
    by_need: dict[str, list[Inspected]] = defaultdict(list)
    for inspected in found:
        by_need[inspected.need.key].append(inspected)
    lines = []
    for need in needs(spec, catalog):
        seen = by_need.get(need.key)
        for one, known in [(need, seen)] if seen else _singly(need, by_need):
            if message := _announced(one, known):
                lines.append(f"{message}{_age(known)}")
    return list(dict.fromkeys(lines))


def _announced(need: Need, known: Sequence[Inspected]) -> str | None:
    if need.stored is not None and all(one.finding.state != "wrong" for one in known):
        return _fetched(need, known)
    return absence(need, known) or _partial(need, known) or _noted(need, known)


def _noted(need: Need, found: Sequence[Inspected]) -> str | None:
    """What nodes skipped in data that they have."""
    noted = [one for one in found if one.finding.state == "ok" and one.finding.message]
    return f"{need}: {_where(noted)}" if noted else None


def absence(need: Need, found: Sequence[Inspected]) -> str | None:
    """The message that no node has a data set or weights, and what helps; None if a node has them or may have them."""
    if not found or any(one.finding.state not in ABSENT for one in found):
        return None
    missing = all(one.finding.state == "missing" for one in found)
    what = f"no node has {need}" if missing else f"no node has {need} as it must be"
    return f"{what}: {_where(found)}; its trials wait until it is there"


def _partial(need: Need, found: Sequence[Inspected]) -> str | None:
    lacking = [one for one in found if one.finding.state in ABSENT]
    return f"not every node has {need}: {_where(lacking)}; its trials run on the others" if lacking else None


def _fetched(need: Need, found: Sequence[Inspected]) -> str | None:
    """That a training first downloads its weights."""
    lacking = [one for one in found if one.finding.state == "missing"]
    who = "no node has" if len(lacking) == len(found) else "not every node has"
    return f"{who} the {need}: {_where(lacking)}; where it cannot be fetched its trials wait" if lacking else None


def _singly(need: Need, by_need: dict[str, list[Inspected]]) -> Iterator[tuple[Need, list[Inspected]]]:
    """The parts of a need that no node has examined as a whole, with what is known of them."""
    if need.dataset is not None:
        alone = Need(dataset=need.dataset)
        yield alone, by_need.get(alone.key) or _of_its_files(alone, by_need)
    if need.weights is not None:
        alone = Need(weights=need.weights)
        yield alone, by_need.get(alone.key, [])
    if need.pretrained is not None:
        alone = Need(stored=need.pretrained)
        yield alone, by_need.get(alone.key, [])


def _of_its_files(need: Need, by_need: dict[str, list[Inspected]]) -> list[Inspected]:
    """Findings about a data set by its name alone that say that its files are missing."""
    if need.dataset is None or not need.dataset.options.keys() <= _EXPECTED:
        return []
    known = by_need.get(Need(dataset=Part(name=need.dataset.name)).key, [])
    return known if all(one.finding.state == "missing" for one in known) else []


def _where(found: Sequence[Inspected]) -> str:
    """Each different finding, with the machines that reported it."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for one in found:
        hosts[one.finding.message].append(one.host or one.node[:12])
    parts = [f"on {_listed(names)}: {text}" for text, names in list(hosts.items())[:_SHOWN]]
    return "; ".join([*parts, *([f"and so on {len(hosts) - _SHOWN} more"] if len(hosts) > _SHOWN else [])])


def _listed(names: Sequence[str]) -> str:
    several = sorted(set(names))
    more = [f"{len(several) - _SHOWN} more"] if len(several) > _SHOWN else []
    shown = [*several[:_SHOWN], *more]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _age(found: Iterable[Inspected]) -> str:
    """The time of a finding, if it is old."""
    seconds = (datetime.now(UTC) - min(one.inspected_at for one in found)).total_seconds()
    if seconds < _OLD_SECONDS:
        return ""
    past = f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"
    return f" (as of {past} ago)"


def shortages(spec: Spec, nodes: Sequence[Node]) -> list[str]:
    """Messages on the slots of a spec that are too large for every node."""
    return [f"{reason}; {waiting(of_it)}" for slot, of_it in slots(spec) if (reason := shortage(slot, nodes))]


def crowded(spec: Spec, trials: int, nodes: Sequence[Node]) -> list[str]:
    """The message that the cap on concurrent trainings leaves room on the nodes unused, or no message."""
    room = min((capacity(slot, nodes) for slot, _ in slots(spec)), default=0)
    if min(room, trials) <= MOST_TRAININGS:
        return []
    return [f"at most {MOST_TRAININGS} trainings run at once, though the nodes could hold {room} such slots"]


def waiting(of_it: str) -> str:
    """The message that trials wait for a larger node; `of_it` names them, "" means all with the spec's own slot."""
    return f"trials of {of_it} wait until such a node joins" if of_it else "its trials wait until such a node joins"
