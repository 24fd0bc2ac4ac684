"""A call of `/_noxu/`: what was asked, what answers it, and the route that ties both to a method and a path.

    ControlRoute("POST", "/_noxu/snapshots/{snapshot}/restore", restore, "Restore what a snapshot has.")

A segment in braces is any text, and becomes `call.path["snapshot"]`. Arguments that a route does not declare are refused.
Its function is asynchronous, raises ApiError, and returns the answer: an object, one that was `Created`, a `Download`, or one
that stays open: `Lines`, or a `Held` answer. It knows no HTTP; `noxu.http.control` does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.control.arguments import NONE, Arguments
from noxu.control.running import Control, Held
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.control_plane import ControlPlane
    from noxu.registry.access import User


NOT_KEPT: Final = (("Cache-Control", "no-cache, private"),)


class Created(NamedTuple):
    """An object that the call has made: 201."""

    value: Object


class Download(NamedTuple):
    """A file instead of an object; its bytes may be made while it is sent."""

    body: bytes | AsyncIterable[bytes]
    content_type: str = "application/octet-stream"
    headers: tuple[tuple[str, str], ...] = NOT_KEPT


class Lines(NamedTuple):
    """An answer that stays open: each line of JSON is sent when there is one, until there is none any more."""

    lines: AsyncGenerator[bytes, None]


Result = Object | Created | Download | Lines | Held


@dataclass(frozen=True, slots=True)
class ControlCall:
    """A request, as the function of its route gets it. `query` and `body` have a value for each declared argument."""

    path: Mapping[str, str]
    query: Object
    body: Object
    user: User
    control: Control
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def plane(self) -> ControlPlane:
        """The control plane of the server that was asked."""
        return self.control.server.plane


class ControlRoute(NamedTuple):
    """`about` is a sentence for people. `query` and `body` declare the arguments; without `body` there must be none."""

    method: str
    path: str
    answer: Callable[[ControlCall], Awaitable[Result]]
    about: str
    query: Arguments = NONE
    body: Arguments = NONE

    def described(self) -> Object:
        """The route, as `GET /_noxu/` lists it."""
        listed: Object = {"method": self.method, "path": self.path, "about": self.about}
        for place, arguments in (("query", self.query), ("body", self.body)):
            if arguments:
                listed[place] = {
                    name: f"{argument.type.name}: {argument.about}" + (" (required)" if argument.required else "")
                    for name, argument in arguments.items()
                }
        return listed
