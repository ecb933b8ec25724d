"""What lies where in a bundle, and what its manifest says beside the hashes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from orchestrator.publish.tables.table_data import Numbers
from orchestrator.views.provenance import TrialProvenance
from workers.contract import canonical_json

POSTED, SPEC, SWEEP, CATALOG, README = "spec.yaml", "spec.json", "sweep.json", "catalog.json", "README.md"
CELLS, CANDIDATES = "data/cells.parquet", "data/candidates.parquet"
TRIALS, METRICS, LOOKS = "data/trials.parquet", "data/metrics.parquet", "data/looks.json"
QUERIES = "data/queries.parquet"

MAKERS: Final = ("metricsweep", "altair", "numpy", "pyarrow", "scipy", "vl-convert-python")
"""The packages that may change a byte of what is made here, or its last digit."""

WORDS: Final = """\
# {name} #{id}

{description}A sweep of metricsweep as one archive. `manifest.json` has the SHA-256 of every file.

- `tables/<name>/<numbers>/`: every table in every format; `figures/<name>.*`: every figure.
- `ledger/<paper>.*`: what this sweep says of the numbers of the papers that its tables name.
- `verdicts/<name>.json`: whether the cells of a table are better than their baselines; `data/looks.json`: when the
  sweep was extended after a look, which these rest on.
- `spec.yaml` as it was posted, `spec.json` as it was understood.
- `data/trials.parquet`: every trial with its completed recipe, provenance, data set hash and code commit.
- `data/metrics.parquet`: every result metric of every trial.
- `data/queries.parquet`, where a table covers test queries: what these scored, summed up by class.
- `data/cells.parquet`, `data/candidates.parquet`: the labels of cells and candidates.
- `code/<hash>.zip`: the source of own parts that trainings used; `own_code` in the manifest says which hashes.
- `catalog.json`: the parts with the labels that the tables print; `published/`: what the papers printed.

`metricsweep rebuild FILE.zip` makes every table again from the data and compares it with the one inside.
"""


class Rendering(BaseModel):
    """One table in one format."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str
    numbers: Numbers
    format: str
    file: str


class PackedLedger(BaseModel):
    """The ledger of a paper by this sweep alone, in one format."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    paper: str
    format: str
    file: str

    @property
    def table(self) -> str:
        """Whose numbers it is about."""
        return self.paper

    @property
    def numbers(self) -> str:
        """What it shows of them."""
        return "ledger"


class PackedVerdicts(BaseModel):
    """The verdicts between the cells of a table."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    table: str
    file: str

    @property
    def numbers(self) -> str:
        """What it shows of them."""
        return "verdicts"

    @property
    def format(self) -> str:
        """The only one."""
        return "json"


class Head(BaseModel):
    """What a bundle says of its sweep."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: int
    uid: str
    name: str
    state: str
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None


@dataclass
class BundleFacts:
    """What the trials have in common and what not, gathered while they pass."""

    states: Counter[str] = field(default_factory=Counter)
    commits: Counter[str] = field(default_factory=Counter)
    devices: Counter[str] = field(default_factory=Counter)
    data: dict[str, Counter[str]] = field(default_factory=dict)
    versions: dict[str, Counter[str]] = field(default_factory=dict)
    code: dict[str, int] = field(default_factory=dict)
    """By what own code it stands for, as JSON, a trial that kept its source."""

    def passing(self, found: Iterable[TrialProvenance]) -> Iterator[TrialProvenance]:
        """The same trials, noted."""
        for one in found:
            self.states[one.outcome.state.value] += 1
            if one.provenance:
                self.commits[one.commit or "unknown"] += 1
                self.devices[one.device or "unknown"] += 1
            if one.data_hash:
                self.data.setdefault(one.dataset, Counter())[one.data_hash] += 1
            if code := one.provenance.get("code"):
                self.code.setdefault(canonical_json(code), one.outcome.trial)
            for package, number in one.versions.items():
                self.versions.setdefault(package, Counter())[number] += 1
            yield one

    def said(self) -> dict[str, Any]:
        """As the manifest has it: how many trials by state, commit, device, data set hash and version."""
        return {
            "trials": _sorted(self.states),
            "code_commits": _sorted(self.commits),
            "devices": _sorted(self.devices),
            "data_sets": {name: _sorted(found) for name, found in sorted(self.data.items())},
            "trained_with": {name: _sorted(found) for name, found in sorted(self.versions.items())},
        }


def made_with() -> dict[str, str]:
    """The versions of what makes tables and figures here."""
    found = {"python": python_version()}
    for package in MAKERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return dict(sorted(found.items()))


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
