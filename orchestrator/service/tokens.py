"""Tokens of users: everybody lists, makes and ends their own, an administrator those of all."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from orchestrator.host.user_tokens import digest, new_token, token_of
from orchestrator.record.store import Store
from orchestrator.views.accounts import ACCOUNT_NAME, NewTokenView, TokenView
from orchestrator.views.callers import Scope, caller
from orchestrator.views.errors import ConflictError
from orchestrator.views.pages import Page, each


class Tokens:
    """Writes tokens, of which the hash is kept and nothing else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """Tokens of all, or of a user, the oldest first; to who is no administrator their own alone."""
        return each(lambda cursor: self.page(cursor, user=user))

    def page(self, cursor: str | None = None, limit: int = 200, user: str | None = None) -> Page[TokenView]:
        """Some of them."""
        who = caller()
        if not who.administers and user not in (None, who.name):
            return Page[TokenView](items=[])
        return self._store.directory.tokens(cursor, limit, user if who.administers else who.name)

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, once: tuple[str, str] | None = None
    ) -> NewTokenView:
        """A new token of a user, or one's own, with what opens; `days` of none: until it is revoked.

        With `once`, a secret of the server's and a key of the caller's, the same key gives the same token.
        """
        who = caller()
        whose = user or (who.name if who.user is not None else None)
        if whose is None:
            raise ConflictError("you are no user of this server: say whose token it is to be")
        text = new_token() if once is None else token_of(once[0], str(who.user or ""), whose, once[1])
        named(name, "token")
        until = None if days is None else datetime.now(UTC) + timedelta(days=days)
        number, _ = self._store.owner.add_token(whose, name, digest(text), scope, until)
        return NewTokenView(**self._store.directory.token(number).model_dump(), token=text)

    def revoke(self, number: int) -> TokenView:
        """Have a token, and the sessions that began with it, open nothing from now on; NotFoundError."""
        self._store.owner.revoke(number)
        return self._store.directory.token(number)


def named(name: str, kind: str) -> str:
    """The name of a user, project or token; raises ConflictError where it is none."""
    if not re.fullmatch(ACCOUNT_NAME, name):
        said = "1 to 64 of a-z, 0-9 and ._@-, the first a letter or a digit"
        raise ConflictError(f"a {kind}'s name is {said}, not {name[:80]!r}")
    return name
