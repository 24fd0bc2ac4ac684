"""What stands at `/_noxu/`: a table of routes, each a method, a path and an asynchronous function of a `ControlCall`.

A room of `/_noxu/` has a table `ROUTES` of its own and one line in that of this module. Its functions raise ApiError, and
return the answer: an object, one that was `Created`, a `Download`, or a `Held` answer, which stays open. They know no HTTP;
`noxu.http.control` does.

    ControlRoute("POST", "/_noxu/snapshots/{snapshot}/restore", restore, "Restore what a snapshot has.")

A segment in braces is any text, and becomes `call.path["snapshot"]`. Arguments that a route does not declare are refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.config import own_version
from noxu.control.arguments import NONE, Arguments
from noxu.control.running import Control, Held
from noxu.features import meant
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.control_plane import ControlPlane
    from noxu.registry.access import User

ROOT: Final = "/_noxu/"


class Created(NamedTuple):
    """An object that the call has made: 201."""

    value: Object


class Download(NamedTuple):
    """A file instead of an object; its bytes may be made while it is sent."""

    body: bytes | AsyncIterable[bytes]
    content_type: str = "application/octet-stream"


Result = Object | Created | Download | Held


@dataclass(frozen=True, slots=True)
class ControlCall:
    """A request, as the function of its route gets it. `query` and `body` have a value for each declared argument."""

    path: Mapping[str, str]
    query: Object
    body: Object
    user: User
    control: Control

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


async def index(_call: ControlCall) -> Object:
    """The version of the server, and its routes."""
    return {"version": own_version(), "routes": [route.described() for route in ROUTES]}


ROUTES: Final[Sequence[ControlRoute]] = (ControlRoute("GET", ROOT, index, "List what stands here."),)
"""Of all rooms, in the order in which they are listed."""


# -- finding a route ---------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A route, and the values of the segments in braces."""

    route: ControlRoute
    path: Mapping[str, str]


def find(method: str, path: str, routes: Sequence[ControlRoute] = ROUTES) -> Found:
    """The route of a request. Raises ApiError NotFound, which lists the paths; MethodNotAllowed, which lists the methods."""
    segments = _segments(path)
    there = {
        route.method: Found(route, values) for route in routes if (values := _match(route.path, segments)) is not None
    }
    if not there:
        paths = sorted({route.path for route in routes})
        message = f"{path} is no path of Noxu, which has {', '.join(paths)}{meant(path, paths)}"
        raise ApiError(404, message, "NotFound", {})
    if method not in there:
        raise NotAllowed(path, method, sorted(there))
    return there[method]


class NotAllowed(ApiError):
    """405. `methods` are those that the path has, for the header Allow."""

    __module__ = "noxu"  # where ApiError is public

    def __init__(self, path: str, method: str, methods: Sequence[str]) -> None:
        super().__init__(405, f"{path} has no method {method}, only {', '.join(methods)}", "MethodNotAllowed", {})
        self.methods = methods


def _match(pattern: str, segments: Sequence[str]) -> Mapping[str, str] | None:
    """The values of the segments in braces; None if the pattern is another path's. An empty segment has no value."""
    values: dict[str, str] = {}
    expected = _segments(pattern)
    if len(expected) != len(segments):
        return None
    for name, segment in zip(expected, segments, strict=True):
        if name.startswith("{") and segment:
            values[name[1:-1]] = segment
        elif name != segment:
            return None
    return values


def _segments(path: str) -> Sequence[str]:
    return path.removesuffix("/").split("/")
