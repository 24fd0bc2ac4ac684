"""Watches in protobuf, as client-go asks for them: frames with their length before them."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from noxu.api import protobuf
from noxu.go.protobuf import read
from noxu.kinds import scheme
from noxu.testing.handle import Noxu
from tests.timing import HANGS_AFTER

pytestmark = pytest.mark.noxu(profile="envtest")  # no ConfigMaps but those of the tests
PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
WIDGETS = """
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: widgets.example.com}
    spec:
      group: example.com
      scope: Namespaced
      names: {plural: widgets, kind: Widget}
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"x": "y"}}}
WATCH_CONFIG_MAPS = "/api/v1/configmaps?watch=true"
WATCH = "/apis/example.com/v1/widgets?watch=true"


@contextlib.contextmanager
def watching(noxu: Noxu, path: str, accept: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc, timeout=HANGS_AFTER)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Accept": accept, **headers})
        with contextlib.closing(connection.getresponse()) as answer:
            yield answer


def event(answer: http.client.HTTPResponse) -> tuple[str, Any]:
    """The next event: its type, and its object."""
    found = read(protobuf._WATCH_EVENT, answer.read(int.from_bytes(answer.read(4), "big")))
    return found["type"], protobuf.decode(found["object"]["raw"], scheme.struct_of)[1]


def test_built_in_kinds(noxu: Noxu) -> None:
    noxu.apply({**CONFIG_MAP, "data": {"x": ""}})
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    with watching(noxu, f"/api/v1/namespaces/default/configmaps?{query}", f"{PROTOBUF},application/json") as answer:
        assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        kind, value = event(answer)
        assert (kind, value["kind"], value["data"]) == ("ADDED", "ConfigMap", {"x": ""})
        kind, value = event(answer)
        assert (kind, value["metadata"]["annotations"]) == ("BOOKMARK", {"k8s.io/initial-events-end": "true"})
        noxu.apply({**CONFIG_MAP, "data": {"x": "y" * 1000}})
        kind, value = event(answer)
        assert (kind, value["data"]) == ("MODIFIED", {"x": "y" * 1000})


def test_the_metadata_of_custom_resources(noxu: Noxu) -> None:
    noxu.apply(WIDGETS, WIDGET)
    with watching(noxu, WATCH, f"{METADATA},{PROTOBUF},application/json") as answer:
        assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        kind, value = event(answer)
        assert (kind, value["kind"], value["metadata"]["labels"]) == ("ADDED", "PartialObjectMetadata", {"x": "y"})


def test_an_error_is_protobuf_too(noxu: Noxu) -> None:
    noxu.apply(CONFIG_MAP)
    store = noxu._server.plane.store
    noxu._call(store.compact(store.revision))
    with watching(noxu, f"{WATCH_CONFIG_MAPS}&resourceVersion=1", PROTOBUF) as answer:
        kind, value = event(answer)
    assert (kind, value["kind"], value["reason"], value["code"]) == ("ERROR", "Status", "Expired", 410)


def test_custom_resources_themselves_are_json(noxu: Noxu) -> None:
    noxu.apply(WIDGETS, WIDGET)
    with watching(noxu, WATCH, f"{PROTOBUF},application/json") as answer:
        assert answer.headers["Content-Type"] == "application/json"
        assert json.loads(answer.readline())["type"] == "ADDED"


def test_messages_of_a_websocket_are_text(noxu: Noxu) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    with watching(
        noxu, WATCH_CONFIG_MAPS, PROTOBUF, **upgrade, **{"Sec-WebSocket-Key": "bm94dSBub3h1IG5veHUgbg=="}
    ) as answer:
        assert answer.status == 406
