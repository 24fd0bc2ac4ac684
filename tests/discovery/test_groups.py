"""Discovery documents of served resources: groups, versions, resources, and the aggregated form."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.discovery import groups
from noxu.registry.builtin import built_in_versions
from noxu.registry.custom import CODEC
from noxu.registry.resource import Resource, ResourceType, Versions
from noxu.registry.served_resources import ServedResources

ADDRESS = "127.0.0.1:8001"
ADDRESSES = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ADDRESS}]
VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]


def widgets(version: str, **more: Any) -> Resource:
    given: dict[str, Any] = {
        "type": ResourceType.CUSTOM,
        "group": "example.com",
        "version": version,
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "list_kind": "WidgetList",
        "namespaced": True,
        "codec": CODEC,
        "short_names": ("wd",),
        "categories": ("all",),
    }
    return Resource(**(given | more))


@pytest.fixture
def served_resources() -> ServedResources:
    versions = [widgets("v2", subresources=frozenset({"status", "scale"})), widgets("v1")]
    return ServedResources([*built_in_versions(), Versions(versions, versions[1])])


def test_the_versions_of_the_core_group() -> None:
    assert groups.api_versions(ADDRESS) == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": ADDRESSES,
    }


def test_the_list_of_groups(served_resources: ServedResources) -> None:
    document = groups.group_list(served_resources, ADDRESS)
    assert document["kind"] == "APIGroupList"
    assert "" not in [group["name"] for group in document["groups"]]
    [group] = [group for group in document["groups"] if group["name"] == "example.com"]
    preferred, other = group["versions"]
    assert (preferred, other) == (
        {"groupVersion": "example.com/v2", "version": "v2"},
        {"groupVersion": "example.com/v1", "version": "v1"},
    )
    assert group["preferredVersion"] == preferred
    assert group["serverAddressByClientCIDRs"] == ADDRESSES


def test_one_group(served_resources: ServedResources) -> None:
    group = groups.group(served_resources, "example.com")
    assert group is not None
    assert (group["kind"], group["apiVersion"], group["name"]) == ("APIGroup", "v1", "example.com")
    assert "serverAddressByClientCIDRs" not in group


@pytest.mark.parametrize("name", ["", "other.com"])
def test_unknown_groups(served_resources: ServedResources, name: str) -> None:
    assert groups.group(served_resources, name) is None
    assert groups.resource_list(served_resources, "other.com", "v1") is None
    assert groups.resource_list(served_resources, "example.com", "v7") is None


def test_the_resources_of_a_version(served_resources: ServedResources) -> None:
    document = groups.resource_list(served_resources, "example.com", "v2")
    assert document is not None
    assert (document["kind"], document["groupVersion"]) == ("APIResourceList", "example.com/v2")
    resource, status, scale = document["resources"]
    assert resource == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": VERBS,
        "shortNames": ["wd"],
        "categories": ["all"],
        "storageVersionHash": resource["storageVersionHash"],
    }
    verbs = ["get", "patch", "update"]
    assert status == {
        "name": "widgets/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Widget",
        "verbs": verbs,
    }
    autoscaling = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert scale == {"name": "widgets/scale", "singularName": "", "namespaced": True, **autoscaling, "verbs": verbs}


def test_all_versions_have_the_hash_of_the_storage_version(served_resources: ServedResources) -> None:
    hashes = set()
    for version in ("v1", "v2"):
        document = groups.resource_list(served_resources, "example.com", version)
        assert document is not None
        hashes.add(document["resources"][0]["storageVersionHash"])
    assert hashes == {"gIwvi5rymmg="}  # of example.com/v1/Widget


def test_resources_of_built_in_kinds(served_resources: ServedResources) -> None:
    document = groups.resource_list(served_resources, "", "v1")
    assert document is not None
    assert document["groupVersion"] == "v1"
    found = {entry["name"]: entry for entry in document["resources"]}
    assert set(found["namespaces"]["verbs"]) == {*VERBS} - {"deletecollection"}
    assert found["namespaces/finalize"]["verbs"] == ["update"]
    assert found["serviceaccounts/token"]["kind"] == "TokenRequest"


def test_virtual_resources_are_not_stored(served_resources: ServedResources) -> None:
    document = groups.resource_list(served_resources, "authorization.k8s.io", "v1")
    assert document is not None
    assert all(entry["verbs"] == ["create"] and "storageVersionHash" not in entry for entry in document["resources"])


def test_the_aggregated_document_has_all_groups(served_resources: ServedResources) -> None:
    core, others = groups.aggregated(served_resources, core=True), groups.aggregated(served_resources, core=False)
    assert [item["metadata"] for item in core["items"]] == [{}]
    assert {item["metadata"]["name"] for item in others["items"]} == {name for name in served_resources.groups if name}
    [item] = [item for item in others["items"] if item["metadata"]["name"] == "example.com"]
    assert [(version["version"], version["freshness"]) for version in item["versions"]] == [
        ("v2", "Current"),
        ("v1", "Current"),
    ]
    [resource] = item["versions"][0]["resources"]
    kind = {"group": "example.com", "version": "v2", "kind": "Widget"}
    assert (resource["resource"], resource["responseKind"], resource["scope"]) == ("widgets", kind, "Namespaced")
    assert [(found["subresource"], found["responseKind"]["kind"]) for found in resource["subresources"]] == [
        ("status", "Widget"),
        ("scale", "Scale"),
    ]
    assert "subresources" not in item["versions"][1]["resources"][0]


def test_etags_differ_with_the_document(served_resources: ServedResources) -> None:
    first, second = groups.aggregated(served_resources, core=True), groups.aggregated(served_resources, core=False)
    assert groups.etag(first) == groups.etag(groups.aggregated(served_resources, core=True))
    assert groups.etag(first) != groups.etag(second)
    assert groups.etag(first).startswith('"')
