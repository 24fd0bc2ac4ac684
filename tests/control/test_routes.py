"""The table of routes: which one a path has, and what is said about a path or a method that has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.api.errors import ApiError
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.routes import ROUTES, NotAllowed, find
from noxu.values import Object
from tests.rows import rows


async def nothing(_call: ControlCall) -> Object:
    return {}


TABLE = [
    ControlRoute(method, path, nothing, "")
    for method, path in [
        ("GET", "/_noxu/"),
        ("GET", "/_noxu/things"),
        ("POST", "/_noxu/things"),
        ("GET", "/_noxu/things/{thing}"),
        ("DELETE", "/_noxu/things/{thing}"),
        ("POST", "/_noxu/things/{thing}/parts/{part}"),
    ]
]


@rows(
    "method, path, pattern, values",
    [
        ("GET", "/_noxu/", "/_noxu/", {}),
        ("GET", "/_noxu", "/_noxu/", {}),
        ("POST", "/_noxu/things", "/_noxu/things", {}),
        ("POST", "/_noxu/things/", "/_noxu/things", {}),
        ("DELETE", "/_noxu/things/a b", "/_noxu/things/{thing}", {"thing": "a b"}),
        ("POST", "/_noxu/things/a/parts/b", "/_noxu/things/{thing}/parts/{part}", {"thing": "a", "part": "b"}),
    ],
)
def test_a_path_has_a_route(method: str, path: str, pattern: str, values: Object) -> None:
    route, found = find(method, path, TABLE)
    assert (route.method, route.path, found) == (method, pattern, values)


@rows(
    "path, meant",
    [
        ("/_noxu/thing", "; did you mean /_noxu/things?"),
        ("/_noxu/things/a/b", "; did you mean /_noxu/things?"),
        ("/_noxu/things//parts/b", "; did you mean /_noxu/things/{thing}/parts/{part}?"),
        ("/_noxu//", "; did you mean /_noxu/?"),
        ("/_noxu/zzzzzzzzzzzzzzzz/zzzzzzzzzzzzzzz/zzzzzzzzzzzz/zzzzzz", ""),
    ],
)
def test_an_unknown_path_is_told_the_known_ones(path: str, meant: str) -> None:
    with pytest.raises(ApiError) as refusal:
        find("GET", path, TABLE)
    assert refusal.value.code == 404
    assert refusal.value.message == (
        f"{path} is no path of Noxu{meant} (GET /_noxu/ describes /_noxu/, /_noxu/things, /_noxu/things/{{thing}}, "
        "/_noxu/things/{thing}/parts/{part})"
    )


def test_a_long_path_is_cut() -> None:
    with pytest.raises(ApiError) as refusal:
        find("GET", f"/_noxu/{'a' * 1_000_000}", TABLE)
    assert refusal.value.message.startswith(f"/_noxu/{'a' * 93}… is no path of Noxu (GET")


def test_another_method_is_told_those_that_are_there() -> None:
    with pytest.raises(NotAllowed, match="/_noxu/things has no method PATCH, only GET, POST") as refusal:
        find("PATCH", "/_noxu/things", TABLE)
    assert refusal.value.code == 405
    assert refusal.value.methods == ["GET", "POST"]


def test_every_route_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/control.md").read_text()
    assert [f"{route.method} {route.path}" for route in ROUTES if f"`{route.method} {route.path}`" not in page] == []


def test_every_route_has_a_path_of_its_own_and_says_what_it_does() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        assert route.path.startswith("/_noxu/")
        assert route.about.endswith(".")
        assert route.method != "GET" or not route.body, f"{route.path}: a GET has no body"
