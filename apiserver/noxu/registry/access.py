"""Access: the question whether a user may do something, and the answer.

Filters ask it about each request; impersonation, writes that grant permissions or create by PUT, admission and access
reviews ask it about more. `security` answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias


class User(NamedTuple):
    """The user of a request. Without authentication every client is anonymous."""

    name: str = "system:anonymous"
    uid: str = ""
    groups: tuple[str, ...] = ("system:unauthenticated",)
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS: Final = User()


class AccessAttributes(NamedTuple):
    """What a user asks to do (upstream's authorizer.Attributes): a verb on a resource, or on a path of no resource.

    `resource` is a plural. `path` is None if the request is for a resource; else it is the path, and only the user and the
    verb count besides. `namespace` "" means the cluster scope or all namespaces; `name` "" means the collection. The
    selectors are those of the query, "" without one.
    """

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None
    field_selector: str = ""
    label_selector: str = ""


class Decision(NamedTuple):
    """The answer of an authorizer.

    `reason` says why, for access reviews and for the end of the message of a refusal. `error` is what failed on the way; the
    user may do it in spite of an error, but without an error the answer might have been another one if they may not.
    """

    allowed: bool
    reason: str = ""
    error: str = ""


Authorize: TypeAlias = Callable[[AccessAttributes], Decision]
"""Answers a question about access. Reads no storage, so that it is answered at once."""


ALLOWED: Final = Decision(allowed=True)


def allow_everything(attributes: AccessAttributes) -> Decision:  # noqa: ARG001 - an `Authorize`
    """Every user may do everything (upstream's AlwaysAllow)."""
    return ALLOWED
