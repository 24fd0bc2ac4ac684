"""Long lists are made in portions: the bytes are those of the list as a whole, in every representation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable
from datetime import UTC, datetime
from typing import Any

import pytest

from conformance.client import Client
from noxu.api.errors import ApiError
from noxu.http import negotiation, responses
from noxu.http.answer import Answer
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.reader import Listing
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject
from noxu.testing.handle import Noxu
from noxu_storage.types import Key

pytestmark = pytest.mark.noxu(profile="envtest")  # no ConfigMaps but those of the tests
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ACCEPTS = {
    "JSON": "application/json",
    "YAML": "application/yaml",
    "a table": TABLE,
    "an old table": TABLE.replace("v1", "v1beta1"),
    "a table in YAML": TABLE.replace("json", "yaml"),
    "metadata only": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "metadata only, in YAML": "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "protobuf": "application/vnd.kubernetes.protobuf",
}
TEXT = 'tricky: "rows":[] "items":[] \\n items: []\n\nrows: []\n  ]'


def config_maps() -> Resource:
    found = ServedResources([definitions_resource(), *built_in_versions()]).find("", "v1", "configmaps")
    assert found is not None
    return found


def listing(count: int) -> Listing:
    entries = []
    for n in range(count):
        value = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m%d","namespace":"d","uid":"u%d"},"data":{"t":%s}}'
        stored = (value % (n, n, json.dumps(TEXT))).encode()
        entries.append(StoredObject(Key("/configmaps", "d/", f"m{n}"), stored, n + 5))
    return Listing(entries, 999, "token" if count else "", 3 if count else None)


async def body_of(answer: Answer) -> bytes:
    if isinstance(answer.body, AsyncIterable):
        return b"".join([chunk async for chunk in answer.body])
    return answer.body


async def written(count: int, accept: str, pretty: str) -> tuple[bool, bytes]:
    """Whether it came in portions, and the bytes."""
    accepted = negotiation.negotiate(accept, negotiation.BUILT_IN_LIST, pretty=pretty, user_agent="")
    answer = await responses.list_answer(listing(count), config_maps(), accepted, include="Metadata", now=NOW)
    return isinstance(answer.body, AsyncIterable), await body_of(answer)


@pytest.mark.parametrize("pretty", ["0", "1"], ids=["compact", "pretty"])
@pytest.mark.parametrize("accept", ACCEPTS)
@pytest.mark.parametrize("count", [1, 2, 7])
async def test_portions_make_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, accept: str, pretty: str, count: int
) -> None:
    _, whole = await written(count, ACCEPTS[accept], pretty)
    monkeypatch.setattr(responses, "CHUNK", 2)
    monkeypatch.setattr(responses, "CHUNK_BYTES", 100)
    sliced, portions = await written(count, ACCEPTS[accept], pretty)
    assert portions == whole
    assert sliced == (accept != "protobuf")


async def test_what_cannot_be_shown_is_refused_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "CHUNK", 2)
    accepted = negotiation.negotiate(
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", negotiation.BUILT_IN_LIST, pretty="", user_agent=""
    )  # fmt: skip
    with pytest.raises(ApiError) as refused:
        await responses.list_answer(listing(9), config_maps(), accepted, include="", now=NOW)
    assert refused.value.code == 406


def test_a_long_table_arrives(noxu: Noxu, client: Client) -> None:
    names = [f"m{n:03}" for n in range(300)]
    noxu.apply(*({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names))
    path = "/api/v1/namespaces/default/configmaps"
    code, headers, body = client.exchange("GET", path, None, {"Accept": TABLE})
    rows: list[Any] = json.loads(body)["rows"]
    assert code == 200
    assert [row["cells"][0] for row in rows] == names
    assert ("Transfer-Encoding", "chunked") in headers
