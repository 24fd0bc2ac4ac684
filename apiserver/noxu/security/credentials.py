"""The credentials that a request presents to identify its user, and the tokens that are read from them.

They are not printable: a credential never reaches a log, a trace or an error.

Bearer tokens in headers: `Authorization`, and a subprotocol of WebSockets, which browsers cannot send headers with.

Upstream's pkg/authentication/request/bearertoken and websocket. A header without a bearer token is ignored, with a warning.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from multidict import MultiMapping

from noxu.expressions import expression
from noxu.features import nearest
from noxu.go.text import trim_space
from noxu.registry.access import User
from noxu.registry.resource import Resource

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
"""The group that may do everything."""
GROUPS: Final = (
    AUTHENTICATED,
    "system:bootstrappers",
    MASTERS,
    "system:monitoring",
    "system:nodes",
    "system:serviceaccounts",
    UNAUTHENTICATED,
)
"""The groups of Kubernetes itself; those of the service accounts of a namespace have its name at the end."""
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


# -- bearer -----------------------------------------------------------------------------------------------------------


PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
EXTRA_SPACE: Final = "the provided Authorization header contains extra space before the bearer token, and is ignored"
NOT_A_TOKEN: Final = "the provided Authorization header has no bearer token, and is ignored"  # noqa: S105 - a warning
_USUAL: Final = "Bearer "
_TOKENS: Final = expression(rf"(?:^|,)\s*{re.escape(PROTOCOL_PREFIX)}([^,]*)")
"""Tokens among subprotocols, found without splitting the header: a client may send half a million of them."""
_BASE64: Final = expression("[A-Za-z0-9_-]*")


def in_authorization(headers: MultiMapping[str], warnings: list[str]) -> Token | None:
    """The token of the header Authorization, None without one."""
    header = headers.get("Authorization", "")
    if header.startswith(_USUAL) and header.count(" ") == 1 and header.isascii() and header.strip() == header:
        return Token(header[len(_USUAL) :])
    header = trim_space(header)
    if not header:
        return None
    scheme, *rest = header.split(" ", 2)
    if scheme.lower() != "bearer" or not rest:
        warnings.append(NOT_A_TOKEN)
        return None
    if not rest[0]:
        warnings.append(EXTRA_SPACE)
        return None
    return Token(rest[0])


def in_subprotocol(headers: MultiMapping[str]) -> Token | None:
    """The token among the subprotocols of a WebSocket, None without one. Raises Rejected."""
    if "Sec-WebSocket-Protocol" not in headers:
        return None
    if "Sec-WebSocket-Protocol" not in headers or not _is_websocket(headers):
        return None
    lines = headers.getall("Sec-WebSocket-Protocol")
    encoded = [match[1].strip() for header in lines if PROTOCOL_PREFIX in header for match in _TOKENS.finditer(header)]
    if not encoded:
        return None
    if len(encoded) > 1:
        raise Rejected("multiple base64.bearer.authorization tokens specified")
    if not _BASE64.fullmatch(encoded[0]):
        raise Rejected("invalid base64.bearer.authorization token encoding")
    try:
        text = urlsafe_b64decode(encoded[0] + "=" * (-len(encoded[0]) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        is_encoding = not isinstance(error, UnicodeDecodeError)
        raise Rejected(f"invalid base64.bearer.authorization token{' encoding' if is_encoding else ''}") from None
    if not text:
        return None
    if len(lines) == 1 and "," not in lines[0]:
        raise Rejected("missing additional subprotocol")
    return Token(text)


def subprotocols(headers: MultiMapping[str]) -> Iterator[str]:
    """The names of subprotocols that a client offers."""
    for header in headers.getall("Sec-WebSocket-Protocol", []):
        yield from (name.strip() for name in header.split(","))


def _is_websocket(headers: MultiMapping[str]) -> bool:
    connection = headers.get("Connection", "").lower()
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in connection


def checked_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """Raises ValueError for a group that looks like one of Kubernetes, and is none."""
    listed = tuple(groups)
    for name in listed:
        head = ":".join(name.split(":")[:2])
        if head.startswith("system:") and head not in GROUPS and (similar := nearest(head, GROUPS)):
            raise ValueError(f'groups: "{name}" is no group of Kubernetes; did you mean {similar}?')
    return listed
