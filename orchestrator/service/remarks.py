"""Notes and tags as clients give them: read, changed, and with what no terminal or page should act on written out."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.host.printable import one_line, printable
from orchestrator.record.store import Store
from orchestrator.views.remarks import LONGEST_NOTE, LONGEST_TAG, Remark, Remarked, TagChange


class RemarkQueries:
    """Answers and changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, kind: Remarked, number: int, cell: int = 0) -> Remark:
        """What is said of a sweep, of a cell of it, or of a trial."""
        return self._store.remarks.of(*self._where(kind, number, cell))

    def put(
        self, where: tuple[Remarked, int, int], note: str | None, tags: TagChange | None, actor: str | None
    ) -> Remark:
        """Set the note, change the tags, or both: none stays as it is. ConflictError where there would be too many."""
        place = self._where(*where)
        text = None if note is None else printable(note.replace("\r\n", "\n").strip())[:LONGEST_NOTE]
        self._store.remarks.put(place, text, tags and _written_out(tags), actor)
        return self._store.remarks.of(*place)

    def _where(self, kind: Remarked, number: int, cell: int) -> tuple[Remarked, int, int]:
        if kind == "trial":
            return kind, self._store.remarks.sweep_of(number), number
        return kind, number, cell if kind == "cell" else number


def _written_out(tags: TagChange) -> TagChange:
    whole = None if tags.tags is None else _words(tags.tags)
    return replace(tags, tags=whole, added=_words(tags.added), removed=_words(tags.removed))


def _words(tags: Sequence[str]) -> list[str]:
    return [one_line(tag.strip())[:LONGEST_TAG].strip() for tag in tags]
