"""What stands at `/_noxu/`: the table of routes. Each module of this package has its own, `ROUTES`, and a line in this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.config import own_version
from noxu.control import (
    backup,
    clock,
    coverage_calls,
    diff,
    explaining,
    fault_routes,
    idle,
    manners_calls,
    past,
    past_calls,
    programs,
    schema_calls,
    snapshots,
    tenants,
    users,
    workloads,
    write_log,
)
from noxu.control.arguments import cut, likely
from noxu.control.calls import ControlCall, ControlRoute
from noxu.values import Object

ROOT: Final = "/_noxu/"


async def index(_call: ControlCall) -> Object:
    """The version of the server, and its routes."""
    return {"version": own_version(), "routes": [route.described() for route in ROUTES]}


ROUTES: Final[Sequence[ControlRoute]] = (
    ControlRoute("GET", ROOT, index, "List what stands here."),
    *tenants.ROUTES,
    *users.ROUTES,
    *clock.ROUTES,
    *idle.ROUTES,
    *fault_routes.ROUTES,
    *programs.ROUTES,
    *workloads.ROUTES,
    *snapshots.ROUTES,
    *backup.ROUTES,
    *past.ROUTES,
    *write_log.ROUTES,
    *manners_calls.ROUTES,
    *coverage_calls.ROUTES,
    *diff.ROUTES,
    *past_calls.ROUTES,
    *explaining.ROUTES,
    *schema_calls.ROUTES,
)
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
        message = f"{cut(path)} is no path of Noxu{likely(path, paths)} (GET {ROOT} describes {', '.join(paths)})"
        raise ApiError(404, message, "NotFound", {})
    if method not in there:
        raise NotAllowed(path, method, sorted(there))
    return there[method]


class NotAllowed(ApiError):
    """405. `methods` are those that the path has, for the header Allow."""

    __module__ = "noxu"  # where ApiError is public

    def __init__(self, path: str, method: str, methods: Sequence[str]) -> None:
        super().__init__(
            405, f"{cut(path)} has no method {cut(method)}, only {', '.join(methods)}", "MethodNotAllowed", {}
        )
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
