"""Paths, scopes and tokens that try to reach another object (hazards S7, S8).

The expected answers are upstream's, recorded over a raw connection, except where a comment says otherwise.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noxu.testing.handle import Noxu
from tests.hostile.raw_http import GROUP, JSON, Reply, Target, custom_resource, definition, parse_answer, path_of

pytestmark = pytest.mark.slow(every=30)

SUBRESOURCES = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
CANARY = "canary-7f3a"
BASE = f"/apis/{GROUP}/v1"
DROPS = path_of("drops")
MAPS_OF_DEFAULT = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Drops are namespaced, lakes are not. Objects outside the default namespace contain the canary."""
    loaded = [
        definition("drops", subresources=SUBRESOURCES),
        definition("lakes", scope="Cluster", subresources=SUBRESOURCES),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        custom_resource("Drop", "a", {"replicas": 1}),
        custom_resource("Drop", "secret", {"text": CANARY}) | {"metadata": {"name": "secret", "namespace": "other"}},
        custom_resource("Lake", "a", {"text": CANARY, "replicas": 1}),
    ]
    with Noxu(tmp_path_factory.mktemp("paths"), loaded) as noxu:
        noxu._server.app.watches._min_timeout = 0.1  # a random query may start a watch, which ends by itself only then
        yield Target(noxu.url)


def send(target: Target, path: str, method: str = "GET", body: bytes | None = None, media_type: str = JSON) -> Reply:
    """Send the path unchanged: no client library normalises it."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n"
    return parse_answer(target.send_raw(f"{head}\r\n".encode("utf-8", "surrogateescape") + (body or b"")))


# -- S8: one object, and the paths that lead to it


PAGE = "404 page not found\n"


def missing(name: str) -> tuple[int, str]:
    return 404, f"drops.{GROUP} {name} not found"


PATHS: dict[str, tuple[int, str]] = {
    f"{DROPS}/a": (200, ""),
    f"{DROPS}/a/": (200, ""),
    f"{DROPS}/%61": (200, ""),
    f"{DROPS}/a%2fstatus": (200, ""),  # decoded first, then split
    f"{DROPS}/a%2Fscale": (200, ""),
    f"{DROPS}/a/status/x": (200, ""),  # further segments are ignored
    f"{DROPS}/a//status": (200, ""),
    f"{DROPS}/a#fragment": missing(r'"a#fragment"'),
    f"{DROPS}//a": missing('""'),
    f"{DROPS}/%2fa": missing('""'),
    f"{DROPS}/../drops/a": missing('".."'),
    f"{DROPS}/./a": missing('"."'),
    f"{DROPS}/..": (400, "Name parameter invalid: \"..\": may not be '..'"),
    f"{DROPS}/.": (400, "Name parameter invalid: \".\": may not be '.'"),
    f"{DROPS}/%2e%2e": (400, "Name parameter invalid: \"..\": may not be '..'"),
    f"{DROPS}/%2E": (400, "Name parameter invalid: \".\": may not be '.'"),
    f"{DROPS}/a%252fb": (400, "Name parameter invalid: \"a%2fb\": may not contain '%'"),
    f"{DROPS}/a%2f..%2fb": missing('"a"'),
    f"{DROPS}/a/..%2fb": missing('"a"'),
    f"{DROPS}/a/nosuch": missing('"a"'),
    f"{DROPS}/a%00": missing(r'"a\x00"'),
    f"{DROPS}/a%0d%0aX:%20y": missing(r'"a\r\nX: y"'),
    f"{DROPS}/%20": missing('" "'),
    f"{DROPS}/a;b=c": missing('"a;b=c"'),
    f"{DROPS}/a%3fwatch=1": missing('"a?watch=1"'),
    f"{DROPS}/A": missing('"A"'),
    f"{DROPS}/%c3%a9": missing('"é"'),
    f"{DROPS}/%ff": missing(r'"\xff"'),
    f"{DROPS}/%e2%80%ae": missing(r'"\u202e"'),
    f"{DROPS}/a\\b": missing(r'"a\\b"'),
    f"{DROPS}/a%5cb": missing(r'"a\\b"'),
    f"{DROPS}/{'a' * 300}": missing(f'"{"a" * 300}"'),
    f"{DROPS}/%": (400, "400 Bad Request"),
    f"{DROPS}/%zz": (400, "400 Bad Request"),
    f"{DROPS}/%u0061": (400, "400 Bad Request"),
    f"{DROPS};a=b/a": (404, PAGE),
    f"{BASE}/namespaces/de%66ault/drops/a": (200, ""),
    f"{BASE}/namespaces/DEFAULT/drops": (200, ""),
    f"{BASE}/namespaces/a%20b/drops": (200, ""),
    f"{BASE}/namespaces//drops": (200, ""),
    f"{BASE}/namespaces//drops/a": (404, PAGE),
    f"{BASE}/namespaces/default%2fx/drops": (404, PAGE),
    f"{BASE}/namespaces/default/lakes/a": (404, PAGE),
    f"{BASE}/drops/a": (404, PAGE),
    f"{BASE}/drops/default/a": (404, PAGE),
    f"{BASE}/DROPS": (404, PAGE),
    f"{BASE}//drops": (404, PAGE),
    f"{BASE}/./drops": (404, PAGE),
    f"{BASE}/namespaces/default/dr%6fps": (200, ""),
    f"{BASE}/lakes/..%2fdrops": (404, f'lakes.{GROUP} ".." not found'),
    f"/apis//{GROUP}/v1/drops": (404, PAGE),
    "/apis//v1/configmaps": (404, PAGE),
    "/apis//v1/namespaces/default/configmaps": (404, PAGE),
    f"/apis/{GROUP}//v1/drops": (404, PAGE),
    f"/apis/{GROUP}/%76%31/namespaces/default/drops": (200, ""),
    f"/apis/{GROUP.upper()}/v1/drops": (404, PAGE),
    f"http://127.0.0.1{DROPS}/a": (200, ""),  # as clients of a proxy ask
    # Ours alone: upstream answers 500 `invalid key`, and takes any host.
    f"{BASE}/namespaces/../drops/a": (400, "Namespace parameter invalid: \"..\": may not be '..'"),
    f"{BASE}/namespaces/%2e%2e/drops": (400, "Namespace parameter invalid: \"..\": may not be '..'"),
    f"{BASE}/namespaces/%ff/drops": (400, r'Namespace parameter invalid: "\xff": must be UTF-8'),
    f"http://evil.example{DROPS}/a": (403, "Host 'evil.example' is not this server: use its loopback address, or name it in --host"),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_answered_as_upstream_answers_it(target: Target, path: str) -> None:
    status, message = PATHS[path]
    answer = send(target, path)
    assert answer.status == status, answer.body
    if status != 200:
        assert answer.message == message
    else:
        assert CANARY.encode() not in answer.body


@pytest.mark.parametrize("path", ["//apis", f"//apis/{GROUP}/v1/drops", "/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/.%00/"])  # fmt: skip
def test_a_path_outside_the_api_is_not_found(target: Target, path: str) -> None:
    answer = send(target, path)
    assert answer.status == 404
    assert "root:" not in answer.body.decode()


QUERIES: dict[str, tuple[int, str]] = {
    "limit=1;watch=1": (200, ""),  # Go drops parameters with a semicolon
    "%zz=1&limit=1": (200, ""),
    "limit=1&limit=x": (200, ""),
    "watch=%00": (200, ""),
    "continue=..%2f..&limit=1": (400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"),
    "fieldSelector=metadata.name%3D..%2fsecret": (200, ""),
    "fieldSelector=metadata.namespace%3Dother": (200, ""),
    "labelSelector=a%00": (200, ""),
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_does_not_reach_other_objects(target: Target, query: str) -> None:
    timeout = "&timeoutSeconds=1" if "watch" in query else ""
    answer = send(target, f"{DROPS}?{query}{timeout}")
    status, message = QUERIES[query]
    assert answer.status == status
    assert CANARY.encode() not in answer.body
    if "continue" in query:
        assert answer.message == message


def test_a_continue_token_of_another_namespace_lists_the_namespace_of_the_path(target: Target) -> None:
    """A token says where a list continues; the path says what is listed."""
    for start in ("/other/\0", "other/secret\0", "/../other/a\0", "/\0", "/other/secret\0", "default/../other/\0"):
        token = base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).encode())
        answer = send(target, f"{DROPS}?limit=5&continue={token.rstrip(b'=').decode()}")
        assert answer.status in (200, 400)
        assert CANARY.encode() not in answer.body


PIECES = st.sampled_from(
    ["/", "//", "..", ".", "%2e%2e", "%2f", "%2F", "%00", ";", "%3b", "?", "%3f", "#", "%23", "\\", "%5c", "%", "%25", "%252f",
     "other", "secret", "drops", "lakes", "namespaces", "watch", "status", "scale", "a", "default", "v1", GROUP, "apis", "é", "%ff",
     "&", "=", "continue=", "fieldSelector=", "*", "http://127.0.0.1"]
)  # fmt: skip


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    rest=st.lists(PIECES, max_size=9).map("".join), method=st.sampled_from(["GET", "DELETE", "PUT", "PATCH", "HEAD"])
)
def test_no_path_below_a_collection_reaches_another_namespace_or_kind(target: Target, rest: str, method: str) -> None:
    """Any text after `…/namespaces/default/drops`."""
    path = f"{DROPS}{rest}".encode("utf-8", "surrogateescape").decode("latin1")
    body = (
        json.dumps(custom_resource("Drop", "secret", {"text": "changed"})).encode()
        if method in ("PUT", "PATCH")
        else None
    )
    answer = send(target, path, method, body)
    assert CANARY.encode() not in answer.body
    assert answer.status != 500, answer.body
    assert CANARY in send(target, path_of("drops", "secret", "other")).body.decode()
    assert CANARY in send(target, path_of("lakes", "a", "")).body.decode()


MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
NAMED = json.dumps(custom_resource("Drop", "..")).encode()
SCALE = json.dumps({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": ".."}}).encode()
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# name, method, path behind the name, body, media type
UNNAMEABLE: list[tuple[str, str, str, bytes | None, str]] = [
    ("a get", "GET", "", None, JSON),
    ("a get of a status", "GET", "/status", None, JSON),
    ("a get of a scale", "GET", "/scale", None, JSON),
    ("a replacement", "PUT", "", NAMED, JSON),
    ("a replacement of a status", "PUT", "/status", NAMED, JSON),
    ("a replacement of a scale", "PUT", "/scale", SCALE, JSON),
    ("a merge patch", "PATCH", "", b"{}", MERGE),
    ("a JSON patch", "PATCH", "", b"[]", "application/json-patch+json"),
    ("a merge patch of a status", "PATCH", "/status", b"{}", MERGE),
    ("a merge patch of a scale", "PATCH", "/scale", b"{}", MERGE),
    ("an apply", "PATCH", "?fieldManager=m", NAMED, APPLY),
    ("an apply of a status", "PATCH", "/status?fieldManager=m", NAMED, APPLY),
    ("a deletion", "DELETE", "", None, JSON),
    ("a deletion with options", "DELETE", "", b"{}", JSON),
    ("a deletion of what is corrupt", "DELETE", "?ignoreStoreReadErrorWithClusterBreakingPotential=true", None, JSON),
]


def unnameable() -> Iterator[Any]:
    """Every request for drops, which have subresources, and those without a body of a drop for other kinds."""
    for name, method, rest, body, media_type in UNNAMEABLE:
        yield pytest.param(f"{DROPS}/..{rest}", method, body, media_type, id=name)
        if not rest.startswith("/") and body is not NAMED:
            for collection in (f"{BASE}/lakes", MAPS_OF_DEFAULT, DEFINITIONS):
                yield pytest.param(f"{collection}/..{rest}", method, body, media_type, id=f"{name} of {collection}")


@pytest.mark.parametrize(("path", "method", "body", "media_type"), list(unnameable()))
def test_a_name_that_no_object_can_have_is_refused_before_the_object_is_looked_up(
    target: Target, path: str, method: str, body: bytes | None, media_type: str
) -> None:
    answer = send(target, path, method, body, media_type)
    assert (answer.status, answer.message) == (400, "Name parameter invalid: \"..\": may not be '..'")


LATER: list[tuple[str, str, bytes | None, str, int]] = [
    ("the Content-Type of a deletion", "DELETE", b"null", "application/cbor", 415),
    ("the options of a deletion", "DELETE", b'{"dryRun":["x"]}', JSON, 422),
    ("the Content-Type of a patch", "PATCH", b"{}", JSON, 415),
    ("a patch that is no JSON", "PATCH", b"{", MERGE, 400),
    ("the name of the object", "PUT", NAMED.replace(b'".."', b'"a"'), JSON, 400),
]


@pytest.mark.parametrize(
    ("method", "body", "media_type", "status"), [row[1:] for row in LATER], ids=[row[0] for row in LATER]
)
def test_what_is_wrong_with_a_request_comes_before_its_name(
    target: Target, method: str, body: bytes, media_type: str, status: int
) -> None:
    answer = send(target, f"{DROPS}/..", method, body, media_type)
    assert answer.status == status
    assert "Name parameter" not in answer.message


# -- S7: the wrong scope (CVE-2019-11247). Generated: every verb, both wrong scopes, every subresource

VERBS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
NAMES = ["", "/a", "/a/status", "/a/scale", "/a/nosuch"]
WRONG = {"a namespaced kind without namespace": (f"{BASE}/drops", "Drop"), "a cluster kind in a namespace": (f"{BASE}/namespaces/default/lakes", "Lake")}  # fmt: skip
OF_ALL_NAMESPACES = {("GET", ""), ("HEAD", "")}  # list and watch


def matrix() -> Iterator[tuple[str, str, str]]:
    for scope in WRONG:
        for verb in VERBS:
            for name in NAMES:
                if "without" not in scope or (verb, name) not in OF_ALL_NAMESPACES:
                    yield scope, verb, name


@pytest.mark.parametrize(("scope", "verb", "name"), list(matrix()))
def test_a_path_of_the_wrong_scope_is_not_found_and_changes_nothing(
    target: Target, scope: str, verb: str, name: str
) -> None:
    path, kind = WRONG[scope]
    before = [send(target, each).body for each in (f"{BASE}/drops", f"{BASE}/lakes")]
    bodies: list[tuple[bytes | None, str]] = [(None, "")]
    if verb in ("POST", "PUT"):
        bodies = [(json.dumps(custom_resource(kind, "new" if verb == "POST" else "a", {"replicas": 9})).encode(), JSON)]
    if verb == "PATCH":
        bodies = [
            (b'{"spec":{"replicas":9}}', "application/merge-patch+json"),
            (b'[{"op":"replace","path":"/spec/replicas","value":9}]', "application/json-patch+json"),
            (json.dumps(custom_resource(kind, "a", {"replicas": 9})).encode(), "application/apply-patch+yaml"),
        ]
    for body, media_type in bodies:
        answer = send(target, f"{path}{name}?fieldManager=m", verb, body, media_type)
        assert answer.status == 404
        assert verb == "HEAD" or answer.body.decode() == PAGE
    assert [send(target, each).body for each in (f"{BASE}/drops", f"{BASE}/lakes")] == before


@pytest.mark.parametrize("verb", ["GET", "HEAD"])
def test_watches_of_the_wrong_scope_are_refused(target: Target, verb: str) -> None:
    assert send(target, f"{BASE}/namespaces/default/lakes?watch=1&timeoutSeconds=1", verb).status == 404
    assert send(target, f"{BASE}/watch/namespaces/default/lakes/a", verb).status == 404


# -- the past: the same paths behind a moment


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """As `target`, with SQLite, from which the past is read."""
    loaded = [definition("drops", subresources=SUBRESOURCES), custom_resource("Drop", "a", {"replicas": 1})]
    directory = tmp_path_factory.mktemp("past")
    with Noxu(directory / "handle", loaded, data=directory / "data") as noxu:
        yield Target(noxu.url)


@pytest.mark.parametrize("path", [path for path in PATHS if path.startswith("/")])
def test_a_path_means_the_same_in_the_past(target: Target, stored: Target, path: str) -> None:
    for server in (target, stored):
        now, then = send(server, path), send(server, f"/_noxu/at/now{path}")
        assert (then.status, then.body) == (now.status, now.body)


@pytest.mark.parametrize("query", [query for query in QUERIES if not query.startswith("watch")])
def test_a_query_means_the_same_in_the_past(target: Target, stored: Target, query: str) -> None:
    for server in (target, stored):
        now, then = send(server, f"{DROPS}?{query}"), send(server, f"/_noxu/at/now{DROPS}?{query}")
        assert (then.status, then.body) == (now.status, now.body)
