"""Bodies that claim another kind or version than the resource's."""

from __future__ import annotations

import pytest

from noxu.kinds import scheme
from noxu.registry import builtin
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from tests.rows import rows

CRD = "customresourcedefinitions"
V1, V1BETA1 = "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


def resource(plural: str) -> Resource:
    if plural == CRD:
        return definitions_resource().storage
    group, _, plural = plural.rpartition("/")
    found = [one for versions in built_in_versions() for one in versions.all]
    return next(one for one in found if (one.group, one.plural) == (group, plural))


def decode(plural: str, value: Object) -> tuple[Object, list[str]]:
    of = resource(plural)
    return of.codec.decode(of, value)


REFUSED: list[tuple[str, str, Json, str, str]] = [
    ("an unknown kind", CRD, V1, "Other", f'no kind "Other" is registered for version "{V1}" {SCHEME}'),
    ("the kind in the core group", CRD, "v1", "CustomResourceDefinition", f'no kind "CustomResourceDefinition" is registered for version "v1" {SCHEME}'),
    ("the kind in an unknown version", CRD, "apiextensions.k8s.io/v2", "CustomResourceDefinition", f'no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io/v2" {SCHEME}'),
    ("a kind of another server", CRD, "v1", "Secret", f'no kind "Secret" is registered for version "v1" {SCHEME}'),
    ("a list", CRD, V1, "CustomResourceDefinitionList", "converting (v1.CustomResourceDefinitionList) to (apiextensions.CustomResourceDefinition): unknown conversion"),
    ("a list of v1beta1", CRD, V1BETA1, "CustomResourceDefinitionList", "converting (v1beta1.CustomResourceDefinitionList) to (apiextensions.CustomResourceDefinition): unknown conversion"),
    ("options", CRD, V1, "DeleteOptions", "converting (v1.DeleteOptions) to (apiextensions.CustomResourceDefinition): unknown conversion"),
    ("a status", CRD, "v1", "Status", "converting (v1.Status) to (apiextensions.CustomResourceDefinition): unknown conversion"),
    ("an unknown kind of the internal version", CRD, "apiextensions.k8s.io/__internal", "Other", f'no kind "Other" is registered for the internal version of group "apiextensions.k8s.io" {SCHEME}'),
    ("an unknown kind without a version", CRD, None, "Other", f'no kind "Other" is registered for the internal version of group "apiextensions.k8s.io" {SCHEME}'),
    ("another built-in kind", "/configmaps", "v1", "Secret", "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    ("a definition instead of a built-in kind", "/configmaps", V1, "CustomResourceDefinition", f'no kind "CustomResourceDefinition" is registered for version "{V1}" {SCHEME}'),
    ("an unknown kind of the core group", "/namespaces", "v1", "Other", f'no kind "Other" is registered for version "v1" {SCHEME}'),
    ("another kind instead of an event", "events.k8s.io/events", "v1", "Secret", "converting (v1.Secret) to (core.Event): unknown conversion"),
]  # fmt: skip


@rows(("plural", "api_version", "kind", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_another_kind_is_refused(plural: str, api_version: Json, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^(no kind|converting)") as refused:
        decode(plural, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}})
    assert str(refused.value) == message


DECODED: list[tuple[str, str, Object, Object, list[str]]] = [
    ("its own version", "/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
     {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"a": "b"}}, []),
    ("no kind", "/configmaps", {"apiVersion": "v1", "x": 1}, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, ["x"]),
    ("another spelling of its version", "/configmaps", {"apiVersion": "/v1", "kind": "ConfigMap"},
     {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}, []),
    ("no version: the internal type has other fields", "/configmaps", {"kind": "ConfigMap", "data": {"a": "b"}},
     {"kind": "ConfigMap", "apiVersion": "__internal"}, ["data"]),
    ("the version of another group", "events.k8s.io/events", {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "message": "m", "note": "n"},
     {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "a"}, "involvedObject": {}, "message": "m", "source": {}, "firstTimestamp": None,
      "lastTimestamp": None, "eventTime": None, "reportingComponent": "", "reportingInstance": ""}, ["note"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plural", "value", "decoded", "unknown"), [row[1:] for row in DECODED], ids=[row[0] for row in DECODED]
)
def test_an_object_is_decoded_as_the_version_that_it_claims(
    plural: str, value: Object, decoded: Object, unknown: list[str]
) -> None:
    assert decode(plural, value) == (decoded, unknown)


def test_unknown_fields_of_a_v1beta1_definition_are_those_of_v1beta1() -> None:
    columns = [{"jsonPath": ".x", "JSONPath": ".y"}]
    spec = {
        "nope": 1,
        "versions": [{"additionalPrinterColumns": columns}],
        "validation": {"openAPIV3Schema": {"foo": 1}},
    }
    decoded, unknown = decode(CRD, {"apiVersion": V1BETA1, "kind": "CustomResourceDefinition", "spec": spec})
    assert decoded["apiVersion"] == V1BETA1
    assert unknown == [
        "spec.nope",
        "spec.versions[0].additionalPrinterColumns[0].jsonPath",
        "spec.validation.openAPIV3Schema.foo",
    ]


def test_every_built_in_kind_decodes_itself() -> None:
    for kind in scheme.served():
        of = resource(f"{kind.group}/{kind.plural}")
        assert of.codec.decode(of, {})[0]["apiVersion"] == (f"{kind.group}/" if kind.group else "") + builtin.INTERNAL
        decoded, unknown = of.codec.decode(of, {"apiVersion": kind.api_version, "kind": kind.kind})
        assert (decoded["apiVersion"], decoded["kind"], unknown) == (kind.api_version, kind.kind, [])
