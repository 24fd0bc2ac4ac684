"""/openapi/v2 and /openapi/v3: negotiation, hashes and caching. The expectations are the reference server's answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.discovery.openapi import DocumentKey, Published, PublishedDocument
from noxu.http.answer import Answer
from noxu.http.documents import Documents
from noxu.http.openapi import OpenAPI
from noxu.observability.health import Checks
from noxu.registry.builtin import built_in_versions
from noxu.registry.custom import versions_of
from noxu.registry.served_resources import ServedResources

NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
GROUP = "/openapi/v3/apis/example.com/v1"

NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
CRD = {
    "spec": {"group": "example.com", "scope": "Namespaced", "names": NAMES,
             "versions": [{"name": "v1", "served": True, "storage": True}]},
    "status": {"acceptedNames": NAMES},
}  # fmt: skip

Ask = Callable[..., Answer]


def catalog_of_one() -> ServedResources:
    return ServedResources(built_in_versions(), {"widgets.example.com": versions_of(CRD, 0)})


@pytest.fixture
def ask() -> Ask:
    served_resources = catalog_of_one()
    documents = Documents(lambda: served_resources, "127.0.0.1:1", lambda: "0.1.0", Checks({}, {}), lambda: NOW)

    def ask(url: str, method: str = "GET", **headers: str) -> Answer:
        path, _, query = url.partition("?")
        values = {name: [value] for name, _, value in (part.partition("=") for part in query.split("&")) if name}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return asyncio.run(documents.answer(path, values, given))

    return ask


def header(answer: Answer, name: str) -> str:
    (value,) = [value for key, value in answer.headers if key == name]
    return value


def body(answer: Answer) -> Any:
    assert isinstance(answer.body, bytes)
    return json.loads(answer.body)


# -- what may be asked for --------------------------------------------------------------------------------------------


@pytest.mark.slow(every=7)
@pytest.mark.parametrize(
    ("accept", "v2", "v3"),
    [
        ("", "application/json", "application/json"),
        ("*/*", "application/json", "application/json"),
        ("application/*", "application/json", "application/json"),
        ("application/json", "application/json", "application/json"),
        ("application/json;charset=utf-8", "application/json", "application/json"),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF, None),
        (V2_PROTOBUF, V2_PROTOBUF, None),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", None, V3_PROTOBUF),
        (V3_PROTOBUF, None, V3_PROTOBUF),
        (f"{V2_PROTOBUF},{V3_PROTOBUF},application/json;q=0.5", V2_PROTOBUF, V3_PROTOBUF),
        (f"application/json,{V2_PROTOBUF}", "application/json", "application/json"),
        (f"{V2_PROTOBUF};q=0.1,application/json;q=0.2", "application/json", "application/json"),
        ("text/plain, */*;q=0.1", "application/json", "application/json"),
        ("text/plain", None, None),
        ("application/yaml", None, None),
        ("application/vnd.kubernetes.protobuf", None, None),
        ("nonsense", None, None),
    ],
)
def test_what_is_asked_for(ask: Ask, accept: str, v2: str | None, v3: str | None) -> None:
    for path, expected in (("/openapi/v2", v2), (GROUP, v3)):
        answer = ask(path, Accept=accept)
        assert header(answer, "Vary") == "Accept"
        if expected is None:
            assert (answer.status, answer.body) == (406, b"")
        else:
            assert (answer.status, answer.content_type) == (200, expected)


def test_the_index_is_json_whatever_is_asked_for(ask: Ask) -> None:
    for accept in ("", "text/plain", V3_PROTOBUF):
        answer = ask("/openapi/v3", Accept=accept)
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert "apis/example.com/v1" in body(answer)["paths"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_how_it_is_asked_does_not_matter(ask: Ask, method: str) -> None:
    assert ask(GROUP, method).status == 200


@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v2", GROUP])
def test_a_slash_at_the_end_does_not_matter(ask: Ask, path: str) -> None:
    assert ask(path + "/").body == ask(path).body


@pytest.mark.parametrize(
    "path",
    ["/openapi", "/openapi/v1", "/openapi/v2/x", GROUP + "beta1", "/openapi/v3/apis/example.com", "/openapi/v3/apis"],
)
def test_what_is_not_there(ask: Ask, path: str) -> None:
    for accept in ("", "text/plain"):
        with pytest.raises(ApiError) as caught:
            ask(path, Accept=accept)
        assert caught.value.code == 404


# -- hashes and caching -----------------------------------------------------------------------------------------------


def test_without_a_hash_it_has_to_be_asked_again(ask: Ask) -> None:
    for path in ("/openapi/v2", "/openapi/v3", GROUP):
        answer = ask(path)
        assert header(answer, "Cache-Control") == "no-cache, private"
        assert header(answer, "Last-Modified") == "Sat, 21 Nov 2026 12:00:00 GMT"
        assert "Expires" not in dict(answer.headers)


def test_with_its_hash_it_may_be_kept_for_ever(ask: Ask) -> None:
    url = body(ask("/openapi/v3"))["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    for accept in ("application/json", V3_PROTOBUF):
        answer = ask(url, Accept=accept)
        assert answer.status == 200
        assert header(answer, "Cache-Control") == "public, immutable"
        assert header(answer, "Expires") == "Sun, 21 Nov 2027 12:00:00 GMT"
        assert header(answer, "ETag") == f'"{url.partition("=")[2]}"'
        assert header(answer, "Vary") == "Accept"
    assert ask(url).body == ask(GROUP).body


def test_with_an_old_hash_the_client_is_sent_on(ask: Ask) -> None:
    url = body(ask("/openapi/v3"))["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    for old in ("ABC", url.partition("=")[2].lower()):
        answer = ask(f"{GROUP}?hash={old}")
        assert (answer.status, answer.body) == (301, b"")
        assert header(answer, "Location") == url
        assert header(answer, "Cache-Control") == "no-cache, private"


def test_an_empty_hash_is_none_and_v2_knows_none(ask: Ask) -> None:
    assert ask(f"{GROUP}?hash=").status == 200
    assert ask("/openapi/v2?hash=ABC").status == 200


@pytest.mark.slow(every=5)
@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", GROUP])
@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ({"If_None_Match": "{etag}"}, 304),
        ({"If_None_Match": "W/{etag}"}, 304),
        ({"If_None_Match": '"other", {etag}'}, 304),
        ({"If_None_Match": "*"}, 304),
        ({"If_None_Match": '"other"'}, 200),
        ({"If_None_Match": ""}, 200),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 12:00:00 GMT"}, 304),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 12:00:01 GMT"}, 304),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 11:59:59 GMT"}, 200),
        ({"If_Modified_Since": "yesterday"}, 200),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 12:00:00 -0000"}, 200),
        ({"If_None_Match": '"other"', "If_Modified_Since": "Sat, 21 Nov 2026 12:00:00 GMT"}, 200),
    ],
)  # fmt: skip
def test_a_client_that_has_it_does_not_get_it_again(
    ask: Ask, path: str, condition: dict[str, str], status: int
) -> None:
    etag = header(ask(path), "ETag")
    answer = ask(path, **{name: value.format(etag=etag) for name, value in condition.items()})
    assert answer.status == status
    assert header(answer, "ETag") == etag
    assert (answer.body == b"") is (status == 304)


def test_both_forms_of_v2_have_one_etag(ask: Ask) -> None:
    assert header(ask("/openapi/v2"), "ETag") == header(ask("/openapi/v2", Accept=V2_PROTOBUF), "ETag")


# -- the event loop ---------------------------------------------------------------------------------------------------


async def test_documents_are_built_in_a_thread_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = []
    running = 0

    def slow(self: Published, served_resources: ServedResources, key: DocumentKey) -> PublishedDocument:
        nonlocal running
        assert threading.current_thread() is not threading.main_thread()
        running += 1
        at_once.append(running)
        time.sleep(0.02)
        running -= 1
        return PublishedDocument(b"{}", "H", NOW)

    monkeypatch.setattr(Published, "build", slow)
    served_resources = catalog_of_one()
    endpoints = OpenAPI(lambda: served_resources, lambda: NOW)
    asked = [endpoints.answer(["openapi", "v2"], {}, {}), endpoints.answer(["openapi", "v3"], {}, {})]
    assert [answer.status for answer in await asyncio.gather(*asked)] == [200, 200]
    assert at_once == [1, 1]


async def test_what_is_kept_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    served_resources = catalog_of_one()
    endpoints = OpenAPI(lambda: served_resources, lambda: NOW)
    first = await endpoints.answer(["openapi", "v2"], {}, {})
    monkeypatch.setattr(Published, "build", None)
    again = await endpoints.answer(["openapi", "v2"], {}, {})
    assert again.body is first.body


async def test_a_definition_is_published_as_soon_as_it_is_in_the_catalog() -> None:
    served_resources = ServedResources(built_in_versions())
    endpoints = OpenAPI(lambda: served_resources, lambda: NOW)
    before = await endpoints.answer(["openapi", "v3"], {}, {})
    assert "apis/example.com/v1" not in body(before)["paths"]
    served_resources = served_resources.with_definition("widgets.example.com", versions_of(CRD, 0))
    after = await endpoints.answer(["openapi", "v3"], {}, {})
    assert "apis/example.com/v1" in body(after)["paths"]


def test_a_server_that_is_not_asked_does_not_load_any_of_this() -> None:
    code = "import sys, noxu.process.server; print([name for name in sys.modules if 'openapi' in name])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
