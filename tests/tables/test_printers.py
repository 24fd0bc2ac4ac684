"""Tables of the built-in kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.kinds import scheme
from noxu.tables.printers import built_in_columns
from noxu.tables.table import Conversion, convert, convert_list
from tests.rows import rows

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-11-21T11:00:00Z"
REGISTRATION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"


def cells(api_version: str, kind: str, **more: Any) -> dict[str, Any]:
    """The cells by the names of their columns."""
    columns = built_in_columns(api_version, kind)
    value = {"metadata": {"name": "n", "creationTimestamp": CREATED}, **more}
    return dict(zip([column["name"] for column in columns.definitions], columns.cells_at(value, NOW), strict=True))


def names(api_version: str, kind: str, priority: int) -> list[str]:
    return [
        column["name"] for column in built_in_columns(api_version, kind).definitions if column["priority"] == priority
    ]


TABLES = [
    (
        "a namespace",
        "v1",
        "Namespace",
        {"status": {"phase": "Active"}},
        {"Name": "n", "Status": "Active", "Age": "60m"},
    ),
    ("a namespace without status", "v1", "Namespace", {}, {"Name": "n", "Status": "", "Age": "60m"}),
    (
        "a config map",
        "v1",
        "ConfigMap",
        {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}},
        {"Name": "n", "Data": 3, "Age": "60m"},
    ),
    ("an empty config map", "v1", "ConfigMap", {}, {"Name": "n", "Data": 0, "Age": "60m"}),
    (
        "a secret",
        "v1",
        "Secret",
        {"type": "Opaque", "data": {"a": ""}},
        {"Name": "n", "Type": "Opaque", "Data": 1, "Age": "60m"},
    ),
    (
        "a service",
        "v1",
        "Service",
        {
            "spec": {
                "type": "ClusterIP",
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}],
            }
        },
        {
            "Name": "n",
            "Type": "ClusterIP",
            "Cluster-IP": "<none>",
            "External-IP": "<none>",
            "Port(s)": "80/TCP,53:30053/UDP",
            "Age": "60m",
            "Selector": "<none>",
        },
    ),
    (
        "a load balancer",
        "v1",
        "Service",
        {
            "spec": {
                "type": "LoadBalancer",
                "clusterIPs": ["10.0.0.1"],
                "externalIPs": ["2.2.2.2"],
                "selector": {"b": "2", "a": "1"},
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}, {"hostname": "h"}]}},
        },
        {
            "Name": "n",
            "Type": "LoadBalancer",
            "Cluster-IP": "10.0.0.1",
            "External-IP": "1.1.1.1,h,2.2.2.2",
            "Port(s)": "<none>",
            "Age": "60m",
            "Selector": "a=1,b=2",
        },
    ),
    (
        "a service account",
        "v1",
        "ServiceAccount",
        {"secrets": [{"name": "s"}]},
        {"Name": "n", "Age": "60m"},
    ),
    (
        "a lease",
        "coordination.k8s.io/v1",
        "Lease",
        {"spec": {"holderIdentity": "me"}},
        {"Name": "n", "Holder": "me", "Age": "60m"},
    ),
    ("a lease without a holder", "coordination.k8s.io/v1", "Lease", {}, {"Name": "n", "Holder": "", "Age": "60m"}),
    (
        "webhooks",
        REGISTRATION,
        "MutatingWebhookConfiguration",
        {"webhooks": [{}, {}]},
        {"Name": "n", "Webhooks": 2, "Age": "60m"},
    ),
    ("no webhooks", REGISTRATION, "ValidatingWebhookConfiguration", {}, {"Name": "n", "Webhooks": 0, "Age": "60m"}),
    (
        "a policy",
        REGISTRATION,
        "ValidatingAdmissionPolicy",
        {"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}},
        {"Name": "n", "Validations": 1, "ParamKind": "v1/ConfigMap", "Age": "60m"},
    ),
    (
        "a policy without parameters",
        REGISTRATION,
        "MutatingAdmissionPolicy",
        {"spec": {"mutations": [{}, {}]}},
        {"Name": "n", "Mutations": 2, "ParamKind": "<unset>", "Age": "60m"},
    ),
    (
        "a binding to one object",
        REGISTRATION,
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "paramRef": {"name": "x", "namespace": "ns"}}},
        {"Name": "n", "PolicyName": "p", "ParamRef": "ns/x", "Age": "60m"},
    ),
    (
        "a binding to an object of any namespace",
        REGISTRATION,
        "MutatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "paramRef": {"name": "x"}}},
        {"Name": "n", "PolicyName": "p", "ParamRef": "*/x", "Age": "60m"},
    ),
    (
        "a binding by labels",
        REGISTRATION,
        "ValidatingAdmissionPolicyBinding",
        {
            "spec": {
                "policyName": "p",
                "paramRef": {
                    "selector": {
                        "matchLabels": {"b": "2", "a": "1"},
                        "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}],
                    }
                },
            }
        },
        {
            "Name": "n",
            "PolicyName": "p",
            "ParamRef": "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:"
            "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
            "Age": "60m",
        },
    ),
    (
        "a binding without parameters",
        REGISTRATION,
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p"}},
        {"Name": "n", "PolicyName": "p", "ParamRef": "<unset>", "Age": "60m"},
    ),
    (
        "a role binding",
        RBAC,
        "RoleBinding",
        {
            "roleRef": {"kind": "ClusterRole", "name": "edit"},
            "subjects": [
                {"kind": "User", "name": "u1"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "ns"},
                {"kind": "User", "name": "u2"},
                {"kind": "Group", "name": "g"},
            ],
        },
        {
            "Name": "n",
            "Role": "ClusterRole/edit",
            "Age": "60m",
            "Users": "u1, u2",
            "Groups": "g",
            "ServiceAccounts": "ns/s",
        },
    ),
    ("a role", RBAC, "Role", {}, {"Name": "n", "Created At": CREATED}),
    (
        "a service without a type, as in a bookmark",
        "v1",
        "Service",
        {},
        {
            "Name": "n",
            "Type": "",
            "Cluster-IP": "<none>",
            "External-IP": "<unknown>",
            "Port(s)": "<none>",
            "Age": "60m",
            "Selector": "<none>",
        },
    ),
    ("a limit range, which has no printer", "v1", "LimitRange", {}, {"Name": "n", "Created At": CREATED}),
    (
        "a definition",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        {
            "spec": {
                "group": "x.io",
                "scope": "Namespaced",
                "names": {"kind": "Thing", "shortNames": ["th", "tg"]},
                "versions": [
                    {"name": "v2", "served": True, "storage": False},
                    {"name": "v1alpha1", "served": False, "storage": False},
                    {"name": "v1", "served": True, "storage": True},
                ],
            },
            "status": {
                "conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]
            },
        },
        {
            "Name": "n",
            "Scope": "Namespaced",
            "Versions": "v1(storage),v2",
            "Created At": CREATED,
            "Group": "x.io",
            "Kind": "Thing",
            "ShortNames": "th,tg",
            "Established": True,
        },
    ),
]


@rows(("api_version", "kind", "more", "expected"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_the_columns_and_cells_of(api_version: str, kind: str, more: dict[str, Any], expected: dict[str, Any]) -> None:
    found = cells(api_version, kind, **more)
    assert found == expected
    assert list(found) == list(expected)


CORE_EVENT = {
    "type": "Warning",
    "reason": "Failed",
    "involvedObject": {"kind": "Thing", "name": "w1", "fieldPath": "spec.a"},
    "source": {"component": "controller", "host": "node"},
    "message": " it failed \n",
    "firstTimestamp": "2026-11-21T11:00:00Z",
    "lastTimestamp": "2026-11-21T11:59:00Z",
    "count": 4,
}
NEW_EVENT = {
    "type": "Warning",
    "reason": "Failed",
    "regarding": {"kind": "Thing", "name": "w1", "fieldPath": "spec.a"},
    "deprecatedSource": {"component": "controller", "host": "node"},
    "note": " it failed \n",
    "deprecatedFirstTimestamp": "2026-11-21T11:00:00Z",
    "deprecatedLastTimestamp": "2026-11-21T11:59:00Z",
    "deprecatedCount": 4,
}


@pytest.mark.parametrize(("api_version", "event"), [("v1", CORE_EVENT), ("events.k8s.io/v1", NEW_EVENT)])
def test_an_event_under_either_of_its_names(api_version: str, event: dict[str, Any]) -> None:
    assert cells(api_version, "Event", **event) == {
        "Last Seen": "60s",
        "Type": "Warning",
        "Reason": "Failed",
        "Object": "thing/w1",
        "Subobject": "spec.a",
        "Source": "controller, node",
        "Message": "it failed",
        "First Seen": "60m",
        "Count": 4,
        "Name": "n",
    }


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"Last Seen": "<unknown>", "First Seen": "<unknown>", "Count": 1}),
        ({"firstTimestamp": CREATED}, {"Last Seen": "60m", "First Seen": "60m", "Count": 1}),
        ({"eventTime": "2026-11-21T11:58:59.500000Z"}, {"Last Seen": "60s", "First Seen": "60s", "Count": 1}),
        (
            {"firstTimestamp": CREATED, "series": {"count": 7, "lastObservedTime": "2026-11-21T11:59:50.000000Z"}},
            {"Last Seen": "10s", "First Seen": "60m", "Count": 7},
        ),
        ({"count": 0, "firstTimestamp": None, "lastTimestamp": None}, {"Last Seen": "<unknown>", "Count": 1}),
        ({"reportingComponent": "new", "reportingInstance": "pod-1"}, {"Source": "new, pod-1"}),
        ({"source": {"component": "old"}, "reportingComponent": "new"}, {"Source": "old"}),
        ({"involvedObject": {"kind": "Thing"}}, {"Object": "thing", "Subobject": ""}),
    ],
)
def test_columns_of_events_without_optional_fields(more: dict[str, Any], expected: dict[str, Any]) -> None:
    found = cells("v1", "Event", **more)
    assert {name: found[name] for name in expected} == expected


def test_some_columns_are_for_wide_tables() -> None:
    assert names("v1", "Event", 0) == ["Last Seen", "Type", "Reason", "Object", "Message"]
    assert names("v1", "Event", 1) == ["Subobject", "Source", "First Seen", "Count", "Name"]
    assert names(RBAC, "RoleBinding", 1) == ["Users", "Groups", "ServiceAccounts"]
    assert names("apiextensions.k8s.io/v1", "CustomResourceDefinition", 1) == [
        "Group",
        "Kind",
        "ShortNames",
        "Established",
    ]


def test_the_name_is_marked_as_such_and_ages_are_texts() -> None:
    name, *_, age = built_in_columns("v1", "ConfigMap").definitions
    assert (name["format"], age["type"], age["format"]) == ("name", "string", "")
    assert [column["format"] for column in built_in_columns("v1", "Event").definitions if column["name"] == "Name"] == [
        "name"
    ]


def test_a_bookmark_of_definitions() -> None:
    columns = built_in_columns("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    bookmark = {"metadata": {"resourceVersion": "5", "creationTimestamp": None}}
    assert columns.cells_at(bookmark, NOW) == ["", "", "", "0001-01-01T00:00:00Z", "", "", "", False]


LISTED = [(kind.api_version, kind.kind) for kind in scheme.served() if "list" in kind.verbs]


@rows(("api_version", "kind"), LISTED, ids=lambda part: part)
def test_every_kind_has_a_row_of_cells_for_its_columns_also_a_bookmark(api_version: str, kind: str) -> None:
    columns = built_in_columns(api_version, kind)
    extra = {"IPAddress": 1}.get(kind, 0)
    for value in ({"metadata": {"name": "n"}}, {"metadata": {"resourceVersion": "5", "creationTimestamp": None}}):
        found = columns.cells_at(value, NOW)
        assert len(found) == len(columns.definitions) + extra
        assert all(isinstance(each, (str, int)) for each in found)
    assert all(each["description"] for each in columns.definitions)


@pytest.mark.parametrize(
    ("api_version", "kind", "rows"),
    [("v1", "Namespace", []), ("apiextensions.k8s.io/v1", "CustomResourceDefinition", None), (RBAC, "Role", None)],
)
def test_the_rows_of_an_empty_list(api_version: str, kind: str, rows: list[Any] | None) -> None:
    columns = built_in_columns(api_version, kind)
    assert convert_list([], {"resourceVersion": "1"}, Conversion("Table", "v1"), columns, NOW)["rows"] == rows


@pytest.mark.parametrize(
    ("api_version", "kind", "go_type"),
    [
        ("v1", "Namespace", "*core.Namespace"),
        (RBAC, "Role", "*rbac.Role"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "*apiextensions.CustomResourceDefinition"),
    ],
)
def test_errors_name_the_go_type(api_version: str, kind: str, go_type: str) -> None:
    columns = built_in_columns(api_version, kind)
    with pytest.raises(ApiError, match="PartialObjectMetadata, but the requested object is a list") as raised:
        convert_list([], {}, Conversion("PartialObjectMetadata", "v1"), columns, NOW)
    assert raised.value.message.endswith(f"({go_type}List)")
    with pytest.raises(ApiError, match="PartialObjectMetadataList, but the requested object is not a list") as raised:
        convert({"metadata": {}}, Conversion("PartialObjectMetadataList", "v1"), columns, NOW)
    assert raised.value.message.endswith(f"({go_type})")
    assert raised.value.code == 406


def test_the_message_of_an_event_is_trimmed_as_go_does() -> None:
    event = {**CORE_EVENT, "message": "\u2003\x1f it failed \n\x85"}
    assert cells("v1", "Event", **event)["Message"] == "\x1f it failed"  # Python takes U+001F for white space, too
