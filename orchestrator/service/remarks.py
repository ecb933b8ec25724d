"""Notes and tags as clients give them: read, changed, and with what no terminal or page should act on written out."""

from collections.abc import Sequence

from orchestrator.host.printable import one_line, printable
from orchestrator.record.store import Store
from orchestrator.views.remarks import LONGEST_NOTE, LONGEST_TAG, Remark, Remarked


class RemarkQueries:
    """Answers and changes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, kind: Remarked, number: int, cell: int = 0) -> Remark:
        """What is said of a sweep, of a cell of it, or of a trial."""
        return self._store.remarks.of(*self._where(kind, number, cell))

    def put(
        self, where: tuple[Remarked, int, int], note: str | None, tags: Sequence[str] | None, actor: str | None
    ) -> Remark:
        """Set the note, the tags or both: none stays as it is."""
        place = self._where(*where)
        text = None if note is None else printable(note.replace("\r\n", "\n").strip())[:LONGEST_NOTE]
        words = None if tags is None else [one_line(tag.strip())[:LONGEST_TAG] for tag in tags]
        self._store.remarks.put(place, text, None if words is None else sorted({*words} - {""}), actor)
        return self._store.remarks.of(*place)

    def _where(self, kind: Remarked, number: int, cell: int) -> tuple[Remarked, int, int]:
        if kind == "trial":
            return kind, self._store.remarks.sweep_of(number), number
        return kind, number, cell if kind == "cell" else number
