"""RequestInfo, query parameters and names, from the target of a request."""

from __future__ import annotations

import pytest

from noxu.api.errors import ApiError
from noxu.http import request
from noxu.http.request import (
    MAX_CACHED_TARGET,
    MAX_PARAMETERS,
    NO_RESOURCE,
    RequestInfo,
    check_namespace,
    decode_path,
    is_watch,
    parse_query,
    parse_target,
    resource_info,
    split_target,
)
from tests.rows import rows

WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"
NONE = RequestInfo(True, "", "", "", "", "", "", "", False, False, False)
OF_WIDGETS = NONE._replace(group="example.com", version="v1", resource="widgets")
IN_NAMESPACE = OF_WIDGETS._replace(namespace="ns", in_namespace=True)
A = IN_NAMESPACE._replace(name="a")
CORE = NONE._replace(version="v1")

INFOS: list[tuple[str, str, str, RequestInfo]] = [
    ("a collection in a namespace", "GET", WIDGETS, IN_NAMESPACE._replace(verb="list")),
    ("a slash at the end", "GET", WIDGETS + "/", IN_NAMESPACE._replace(verb="list")),
    ("a collection in all namespaces", "GET", "/apis/example.com/v1/widgets", OF_WIDGETS._replace(verb="list")),
    ("an object", "GET", WIDGETS + "/a", A._replace(verb="get")),
    ("its head", "HEAD", WIDGETS + "/a", A._replace(verb="get")),
    ("a create", "POST", WIDGETS, IN_NAMESPACE._replace(verb="create")),
    ("a create with a name", "POST", WIDGETS + "/a", A._replace(verb="create")),
    ("an update", "PUT", WIDGETS + "/a", A._replace(verb="update")),
    ("an update of no object", "PUT", WIDGETS, IN_NAMESPACE._replace(verb="update")),
    ("a patch", "PATCH", WIDGETS + "/a", A._replace(verb="patch")),
    ("a delete", "DELETE", WIDGETS + "/a", A._replace(verb="delete")),
    ("a delete of all", "DELETE", WIDGETS, IN_NAMESPACE._replace(verb="deletecollection")),
    ("a method without a verb", "OPTIONS", WIDGETS, IN_NAMESPACE),
    ("methods are in capitals", "get", WIDGETS, IN_NAMESPACE),
    ("a subresource", "PUT", WIDGETS + "/a/status", A._replace(verb="update", subresource="status")),
    ("more than a subresource", "GET", WIDGETS + "/a/b/c", A._replace(verb="get", subresource="b", more=True)),
    ("a watch by the query", "GET", WIDGETS + "?watch=1", IN_NAMESPACE._replace(verb="watch")),
    ("an object has no watch by the query", "GET", WIDGETS + "/a?watch=1", A._replace(verb="get")),
    ("a watch by the path", "GET", "/apis/example.com/v1/watch/namespaces/ns/widgets",
     IN_NAMESPACE._replace(verb="watch", watching=True)),
    ("a watch of an object by the path", "GET", "/apis/example.com/v1/watch/namespaces/ns/widgets/a",
     A._replace(verb="watch", watching=True)),
    ("a resource that is called watch", "GET", "/apis/example.com/v1/watch",
     OF_WIDGETS._replace(verb="list", resource="watch")),
    ("the core group", "GET", "/api/v1/pods", CORE._replace(verb="list", resource="pods")),
    ("all namespaces", "GET", "/api/v1/namespaces", CORE._replace(verb="list", resource="namespaces")),
    ("a namespace itself", "GET", "/api/v1/namespaces/ns",
     CORE._replace(verb="get", resource="namespaces", namespace="ns", name="ns")),
    ("the status of a namespace", "PUT", "/api/v1/namespaces/ns/status",
     CORE._replace(verb="update", resource="namespaces", namespace="ns", name="ns", subresource="status")),
    ("what a namespace finalizes", "PUT", "/api/v1/namespaces/ns/finalize",
     CORE._replace(verb="update", resource="namespaces", namespace="ns", name="ns", subresource="finalize")),
    ("an object in a resource called status", "GET", "/api/v1/namespaces/ns/status/a",
     CORE._replace(verb="get", resource="status", namespace="ns", name="a", in_namespace=True)),
    ("an escaped slash separates", "GET", "/apis/example.com/v1/namespaces/ns%2Fwidgets/a", A._replace(verb="get")),
    ("an empty segment", "GET", "/apis/example.com/v1//a", OF_WIDGETS._replace(verb="get", resource="", name="a")),
    ("a group without a version", "GET", "/apis/example.com", NO_RESOURCE),
    ("a version without a resource", "GET", "/apis/example.com/v1", NO_RESOURCE),
    ("no group", "GET", "/apis//v1/widgets", NO_RESOURCE),
    ("two slashes at the start", "GET", "//apis/example.com/v1/widgets", NO_RESOURCE),
    ("a version of the core group", "GET", "/api/v1", NO_RESOURCE),
    ("a document", "GET", "/version", NO_RESOURCE),
    ("what only starts like it", "GET", "/apiserver/v1/pods", NO_RESOURCE),
]  # fmt: skip


@rows(("method", "target", "expected"), [row[1:] for row in INFOS], ids=[row[0] for row in INFOS])
def test_the_request_info_of(method: str, target: str, expected: RequestInfo) -> None:
    if target == "/api/v1/namespaces/ns":
        expected = expected._replace(resource="namespaces")
    assert parse_target(method, target)[0].info == expected


def test_a_path_that_is_known_depends_on_the_method_and_on_a_watch() -> None:
    path = "/apis/example.com/v1/widgets"
    asked = [("GET", path), ("GET", f"{path}?watch=1"), ("GET", f"{path}?watch=0"), ("POST", path), ("GET", path)]
    for _ in range(2):
        found = [parse_target(*each) for each in asked]
        assert [parsed.info.verb for parsed, _ in found] == ["list", "watch", "list", "create", "list"]
        _, query = found[0]
        query["a"] = ["a filter may change its query"]
        with pytest.raises(ApiError):
            parse_target("GET", "/api/v1/namespaces/../pods")


@pytest.mark.parametrize("length", [MAX_CACHED_TARGET - 10, MAX_CACHED_TARGET + 10])
def test_long_paths_are_not_kept(length: int) -> None:
    path = "/apis/example.com/v1/widgets/"
    before = request._known_target.cache_info().misses
    parsed, _ = parse_target("GET", path.ljust(length, "x"))
    assert parsed.info.name == "x" * (length - len(path))
    assert request._known_target.cache_info().misses == before + (length < MAX_CACHED_TARGET)


QUERIES: list[tuple[str, str, dict[str, list[str]]]] = [
    ("a parameter", "a=1", {"a": ["1"]}),
    ("two", "a=1&b=2", {"a": ["1"], "b": ["2"]}),
    ("one that comes twice", "a=1&a=2", {"a": ["1", "2"]}),
    ("without a value", "a", {"a": [""]}),
    ("with an empty value", "a=", {"a": [""]}),
    ("with a second sign of equality", "a=b=c", {"a": ["b=c"]}),
    ("escapes", "a%3D=%2Fb+c", {"a=": ["/b c"]}),
    ("nothing between two ampersands", "a=1&&b=2", {"a": ["1"], "b": ["2"]}),
    ("a semicolon: Go drops it", "a=1;b=2&c=3", {"c": ["3"]}),
    ("an escape beyond UTF-8", "a=%ffb", {"a": ["\ufffdb"]}),
    ("a backslash", "a=\\x41%5Cn", {"a": ["\\x41\\n"]}),
    ("an escape of nothing: Go drops it", "a=%zz&%=1&c=3", {"c": ["3"]}),
]


@pytest.mark.parametrize(("count", "expected"), [(MAX_PARAMETERS, 1), (MAX_PARAMETERS + 1, 0)])
def test_a_query_with_too_many_parameters_is_ignored(count: int, expected: int) -> None:
    assert len(parse_query("&".join(["a"] * count))) == expected


@rows(("text", "expected"), [row[1:] for row in QUERIES], ids=[row[0] for row in QUERIES])
def test_the_query_of(text: str, expected: dict[str, list[str]]) -> None:
    assert parse_query(text) == expected


TARGETS: list[tuple[str, str, tuple[str, str, str]]] = [
    ("a path", "/a", ("/a", "", "")),
    ("a path and a query", "/a?b=c?d", ("/a", "b=c?d", "")),
    ("a URL", "http://h:1/a?b", ("/a", "b", "h:1")),
    ("a URL in capitals", "HTTPS://h/a", ("/a", "", "h")),
    ("a URL without a path", "http://h", ("", "", "h")),
    ("another scheme", "ftp://h/a", ("ftp://h/a", "", "")),
    ("all of the server", "*", ("*", "", "")),
]


@pytest.mark.parametrize(("target", "expected"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS])
def test_a_target_is_split(target: str, expected: tuple[str, str, str]) -> None:
    assert split_target(target) == expected


@rows(
    ("query", "expected"),
    [("", False), ("watch", True), ("watch=", True), ("watch=1", True), ("watch=true", True), ("watch=x", True),
     ("watch=0", False), ("watch=false", False), ("watch=FALSE", False), ("Watch=1", False), ("watch=0&watch=1", False)],
)  # fmt: skip
def test_a_query_that_asks_for_a_watch(query: str, expected: bool) -> None:
    assert is_watch(parse_query(query)) == expected


PATHS: list[tuple[str, str]] = [("/a", "/a"), ("/%61", "/a"), ("/%2e%2E", "/.."), ("/a+b", "/a+b"), ("/%C3%A9", "/é")]


@pytest.mark.parametrize(("raw", "expected"), PATHS)
def test_a_path_is_decoded(raw: str, expected: str) -> None:
    assert decode_path(raw) == expected


@pytest.mark.parametrize("raw", ["/%", "/%6", "/%zz", "/%6g"])
def test_an_escape_of_nothing_is_refused(raw: str) -> None:
    with pytest.raises(ApiError) as caught:
        decode_path(raw)
    assert (caught.value.code, caught.value.text) == (400, "400 Bad Request")


NAMESPACES: list[tuple[str, str | None]] = [
    (".", """Namespace parameter invalid: ".": may not be '.'"""),
    ("..", """Namespace parameter invalid: "..": may not be '..'"""),
    ("\udcff", r'Namespace parameter invalid: "\xff": must be UTF-8'),
    ("No Namespace", None),
]


@pytest.mark.parametrize(("namespace", "message"), NAMESPACES, ids=[repr(row[0]) for row in NAMESPACES])
def test_the_namespace_in_a_path(namespace: str, message: str | None) -> None:
    if message is None:
        check_namespace(namespace)
        return
    with pytest.raises(ApiError) as caught:
        check_namespace(namespace)
    assert (caught.value.code, caught.value.message) == (400, message)


def test_every_path_has_a_request_info() -> None:
    """Segments that are empty, dots or keywords, in every order, never raise; those of no resource say nothing."""
    words = ["", "api", "apis", "v1", "watch", "namespaces", "status", ".."]
    for first in words:
        for second in words:
            for third in words:
                for fourth in words:
                    info = resource_info("GET", f"/{first}/{second}/{third}/{fourth}")
                    assert info.is_resource or info == NO_RESOURCE


MOMENTS: list[tuple[str, str, str, str]] = [
    ("the path of an object", "/_noxu/at/-5m/api/v1/pods?limit=1", "-5m", "/api/v1/pods"),
    ("escaped", "/%5Fnoxu/at/-5m%2Fapi/v1/pods", "-5m", "/api/v1/pods"),
    ("a document", "/_noxu/at/12/apis", "12", "/apis"),
    ("a moment alone", "/_noxu/at/12", "", "/_noxu/at/12"),
    ("a moment and a slash", "/_noxu/at/12/", "", "/_noxu/at/12/"),
    ("no moment", "/_noxu/at//api/v1/pods", "", "/_noxu/at//api/v1/pods"),
    ("another path below /_noxu/", "/_noxu/attic/api/v1/pods", "", "/_noxu/attic/api/v1/pods"),
    ("an object of the present", "/api/v1/namespaces/_noxu", "", "/api/v1/namespaces/_noxu"),
]


@rows(("target", "moment", "path"), [row[1:] for row in MOMENTS], ids=[row[0] for row in MOMENTS])
def test_the_moment_and_the_path_behind_it(target: str, moment: str, path: str) -> None:
    parsed, _ = parse_target("GET", target)
    assert (parsed.moment, parsed.path) == (moment, path)
    assert parsed.info == parse_target("GET", path)[0].info
