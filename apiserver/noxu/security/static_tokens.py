"""Static tokens: from a token file, or made by a server for its own clients.

The file has Go's comma-separated values: token, user, uid and, in one field, groups. It is read once, at the start
(pkg/authentication/token/tokenfile). Groups are not trimmed. Tokens are kept as digests.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from noxu.go import csv
from noxu.registry.access import User
from noxu.security.credentials import Identity, Token, valid_text, with_authenticated

_COLUMNS: Final = 3

log = logging.getLogger("noxu")


class StaticTokens:
    """A `TokenAuthenticator`. Tokens are for the server itself: `audiences` are its own."""

    def __init__(self, users: Mapping[bytes, User], audiences: Sequence[str]) -> None:
        """`users` are those of digests."""
        self._users = dict(users)
        self._audiences = tuple(audiences)

    def __call__(self, token: Token, audiences: Sequence[str]) -> Identity | None:
        user = self._users.get(token.digest)
        if user is None:
            return None
        common = tuple(audience for audience in audiences if audience in self._audiences)
        return Identity(user, common) if common else None

    def add(self, others: StaticTokens) -> None:
        """Accept the tokens that others accept, too."""
        self._users |= others._users

    def names(self) -> set[str]:
        """The names of the users."""
        return {user.name for user in self._users.values()}

    def issue(self, user: User) -> str:
        """A new random token of a user, valid until the server stops for good."""
        import secrets  # few servers issue tokens

        text = secrets.token_urlsafe(32)
        self._users[Token(text).digest] = with_authenticated(user)
        return text


def read_file(path: Path) -> dict[bytes, User]:
    """The users of a token file, by the digests of their tokens. Raises OSError, ValueError."""
    users: dict[bytes, User] = {}
    for number, (token, user) in enumerate(parse(path.read_bytes().decode("utf-8", "surrogateescape"), str(path)), 1):
        if not token:
            log.warning("empty token has been found in token file %r, record number %d", str(path), number)
            continue
        digest = Token(token).digest
        if digest in users:
            log.warning("duplicate token has been found in token file %r, record number %d", str(path), number)
        users[digest] = with_authenticated(user)
    return users


def parse(text: str, path: str) -> Iterator[tuple[str, User]]:
    """The tokens of a file and their users. Raises ValueError."""
    for record in csv.read(text):
        if len(record) < _COLUMNS:
            raise ValueError(
                f"token file '{path}' must have at least 3 columns (token, user name, user uid), found {len(record)}"
            )
        token, *user = record
        name, uid, *more = map(valid_text, user)
        yield token, User(name, uid, tuple(more[0].split(",")) if more and more[0] else ())
