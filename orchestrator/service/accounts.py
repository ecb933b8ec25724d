"""Who asks: by a user's token, by a session that began with one, or by a proxy that has seen who it is."""

from collections.abc import Iterable, Iterator

from orchestrator.host.user_tokens import PREFIX, digest
from orchestrator.record.store import Store
from orchestrator.views.accounts import AuditEntry, CallerView
from orchestrator.views.callers import OWNER, Caller


class AccountQueries:
    """Looks up what somebody may do, each time anew: what is revoked opens nothing from the next request on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_text(self, given: str) -> Caller | None:
        """Whose token a text is; none where it opens nothing, or is none of ours at all."""
        text = given.strip()
        return self._store.accounts.by_hash(digest(text)) if text.startswith(PREFIX) else None

    def of_token(self, number: int) -> Caller | None:
        """Whose token of this number is, as of now."""
        return self._store.accounts.by_token(number)

    def of_name(self, name: str) -> Caller | None:
        """The user of this name, of whom somebody trusted says that it is they."""
        return self._store.accounts.by_name(name)

    def again(self, callers: Iterable[Caller]) -> dict[Caller, Caller]:
        """Those of the callers who may still ask, each with what it may now."""
        found = ((who, self._store.accounts.again(who)) for who in callers)
        return {who: now for who, now in found if now is not None}

    def any(self) -> bool:
        """Whether there are users at all."""
        return self._store.accounts.any()

    def entered(self, who: Caller | None, how: str) -> None:
        """Have the audit tell that somebody logged a browser in; none: who holds a token of the server."""
        self._store.audited.entered(who or OWNER, how)

    def audit(self, after: int) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number; for who sees all projects."""
        return self._store.audit.after(after)

    def view(self, who: Caller) -> CallerView:
        """What a caller may, in the names of projects."""
        return CallerView(
            name=who.name, role=who.role, scope=who.scope, sees=self._store.accounts.names_of(who.seen),
            steers=self._store.accounts.names_of(who.steered),
        )  # fmt: skip
