"""Selection: by which metric, on which split, a best checkpoint and a best candidate are chosen."""

import re
from typing import Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from workers.recipe.parts import Frozen

BEST_TEST: Final = "best_test"
"""What stands before the keys of test metrics at the point that is best on the test split, beside `best`."""

TEST_SET: Final = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
"""The name of a test set that a data set has beside `test`: `lfw`, whose split is `test_lfw`."""

Distance = Literal["cosine", "euclidean"]
"""What ranks and clusters embeddings, see `Recipe.distance`."""


class Select(Frozen):
    """By what a training's best checkpoint and a cell's best candidate are chosen.

    What is not said is the task's: the catalog completes it, and these defaults are those of the default task.
    """

    metric: str = Field(default="map@r", max_length=100)
    split: Literal["validation", "test", "last"] = "validation"
    """`validation`, `test`: the best checkpoint on that split. `last`: the last one, candidates by its test metric."""
    beside: Literal["test"] | None = Field(default=None, exclude_if=lambda value: value is None)  # no new fingerprints
    """Also keep the test metrics at the point that is best on this split, as `best_test/test/map@r`; none: do not."""

    @field_validator("beside")
    @classmethod
    def _beside_an_honest_choice(cls, value: str | None, info: ValidationInfo) -> str | None:
        split = info.data.get("split")
        if value is not None and split in {"test", "last"}:
            raise ValueError(f"is only for `split: validation`, but split is {split!r}; leave it out")
        return value

    @property
    def checkpoint(self) -> Literal["best", "last"]:
        """The checkpoint whose test metrics a table prints."""
        return "last" if self.split == "last" else "best"

    @property
    def watched(self) -> tuple[str, ...]:
        """The splits that are evaluated while a training runs."""
        if self.split == "last":
            return ("test",)
        return (self.split,) if self.beside is None else (self.split, self.beside)

    @property
    def key(self) -> str:
        """The result key that ranks candidates, such as `best/validation/map@r`."""
        return f"{self.checkpoint}/{self.watched[0]}/{self.metric}"

    @property
    def beside_key(self) -> str:
        """The result key that ranks candidates by the test split beside that, such as `best_test/test/map@r`."""
        return f"{BEST_TEST}/test/{self.metric}"
