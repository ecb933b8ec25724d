"""What stands behind a number: a trial with the recipe, the result and the provenance of its training."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.views.outcomes import TrialOutcome

_ORIGINS: Final = {
    "manifest": "data", "content": "files", "weights": "weights", "code": "own code", "git_commit": "commits",
    "metricsweep": "versions of metricsweep",
}  # fmt: skip
"""What the runs behind one number should share, by its key in a result's provenance."""
_FEW: Final = 3


def origin_of(provenance: Mapping[str, Any]) -> str:
    """What a training was made of, as JSON: its data, weights and code as far as the provenance has them."""
    versions = provenance.get("versions")
    known = {**provenance, **({"metricsweep": versions.get("metricsweep")} if isinstance(versions, Mapping) else {})}
    held = {key: known[key] for key in _ORIGINS if known.get(key)}
    return json.dumps(held, sort_keys=True, separators=(",", ":")) if held else ""


def mixture(runs: Iterable[TrialOutcome]) -> tuple[str, ...]:
    """In which data, code and versions of parts the trainings behind one number differ, in words; empty: in none."""
    values: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    made = dict.fromkeys((one.origin, one.stamp) for one in runs)
    for origin, stamp in made if len(made) > 1 else ():
        for key, held in (json.loads(origin) if origin else {}).items():
            for path, value in _leaves(held):
                values[_ORIGINS.get(key, key), path][value] = None
        for part, version in (json.loads(stamp).get("versions", {}) if stamp else {}).items():
            values["version", part][str(version)] = None
    return tuple(
        f"{what}{f' of {path}' if path else ''}: {', '.join([*found][:_FEW])}{' ...' if len(found) > _FEW else ''}"
        for (what, path), found in values.items()
        if len(found) > 1
    )


def _leaves(held: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(held, Mapping):
        for name, inner in held.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, _brief(str(held))


def _brief(value: str) -> str:
    """A hash by its beginning, a commit with what says that it was changed."""
    kind, colon, digest = value.partition(":")
    if colon:
        return f"{kind}:{digest[:12]}"
    commit, dash, word = value.partition("-")
    return commit[:12] + dash + word if len(commit) == 40 else value


@dataclass(frozen=True, slots=True)
class TrialProvenance:
    """One trial of a sweep and everything that is known of the training that it points to."""

    outcome: TrialOutcome
    uid: str
    training: str  # UUID; several trials may share it
    fingerprint: str
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    provenance: Mapping[str, Any]  # of the result: versions, device, host, git commit, manifest; empty without one
    best_step: int | None
    seconds: float | None
    score: float | None
    error: str | None
    run: str | None  # the tracker's id of its run
    reason: str | None = None  # why it was pruned

    @property
    def commit(self) -> str | None:
        """The commit of the code that trained it, `-dirty` where that was changed."""
        return _text(self.provenance.get("git_commit"))

    @property
    def data_hash(self) -> str | None:
        """The hash of the data set that was read, else the one that its recipe asks for."""
        pins = self.recipe.get("pins") or {}
        return _text(self.provenance.get("manifest")) or _text(pins.get("manifest"))

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        part = self.recipe.get("dataset")
        return str(part.get("name", "") if isinstance(part, Mapping) else part or "")

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages that may change a number."""
        found = self.provenance.get("versions")
        return {str(name): str(one) for name, one in found.items() if one} if isinstance(found, Mapping) else {}

    @property
    def device(self) -> str | None:
        """Where it ran: `cpu (AMD EPYC)`."""
        kind, name = _text(self.provenance.get("device")), _text(self.provenance.get("device_name"))
        return f"{kind} ({name})" if kind and name else kind or name


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
