"""How many candidates competed in each cell, in words: an unequal budget must be stated."""

from collections.abc import Callable, Mapping

from orchestrator.views.planned import Labels


def budget(
    cells: Mapping[int, Labels], counts: Mapping[int, int], printed: Callable[[str, str], str], *, filled: bool = False
) -> str:
    """One sentence, by the axis that decides the budget where one does; "" when nothing was tuned.

    `cells` are the labels by cell, `counts` the candidates by cell, `printed` turns an axis and a label into text;
    `filled`: cells with fewer were filled up by learning rates.
    """
    sizes = sorted(set(counts.values()))
    if not sizes or sizes == [1]:
        return ""
    if len(sizes) == 1:
        how = ", with other learning rates where a cell had fewer" if filled else ""
        return f"Selection budget: {_candidates(sizes[0])} in every cell{how}."
    axes = dict.fromkeys(axis for labels in cells.values() for axis in labels)
    for axis in axes:
        by_label = _by_label(axis, cells, counts)
        if all(len(found) == 1 for found in by_label.values()):
            return f"Selection budget: {_listed(axis, {k: min(v) for k, v in by_label.items()}, printed)}."
    return f"Selection budget: {sizes[0]} to {_candidates(sizes[-1])} a cell."


def _by_label(axis: str, cells: Mapping[int, Labels], counts: Mapping[int, int]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for cell, labels in cells.items():
        found.setdefault(labels.get(axis, ""), set()).add(counts[cell])
    return found


def _listed(axis: str, sizes: Mapping[str, int], printed: Callable[[str, str], str]) -> str:
    names: dict[int, list[str]] = {}
    for label, size in sizes.items():
        names.setdefault(size, []).append(printed(axis, label) if label else f"no {axis}")
    (first, found), *others = names.items()
    return "; ".join(
        (f"{_candidates(first)} for {', '.join(found)}", *(f"{n} for {', '.join(labels)}" for n, labels in others))
    )


def _candidates(n: int) -> str:
    return "1 candidate" if n == 1 else f"{n} candidates"
