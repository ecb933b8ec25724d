"""What is kept of a text: as much as a message may have, and only what a database takes."""

from typing import Final

MAX_MESSAGE: Final = 2_000
"""Characters of what is said of a failure or a refusal."""


def storable(text: str) -> str:
    """The text without what a database refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
