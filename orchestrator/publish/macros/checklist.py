"""Answers to the questions of reproducibility checklists (NeurIPS, MLRC), drafted from what was recorded."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.publish.select import selection
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.macros import ChecklistAnswer, ChecklistView
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.provenance import TrialProvenance

_SPLITS = {
    "test": "the TEST split, so that the numbers are optimistic",
    "last": "the TEST split, of last weights, so that the numbers are optimistic",
    "validation": "the validation split",
}


def checklist(outcomes: SweepOutcomes, provenance: Iterable[TrialProvenance]) -> ChecklistView:
    """Answers for a sweep; what the records do not know is left open and said."""
    trials = list(provenance)
    answers = [
        _seeds(outcomes), _error_bars(outcomes), _selection(outcomes), _budget(outcomes), _compute(trials),
        _data(trials), _code(trials), _excluded(trials),
    ]  # fmt: skip
    return ChecklistView(sweep=outcomes.sweep, sweep_name=outcomes.name, answers=answers)


def _answer(question: str, answer: str, left: str = "") -> ChecklistAnswer:
    return ChecklistAnswer(question=question, answer=answer, open=left)


def _seeds(outcomes: SweepOutcomes) -> ChecklistAnswer:
    repeats = {axis: list(_labels(groups)) for axis, groups in (outcomes.spec.get("repeat") or {}).items()}
    said = "; ".join(f"{axis} {', '.join(labels)}" for axis, labels in repeats.items())
    runs = math.prod(len(labels) for labels in repeats.values())
    answer = (
        f"Each candidate was trained {runs} time{'s' * (runs != 1)} ({said})."
        if said
        else "One run of each, with one seed."
    )
    return _answer("How many random seeds were used, and which?", answer)


def _labels(groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (str(choice["label"]) for group in groups for choice in group["choices"])


def _error_bars(outcomes: SweepOutcomes) -> ChecklistAnswer:
    several = any(one.repeat for one in outcomes.trials)
    answer = (
        "Means over runs; what stands beside them is the sample standard deviation (n - 1) unless the caption says "
        "otherwise, intervals are Student-t at 95 %. They cover the randomness of training (seeds), not that of the "
        "test images."
        if several else "None: each number is of a single run."
    )  # fmt: skip
    return _answer("What do the error bars show, and how are they computed?", answer)


def _selection(outcomes: SweepOutcomes) -> ChecklistAnswer:
    select = selection(outcomes.spec)
    validation = (outcomes.spec.get("recipe") or {}).get("validation") or {}
    name = str(validation.get("name", "none") if isinstance(validation, Mapping) else validation)
    held = "nothing was held out" if name == "none" else f"held out by {name}"
    answer = f"Checkpoint and candidate by mean {select.metric} on {_SPLITS.get(select.split, select.split)}; {held}."
    return _answer("How were hyper-parameters and checkpoints selected?", answer)


def _budget(outcomes: SweepOutcomes) -> ChecklistAnswer:
    counts = Counter(one.cell for one in outcomes.candidates)
    sizes = sorted(set(counts.values()))
    of = "1" if sizes == [1] else f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0] if sizes else 0)
    axes = ", ".join(outcomes.spec.get("tune") or {}) or "nothing"
    search = (outcomes.spec.get("search") or {}).get("name", "grid")
    unequal = " The budgets are not equal." if len(sizes) > 1 else ""
    return _answer(
        "What range of hyper-parameters was searched, and with what budget for each method?",
        f"{of} candidate{'s' * (of != '1')} for each cell by {search}, over {axes}.{unequal}",
        "" if axes == "nothing" else "Why this range.",
    )


def _compute(trials: Sequence[TrialProvenance]) -> ChecklistAnswer:
    timed = [one for one in trials if one.seconds is not None]
    own = [one for one in timed if not one.outcome.reused]
    hours = sum(one.seconds or 0.0 for one in {one.training: one for one in timed}.values()) / 3600
    devices = Counter(one.device or "an unknown device" for one in timed)
    said = ", ".join(f"{count} on {device}" for device, count in devices.most_common())
    reused = f", of which {len(timed) - len(own)} were reused" if len(own) < len(timed) else ""
    return _answer(
        "What compute was used?",
        f"{hours:.3g} hours of training in all: {len(timed)} runs{reused} ({said})."
        if timed
        else "No run has finished yet.",
        "Compute of preliminary and failed experiments outside of this sweep; memory.",
    )


def _data(trials: Sequence[TrialProvenance]) -> ChecklistAnswer:
    sets = sorted({(one.dataset, one.data_hash or "unknown") for one in trials if one.dataset})
    said = "; ".join(f"{name}, content hash {digest}" for name, digest in sets) or "none is recorded"
    return _answer("Which data were used?", f"{said}.", "Licence, consent, and where to get them.")


def _code(trials: Sequence[TrialProvenance]) -> ChecklistAnswer:
    commits = Counter(one.commit or "unknown" for one in trials if one.outcome.state is TrialState.FINISHED)
    said = ", ".join(f"{commit} ({count} runs)" for commit, count in commits.most_common()) or "no run has finished yet"
    dirty = any(commit.endswith("-dirty") for commit in commits)
    versions = next((one.versions for one in trials if one.versions), {})
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    left = (
        "The changes that are not in the commit: it was changed (-dirty)." if dirty else "Where the code is published."
    )
    return _answer("Which code and software?", f"Commit {said}" + (f"; {packages}." if packages else "."), left)


def _excluded(trials: Sequence[TrialProvenance]) -> ChecklistAnswer:
    states = Counter("diverged" if one.outcome.diverged else one.outcome.state.value for one in trials)
    said = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "there are no trials"
    return _answer(
        "Were runs left out?",
        f"Of {len(trials)} trials: {said}. A candidate with a run that diverged or failed is not eligible, and the "
        "table says so.",
    )
