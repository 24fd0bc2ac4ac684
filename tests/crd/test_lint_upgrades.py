"""What a new version of a CRD no longer serves, keeps or accepts."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.crd import lint
from noxu.crd.lint import narrowings
from noxu.values import copy
from tests.rows import rows

SCHEMA: Any = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}},
    }
}
SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.size",
    "labelSelectorPath": ".status.selector",
}
V1: Any = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": SCHEMA,
    "subresources": {"status": {}, "scale": SCALE},
    "selectableFields": [{"jsonPath": ".spec.size"}],
}
V2: Any = {**V1, "name": "v2", "storage": False}
WEBHOOK: Any = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"caBundle": "a", "service": {"namespace": "n", "name": "s"}},
    },
}
CRD: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["w", "wd"], "categories": ["all"]},
        "versions": [V1, V2],
    },
}  # fmt: skip


def with_spec(**fields: Any) -> Any:
    return {**CRD, "spec": {**CRD["spec"], **fields}}


def with_names(**names: Any) -> Any:
    return with_spec(
        names={name: value for name, value in {**CRD["spec"]["names"], **names}.items() if value is not None}
    )


def with_versions(*versions: Any) -> Any:
    return with_spec(versions=list(versions))


def larger(maximum: int) -> Any:
    schema = copy(SCHEMA)
    schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] = maximum
    return schema


SUB = "spec.versions[0].subresources"
MAXIMUM = "schema.openAPIV3Schema.properties[spec].properties[size].maximum: the maximum was 9, and is 8 now"
STORED = "; objects may be stored in it: `noxu migrate` rewrites them"
ROWS: list[tuple[str, Any, Any, list[str]]] = [
    ("nothing", CRD, CRD, []),
    ("the order of versions", CRD, with_versions(V2, V1), []),
    ("a new version", CRD, with_versions(V1, V2, {**V2, "name": "v3"}), []),
    ("the scope", CRD, with_spec(scope="Cluster"), ["spec.scope: the scope was Namespaced, and is Cluster now"]),
    ("pruning", with_spec(preserveUnknownFields=True), CRD, ["spec.preserveUnknownFields: unknown fields were kept; now they are pruned"]),
    ("no pruning", CRD, with_spec(preserveUnknownFields=True), []),
    ("the plural", CRD, with_names(plural="gadgets"), ["spec.names.plural: the plural was widgets, and is gadgets now"]),
    ("the kind", CRD, with_names(kind="Gadget"), ["spec.names.kind: the kind was Widget, and is Gadget now"]),
    ("no singular", CRD, with_names(singular=None), ["spec.names.singular: the singular was widget, and is none now"]),
    ("the kind of lists", CRD, with_names(listKind="Widgets"), ["spec.names.listKind: the listKind was WidgetList, and is Widgets now"]),
    ("a short name", CRD, with_names(shortNames=["w", "x"]), ["spec.names.shortNames: the short name wd is gone"]),
    ("a category", CRD, with_names(categories=None), ["spec.names.categories: the category all is gone"]),
    ("a version", CRD, with_versions(V1), ["spec.versions: version v2 is removed"]),
    ("a version that was not served", with_versions(V1, {**V2, "served": False}), with_versions(V1), []),
    ("a version that is stored", CRD, with_versions({**V2, "storage": True}), [f"spec.versions: version v1 is removed{STORED}", "spec.versions[0].storage: objects were stored as v1, and are stored as v2 when they are written: `noxu migrate` rewrites them"]),
    ("a version that may be stored", {**with_versions(V1, {**V2, "served": False}), "status": {"storedVersions": ["v2", "v1"]}}, with_versions(V1), [f"spec.versions: version v2 is removed{STORED}"]),
    ("a version that is served no more", CRD, with_versions(V1, {**V2, "served": False}), ["spec.versions[1].served: version v2 is no longer served"]),
    ("a version that is served again", with_versions(V1, {**V2, "served": False}), CRD, []),
    ("a version that is deprecated", CRD, with_versions(V1, {**V2, "deprecated": True}), []),
    ("the storage version", CRD, with_versions({**V1, "storage": False}, {**V2, "storage": True}), ["spec.versions[1].storage: objects were stored as v1, and are stored as v2 when they are written: `noxu migrate` rewrites them"]),
    ("the schema of a version", CRD, with_versions(V1, {**V2, "schema": larger(8)}), [f"spec.versions[1].{MAXIMUM}"]),
    ("the schema of a version at another place", CRD, with_versions({**V2, "schema": larger(8)}, V1), [f"spec.versions[0].{MAXIMUM}"]),
    ("a wider schema", CRD, with_versions({**V1, "schema": larger(10)}, V2), []),
    ("a first schema", with_versions({**V1, "schema": {}}), with_versions(V1), ["spec.versions[0].schema.openAPIV3Schema: there was no schema, and there is one now"]),
    ("no schema", with_versions(V1), with_versions({**V1, "schema": {}}), []),
    ("no subresource", CRD, with_versions({**V1, "subresources": {}}, V2), [f"{SUB}: the subresource status is gone", f"{SUB}: the subresource scale is gone"]),
    ("no scale", CRD, with_versions({**V1, "subresources": {"status": {}}}, V2), [f"{SUB}: the subresource scale is gone"]),
    ("a status", with_versions({**V1, "subresources": {"scale": SCALE}}), with_versions(V1), [f"{SUB}.status: there is a subresource status now: other writes no longer change the status, nor set it when they create an object"]),
    ("a scale", with_versions({**V1, "subresources": {"status": {}}}), with_versions(V1), []),
    ("a path of a scale", CRD, with_versions({**V1, "subresources": {"status": {}, "scale": {**SCALE, "specReplicasPath": ".spec.n"}}}, V2), [f"{SUB}.scale.specReplicasPath: the path was .spec.size, and is .spec.n now"]),
    ("no selector of a scale", CRD, with_versions({**V1, "subresources": {"status": {}, "scale": {**SCALE, "labelSelectorPath": None}}}, V2), [f"{SUB}.scale.labelSelectorPath: the path was .status.selector, and there is none now"]),
    ("a selectable field", CRD, with_versions({**V1, "selectableFields": []}, V2), ["spec.versions[0].selectableFields: .spec.size can no longer be selected by"]),
    ("a conversion", CRD, with_spec(conversion=WEBHOOK), ["spec.conversion.strategy: the conversion was None, and is Webhook now"]),
    ("no conversion", with_spec(conversion=WEBHOOK), CRD, ["spec.conversion.strategy: the conversion was Webhook, and is None now"]),
    ("None by name", CRD, with_spec(conversion={"strategy": "None"}), []),
    ("a review version", with_spec(conversion=WEBHOOK), with_spec(conversion={**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "conversionReviewVersions": ["v1"]}}), ['spec.conversion.webhook.conversionReviewVersions: "v1beta1" is no longer sent to the webhook']),
    ("the CA of a webhook", with_spec(conversion=WEBHOOK), with_spec(conversion={**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "clientConfig": {"caBundle": "b", "service": {"namespace": "n", "name": "s", "port": 443}}}}), []),
    ("another webhook", with_spec(conversion=WEBHOOK), with_spec(conversion={**WEBHOOK, "webhook": {**WEBHOOK["webhook"], "clientConfig": {"url": "https://example.com"}}}), ["spec.conversion.webhook.clientConfig: the webhook is another one now"]),
]  # fmt: skip


@rows(("old", "new", "found"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_findings(old: Any, new: Any, found: list[str]) -> None:
    assert [f"{each.path}: {each.message}" for each in narrowings(old, new)] == found


def test_a_crd_without_a_spec_has_no_findings() -> None:
    assert narrowings({}, CRD) == []
    assert narrowings(CRD, {"spec": {"versions": []}}) == []


def test_crds_of_v1beta1_are_compared_as_v1() -> None:
    spec = {"group": "example.com", "version": "v1", "scope": "Namespaced", "names": CRD["spec"]["names"], "validation": SCHEMA, "preserveUnknownFields": False}  # fmt: skip
    old = {**CRD, "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": spec}
    new = with_versions({**V1, "schema": larger(8), "subresources": {}, "selectableFields": []})
    assert [each.path for each in lint.upgrade(old, new)] == [f"spec.versions[0].{MAXIMUM.partition(':')[0]}"]
    assert lint.upgrade(new, {**old, "spec": {**spec, "validation": larger(8)}}) == []


@pytest.mark.parametrize("other", [None, {}, {"kind": "CustomResourceDefinition"}, {**CRD, "spec": 3}])
def test_with_an_unreadable_crd_nothing_is_compared(other: Any) -> None:
    assert lint.upgrade(other, CRD) == []
    assert lint.upgrade(CRD, other) == []
