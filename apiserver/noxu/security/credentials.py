"""What a request presents to say who its user is, and what is made of it.

Nothing of this is printable: a credential never reaches a log, a trace or an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from multidict import MultiMapping

from noxu.registry.access import User
from noxu.registry.resource import Resource

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
"""The group that may do everything."""
ADMINISTRATOR: Final = User("kubernetes-admin", groups=(MASTERS,))
"""The user of the kubeconfig."""
INVALID_TOKEN: Final = "invalid bearer token"  # noqa: S105 - upstream's message


def valid_text(text: str) -> str:
    """The text of a header, with U+FFFD in the place of bytes that are no UTF-8, as JSON would show them."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Token:
    """A bearer token. `digest` is its SHA-256, by which it is looked up: comparing digests tells nothing about tokens."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


class Credentials(NamedTuple):
    """`chain` is the verified certificate of the client and those of its issuers, in DER; empty without one."""

    headers: MultiMapping[str]
    chain: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return "Credentials"


class Identity(NamedTuple):
    """The user of a token. `audiences` are those for which it was asked, and which it has."""

    user: User
    audiences: tuple[str, ...]


class Rejected(Exception):
    """A credential is bad. The text tells why; only reviews of tokens show it."""


class Disputable(Rejected):
    """A credential is bad because of objects of which another server with the same store may have a newer state."""


class Unloaded(Exception):
    """The cache has not loaded the objects that tell whether a credential is good. Load them, and ask again."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.collection)
        self.resource = resource


TokenAuthenticator: TypeAlias = Callable[[Token, Sequence[str]], Identity | None]
"""(token, audiences): the identity, None without an opinion. Raises Rejected, Unloaded."""


def with_authenticated(user: User) -> User:
    """The user in the group of all users that are not anonymous, unless a group says whether it is one."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return user._replace(groups=(*user.groups, AUTHENTICATED))
