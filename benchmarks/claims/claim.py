"""What a twin says that it shows: the list under `Claims:` in its first comment, which is YAML.

    # Claims:
    #   - says: SEC takes the variance of the norms to less than a fifth.
    #     metric: train/norm_var
    #     of: {regularizer: sec}
    #     against: {regularizer: none}
    #     ratio: below 0.2
    #   - unseen: SEC raises R@1 of every loss.
    #     why: that of N-pair moves by less than its noise.

`of` and `against` name labels of axes; every trial of one is paired with each of the other that has the same labels on
all other axes. `where` narrows both, `over: pairs` asserts the mean over the pairs in place of each of them, and `at`
takes the value of a curve at an iteration in place of the one at the end. The metric `outcome/diverged` is 1 for a
training that ended in NaN, and 0 else.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from orchestrator.spec.fields import label_of as spelt

TWINS: Final = Path(__file__).parents[2] / "sweeps" / "quick"
_BLOCK: Final = re.compile(r"^# Claims:\n((?:#  .*\n)+)", re.MULTILINE)
_BOUND: Final = re.compile(r"(below|above) (-?\d+(?:\.\d+)?)")


def _labels(posted: Any) -> Any:
    if not isinstance(posted, Mapping):
        return posted
    lists = {axis: one if isinstance(one, list) else [one] for axis, one in posted.items()}
    return {axis: [spelt(label) for label in labels] for axis, labels in lists.items()}


def _bound(posted: Any) -> Any:
    found = _BOUND.fullmatch(str(posted))
    return {"side": found[1], "value": float(found[2])} if found else posted


Taken = Annotated[dict[str, list[str]], BeforeValidator(_labels)]
"""By axis the labels that are taken."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bound(_Entry):
    """What an effect stays below or above."""

    side: Literal["below", "above"]
    value: float

    def __str__(self) -> str:
        return f"{self.side} {self.value:g}"

    def met(self, effect: float) -> bool:
        """Whether an effect is on the claimed side; NaN is on none."""
        return effect < self.value if self.side == "below" else effect > self.value


Limit = Annotated[Bound, BeforeValidator(_bound)]


class Claim(_Entry):
    """What digits show: how a metric of some trials compares with that of others."""

    says: str = Field(min_length=1)
    metric: str = Field(pattern=r"^(test|train|validation)/|^outcome/diverged$")
    of: Taken = Field(min_length=1)
    against: Taken = Field(min_length=1)
    where: Taken = Field(default_factory=dict)
    over: Literal["each", "pairs"] = "each"
    at: int | None = Field(default=None, ge=1)
    ratio: Limit | None = None
    difference: Limit | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.ratio is None) == (self.difference is None):
            raise ValueError("a claim bounds a ratio or a difference: one of them, not both")
        return self

    @property
    def bound(self) -> Bound:
        """The one that is given."""
        found = self.ratio or self.difference
        assert found is not None
        return found


class Unseen(_Entry):
    """What the paper claims and digits do not show."""

    unseen: str = Field(min_length=1)
    why: str = Field(min_length=1)


_LIST: Final = TypeAdapter(Annotated[list[Claim | Unseen], Field(min_length=1)])


def claiming(folder: Path) -> dict[str, Path]:
    """The specs in a folder, and in its folders, that list claims, by name."""
    files = sorted(folder.rglob("*.yaml"))
    return {file.stem: file for file in files if _BLOCK.search(file.read_text(encoding="utf-8"))}


def claims_of(text: str) -> list[Claim | Unseen]:
    """The claims in the first comment of a twin; raises ValueError where there are none or one is not readable."""
    found = _BLOCK.search(text.partition("\nversion:")[0] + "\n")
    if found is None:
        raise ValueError("its first comment has no list `# Claims:`")
    lines = [line.removeprefix("#") for line in found[1].splitlines()]
    return _LIST.validate_python(yaml.safe_load("\n".join(lines)))
