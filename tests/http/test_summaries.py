"""Tables and metadata that are joined from summaries show what those made from whole objects show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.client import Client
from noxu.http import responses, watch
from noxu.http.responses import Summaries
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject
from noxu.tables.jsonpath import MAX_OF_REQUEST, CellBudget, Spent, limited_by
from noxu.tables.table import custom_columns
from noxu.testing.handle import Noxu
from noxu_storage.types import Key
from tests.http.conftest import DEFINITION, GROUP, THINGS

RESOURCE = ServedResources([definitions_resource(), *built_in_versions()]).find("", "v1", "configmaps")
NAME_OF_ALL = {"name": "n", "type": "string", "jsonPath": ".metadata['name']"}
MAPS = "/api/v1/namespaces/default/configmaps"


def as_(kind: str, version: str = "v1") -> dict[str, str]:
    return {"Accept": f"application/json;as={kind};g=meta.k8s.io;v={version}"}


def entry(name: str, size: int = 0) -> StoredObject:
    value = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "uid": "u"}, "data": {"t": "x" * size}}
    return StoredObject(Key("/configmaps", "d/", name), json.dumps(value, separators=(",", ":")).encode(), 7)


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_a_summary_is_made_once() -> None:
    assert RESOURCE is not None
    kept, one = Summaries(), entry("a")
    columns = responses.columns_of(RESOURCE)
    assert not kept.has(one, RESOURCE)
    assert kept.of(one, RESOURCE, columns) is kept.of(one, RESOURCE, columns)
    assert kept.has(one, RESOURCE)


def test_a_summary_that_another_request_could_fill_is_not_kept() -> None:
    assert RESOURCE is not None
    kept, one, columns = Summaries(), entry("a", 1000), custom_columns([NAME_OF_ALL])
    budget = CellBudget()
    with pytest.raises(Spent):
        budget.take(MAX_OF_REQUEST + 1)
    with limited_by(budget):
        assert kept.of(one, RESOURCE, columns).pieces == (b'["a",null]',)
    assert not kept.has(one, RESOURCE)
    assert kept.of(one, RESOURCE, columns).pieces == (b'["a","a"]',)
    assert kept.has(one, RESOURCE)


def test_a_new_schema_makes_a_new_one() -> None:
    kept, one = Summaries(), entry("a")
    first, second = [ServedResources([*built_in_versions()]).find("", "v1", "configmaps") for _ in range(2)]
    assert first is not None
    assert second is not None
    if first is second:
        pytest.skip("built-in kinds are shared")
    made = kept.of(one, first, responses.columns_of(first))
    assert kept.of(one, second, responses.columns_of(second)) is not made
    assert [kept.has(one, first), kept.has(one, second)] == [False, True]


def test_the_oldest_ones_are_dropped_beyond_the_limit() -> None:
    assert RESOURCE is not None
    kept = Summaries(max_bytes=20_000)
    entries = [entry(f"m{n}", size=1000) for n in range(20)]
    for each in entries:
        kept.of(each, RESOURCE, responses.columns_of(RESOURCE))
        assert kept._bytes <= 20_000
    found = [kept.has(each, RESOURCE) for each in entries]
    assert found == sorted(found)
    assert 5 < sum(found) < 10


def test_one_that_is_too_large_is_shown_but_keeps_no_memory() -> None:
    assert RESOURCE is not None
    kept, small, large = Summaries(max_bytes=5000), entry("a"), entry("b", size=6000)
    for each in (small, large):
        assert b'"b"' in kept.of(large, RESOURCE, responses.columns_of(RESOURCE)).pieces[0]
        kept.of(each, RESOURCE, responses.columns_of(RESOURCE))
    assert kept._bytes <= 5000


def test_a_summary_ends_with_its_entry() -> None:
    assert RESOURCE is not None
    kept, entries = Summaries(), [entry(f"m{n}") for n in range(3)]
    for each in entries:
        kept.of(each, RESOURCE, responses.columns_of(RESOURCE))
    size = kept._bytes // 3
    del each, entries[1]
    assert (len(kept._kept), kept._bytes) == (2, 2 * size)
    assert all(kept.has(each, RESOURCE) for each in entries)
    entries.clear()
    assert (len(kept._kept), kept._bytes) == (0, 0)


# -- lists and watches ------------------------------------------------------------------------------------------------


@pytest.fixture
def things(noxu: Noxu) -> Noxu:
    noxu.apply(DEFINITION)
    for n in range(3):
        noxu.apply(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Thing",
                "metadata": {
                    "name": f"t{n}",
                    "namespace": "default",
                    "labels": {"n": f"{n}"},
                    "annotations": {"a": "<&>"},
                },
                "spec": {"replicas": n},
            }
        )
    return noxu


@pytest.mark.parametrize("query", ["", "?includeObject=None", "?includeObject=Object"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    "path", [THINGS, "/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"]
)
def test_a_table_is_the_same_twice_and_when_it_is_pretty(
    things: Noxu, client: Client, path: str, version: str, query: str
) -> None:
    headers = as_("Table", version)
    first, second = [without_ages(client.exchange("GET", path + query, None, headers)[2]) for _ in range(2)]
    pretty = query.replace("?", "&")
    whole = without_ages(client.exchange("GET", f"{path}?pretty=true{pretty}", None, headers)[2])
    assert first == second == whole
    assert whole["rows"]


def without_ages(body: bytes) -> Any:
    """A table whose ages, which depend on the time of the request, are "age"."""
    value = json.loads(body)
    ages = [n for n, column in enumerate(value["columnDefinitions"]) if column["name"] == "Age"]
    for row in value["rows"]:
        for n in ages:
            row["cells"][n] = row["cells"][n] and "age"
    return value


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_metadata_is_that_of_the_objects(things: Noxu, client: Client, version: str) -> None:
    code, _, body = client.exchange("GET", THINGS, None, as_("PartialObjectMetadataList", version))
    whole = json.loads(client.exchange("GET", THINGS, None, {})[2])
    found = json.loads(body)
    assert code == 200
    assert [each["metadata"] for each in found["items"]] == [each["metadata"] for each in whole["items"]]
    assert {each["apiVersion"] for each in found["items"]} == {f"meta.k8s.io/{version}"}


def test_a_changed_object_has_a_new_row(things: Noxu, client: Client) -> None:
    path = f"{THINGS}?includeObject=Metadata"
    before = json.loads(client.exchange("GET", path, None, as_("Table"))[2])["rows"][1]["object"]["metadata"]
    patch = b'{"metadata":{"labels":{"n":"changed"}}}'
    client.exchange("PATCH", f"{THINGS}/t1", patch, {"Content-Type": "application/merge-patch+json"})
    after = json.loads(client.exchange("GET", path, None, as_("Table"))[2])["rows"][1]["object"]["metadata"]
    assert [before["labels"], after["labels"]] == [{"n": "1"}, {"n": "changed"}]
    assert int(after["resourceVersion"]) > int(before["resourceVersion"])


@pytest.mark.parametrize(
    ("kind", "query"), [("Table", ""), ("Table", "&includeObject=Object"), ("PartialObjectMetadata", "")]
)
@pytest.mark.slow(every=3)
def test_events_after_the_first_show_what_the_first_would(things: Noxu, client: Client, kind: str, query: str) -> None:
    """The first event is made from the whole object, the others from summaries: so each object is once the first one."""
    selected = [events(client, f"{THINGS}?watch=1&timeoutSeconds=1&labelSelector=n={n}{query}", kind) for n in range(3)]
    together = events(client, f"{THINGS}?watch=1&timeoutSeconds=1{query}", kind)
    assert [len(each) for each in selected] == [1, 1, 1]
    firsts = [first for (first,) in selected]
    if kind == "Table":
        assert all(first["object"].pop("columnDefinitions") for first in firsts)
        assert [bool(event["object"].pop("columnDefinitions")) for event in together] == [True, False, False]
        for event in [*firsts, *together]:
            event["object"]["rows"][0]["cells"].pop()
    assert together == firsts


def events(client: Client, path: str, kind: str) -> list[Any]:
    _, _, body = client.exchange("GET", path, None, as_(kind))
    return [json.loads(line) for line in body.splitlines()]


def test_the_first_row_of_a_watch_weighs_as_much_as_its_columns_do() -> None:
    assert RESOURCE is not None
    shown = watch.Summarized(RESOURCE, lambda _: b"", lambda _: b"", lambda *_: True)
    shown.weigh = lambda size: 1000 + size
    one = entry("a")
    assert shown.weight(one) == 1000 + len(one.stored)
    shown.event("ADDED", one, None)
    assert shown.weight(one) == 0
