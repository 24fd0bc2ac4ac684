"""The tables of the built-in kinds: the errors of Go's decoder for invalid bodies, and the form it writes of valid ones."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from noxu.go.structs import List, Map, Presence, Scalar, Struct, Type, Union, decode
from noxu.kinds.kind import Kind, written
from noxu.kinds.scheme import served, struct_of
from noxu.values import Object
from tests.rows import rows

# Made with sigs.k8s.io/json on the types of k8s.io/api.
WRONG: list[tuple[str, str, Object, str]] = [
    (
        "a namespace with a finalizer that is a number",
        "v1/Namespace",
        {"spec": {"finalizers": [1]}},
        "json: cannot unmarshal number into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName",
    ),
    (
        "finalizers that are text",
        "v1/Namespace",
        {"spec": {"finalizers": "kubernetes"}},
        "json: cannot unmarshal string into Go struct field NamespaceSpec.spec.finalizers of type []v1.FinalizerName",
    ),
    (
        "a phase that is an object",
        "v1/Namespace",
        {"status": {"phase": {}}},
        "json: cannot unmarshal object into Go struct field NamespaceStatus.status.phase of type v1.NamespacePhase",
    ),
    (
        "a condition without its braces",
        "v1/Namespace",
        {"status": {"conditions": ["x"]}},
        "json: cannot unmarshal string into Go struct field NamespaceStatus.status.conditions of type v1.NamespaceCondition",
    ),
    (
        "a time without its zone",
        "v1/Namespace",
        {"status": {"conditions": [{"lastTransitionTime": "2024-01-01T00:00:00"}]}},
        'parsing time "2024-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
    ),
    (
        "metadata that is a list",
        "v1/Namespace",
        {"metadata": []},
        "json: cannot unmarshal array into Go struct field Namespace.metadata of type v1.ObjectMeta",
    ),
    (
        "a label that is a number",
        "v1/Namespace",
        {"metadata": {"labels": {"a": 1}}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    (
        "data of a config map that is a number",
        "v1/ConfigMap",
        {"data": {"a": 1}},
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    (
        "data of a config map that is a list",
        "v1/ConfigMap",
        {"data": ["a"]},
        "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
    ),
    (
        "binary data that is no base64",
        "v1/ConfigMap",
        {"binaryData": {"a": "no base64"}},
        "illegal base64 data at input byte 2",
    ),
    (
        "immutable that is text",
        "v1/ConfigMap",
        {"immutable": "yes"},
        "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool",
    ),
    (
        "secret data that is a number",
        "v1/Secret",
        {"data": {"a": 5}},
        "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
    ),
    ("secret data that is no base64", "v1/Secret", {"data": {"a": "AA="}}, "illegal base64 data at input byte 3"),
    (
        "a secret's type that is a boolean",
        "v1/Secret",
        {"type": True},
        "json: cannot unmarshal bool into Go struct field Secret.type of type v1.SecretType",
    ),
    (
        "stringData that is a number",
        "v1/Secret",
        {"stringData": {"a": 1.5}},
        "json: cannot unmarshal number into Go struct field Secret.stringData of type string",
    ),
    (
        "a service account's secret that is text",
        "v1/ServiceAccount",
        {"secrets": ["a"]},
        "json: cannot unmarshal string into Go struct field ServiceAccount.secrets of type v1.ObjectReference",
    ),
    (
        "a count that is text",
        "v1/Event",
        {"count": "1"},
        "json: cannot unmarshal string into Go struct field Event.count of type int32",
    ),
    (
        "a count that is too large",
        "v1/Event",
        {"count": 2147483648},
        "json: cannot unmarshal number 2147483648 into Go struct field Event.count of type int32",
    ),
    (
        "a count that is no integer",
        "v1/Event",
        {"count": 1.5},
        "json: cannot unmarshal number 1.5 into Go struct field Event.count of type int32",
    ),
    (
        "an event time in whole seconds",
        "v1/Event",
        {"eventTime": "2024-01-01T00:00:00Z"},
        'parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
    ),
    (
        "an event time that is a number",
        "v1/Event",
        {"eventTime": 5},
        "json: cannot unmarshal number into Go struct field Event.eventTime of type string",
    ),
    (
        "a series that is a list",
        "events.k8s.io/v1/Event",
        {"series": []},
        "json: cannot unmarshal array into Go struct field Event.series of type v1.EventSeries",
    ),
    (
        "what an event is about, as text",
        "events.k8s.io/v1/Event",
        {"regarding": "pod"},
        "json: cannot unmarshal string into Go struct field Event.regarding of type v1.ObjectReference",
    ),
    (
        "a holder that is a number",
        "coordination.k8s.io/v1/Lease",
        {"spec": {"holderIdentity": 5}},
        "json: cannot unmarshal number into Go struct field LeaseSpec.spec.holderIdentity of type string",
    ),
    (
        "a duration that is text",
        "coordination.k8s.io/v1/Lease",
        {"spec": {"leaseDurationSeconds": "15s"}},
        "json: cannot unmarshal string into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
    ),
    (
        "a strategy that is a number",
        "coordination.k8s.io/v1/Lease",
        {"spec": {"strategy": 1}},
        "json: cannot unmarshal number into Go struct field LeaseSpec.spec.strategy of type v1.CoordinatedLeaseStrategy",
    ),
    (
        "replicas that are text",
        "autoscaling/v1/Scale",
        {"spec": {"replicas": "3"}},
        "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32",
    ),
    (
        "groups that are text",
        "authorization.k8s.io/v1/SubjectAccessReview",
        {"spec": {"groups": "a"}},
        "json: cannot unmarshal string into Go struct field SubjectAccessReviewSpec.spec.groups of type []string",
    ),
    (
        "an extra value that is text",
        "authorization.k8s.io/v1/SubjectAccessReview",
        {"spec": {"extra": {"a": "b"}}},
        "json: cannot unmarshal string into Go struct field SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue",
    ),
    (
        "an extra value with a number",
        "authorization.k8s.io/v1/SubjectAccessReview",
        {"spec": {"extra": {"a": [1]}}},
        "json: cannot unmarshal number into Go struct field SubjectAccessReviewSpec.spec.extra of type string",
    ),
    (
        "an operator that is a number",
        "authorization.k8s.io/v1/SelfSubjectAccessReview",
        {"spec": {"resourceAttributes": {"labelSelector": {"requirements": [{"operator": 1}]}}}},
        "json: cannot unmarshal number into Go struct field LabelSelectorRequirement.spec.resourceAttributes.labelSelector.requirements.operator of type v1.LabelSelectorOperator",
    ),
    (
        "an expiration that is text",
        "authentication.k8s.io/v1/TokenRequest",
        {"spec": {"expirationSeconds": "1h"}},
        "json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64",
    ),
    (
        "preconditions with a number for the uid",
        "v1/DeleteOptions",
        {"preconditions": {"uid": 5}},
        "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
    ),
    (
        "a policy of propagation that is a number",
        "v1/DeleteOptions",
        {"propagationPolicy": 1},
        "json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation",
    ),
    (
        "a dry run that is a boolean",
        "v1/DeleteOptions",
        {"dryRun": True},
        "json: cannot unmarshal bool into Go struct field DeleteOptions.dryRun of type []string",
    ),
    (
        "operations that are text",
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        {"webhooks": [{"rules": [{"operations": "*"}]}]},
        "json: cannot unmarshal string into Go struct field RuleWithOperations.webhooks.rules.operations of type []v1.OperationType",
    ),
    (
        "a resource that is a number",
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        {"webhooks": [{"rules": [{"resources": [1]}]}]},
        "json: cannot unmarshal number into Go struct field RuleWithOperations.webhooks.rules.Rule.resources of type string",
    ),
    (
        "a scope that is a list",
        "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
        {"webhooks": [{"rules": [{"scope": ["*"]}]}]},
        "json: cannot unmarshal array into Go struct field RuleWithOperations.webhooks.rules.Rule.scope of type v1.ScopeType",
    ),
    (
        "a port that is text",
        "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
        {"webhooks": [{"clientConfig": {"service": {"port": "443"}}}]},
        "json: cannot unmarshal string into Go struct field ServiceReference.webhooks.clientConfig.service.port of type int32",
    ),
    (
        "a CA bundle that is no base64",
        "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
        {"webhooks": [{"clientConfig": {"caBundle": "----"}}]},
        "illegal base64 data at input byte 0",
    ),
    (
        "a timeout that is text",
        "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
        {"webhooks": [{"timeoutSeconds": "10s"}]},
        "json: cannot unmarshal string into Go struct field MutatingWebhook.webhooks.timeoutSeconds of type int32",
    ),
    (
        "an operation two embedded structs deep",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        {"spec": {"matchConstraints": {"resourceRules": [{"operations": [1]}]}}},
        "json: cannot unmarshal number into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.RuleWithOperations.operations of type v1.OperationType",
    ),
    (
        "an API group three embedded structs deep",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        {"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [1]}]}}},
        "json: cannot unmarshal number into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.RuleWithOperations.Rule.apiGroups of type string",
    ),
    (
        "an expression that is a boolean",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        {"spec": {"validations": [{"expression": True}]}},
        "json: cannot unmarshal bool into Go struct field Validation.spec.validations.expression of type string",
    ),
    (
        "a reason that is a number",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        {"spec": {"validations": [{"reason": 1}]}},
        "json: cannot unmarshal number into Go struct field Validation.spec.validations.reason of type v1.StatusReason",
    ),
    (
        "actions that are text",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
        {"spec": {"validationActions": "Deny"}},
        "json: cannot unmarshal string into Go struct field ValidatingAdmissionPolicyBindingSpec.spec.validationActions of type []v1.ValidationAction",
    ),
    (
        "a type of patch that is a number",
        "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
        {"spec": {"mutations": [{"patchType": 1}]}},
        "json: cannot unmarshal number into Go struct field Mutation.spec.mutations.patchType of type v1.PatchType",
    ),
    (
        "a policy of reinvocation that is a list",
        "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
        {"spec": {"reinvocationPolicy": []}},
        "json: cannot unmarshal array into Go struct field MutatingAdmissionPolicySpec.spec.reinvocationPolicy of type v1.ReinvocationPolicyType",
    ),
    (
        "a code that is text",
        "v1/Status",
        {"code": "422"},
        "json: cannot unmarshal string into Go struct field Status.code of type int32",
    ),
]
UNKNOWN: list[tuple[str, str, Object, list[str]]] = [
    (
        "below spec and at the root",
        "v1/Namespace",
        {"spec": {"finalizer": []}, "extra": 1},
        ["spec.finalizer", "extra"],
    ),
    ("in an entry of a list", "v1/ServiceAccount", {"secrets": [{}, {"Name": "x"}]}, ["secrets[1].Name"]),
    ("by the case of a letter", "v1/Secret", {"Data": {}}, ["Data"]),
    (
        "in metadata",
        "coordination.k8s.io/v1/Lease",
        {"metadata": {"name": "a", "clusterName": "b"}},
        ["metadata.clusterName"],
    ),
    (
        "in an embedded struct",
        "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        {"spec": {"matchConstraints": {"resourceRules": [{"rule": {}, "operation": ["*"]}]}}},
        ["spec.matchConstraints.resourceRules[0].rule", "spec.matchConstraints.resourceRules[0].operation"],
    ),
]
WRITTEN: list[tuple[str, str, Object, Object]] = [
    (
        "structs that are not pointers are written",
        "v1/Event",
        {"metadata": {"name": "e"}},
        {
            "metadata": {"name": "e"},
            "involvedObject": {},
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": None,
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
    (
        "null leaves a field unset",
        "coordination.k8s.io/v1/Lease",
        {"spec": {"holderIdentity": None, "renewTime": None, "leaseTransitions": 0}},
        {"metadata": {}, "spec": {"leaseTransitions": 0}},
    ),
    (
        "an empty optional string stays, a plain one goes",
        "coordination.k8s.io/v1/Lease",
        {"metadata": {"namespace": ""}, "spec": {"holderIdentity": ""}},
        {"metadata": {}, "spec": {"holderIdentity": ""}},
    ),
    (
        "fields come in the order of declaration, keys of maps sorted",
        "v1/Secret",
        {
            "type": "T",
            "stringData": {},
            "data": {"b": "AA==", "a": ""},
            "immutable": False,
            "metadata": {"labels": {"b": "", "a": "x"}, "name": "n"},
        },
        {
            "metadata": {"name": "n", "labels": {"a": "x", "b": ""}},
            "immutable": False,
            "data": {"a": "", "b": "AA=="},
            "type": "T",
        },
    ),
    (
        "times are normalised",
        "v1/Event",
        {"firstTimestamp": "2024-01-01T01:00:00+01:00", "eventTime": "2024-01-01T00:00:00.123456Z", "series": {}},
        {
            "metadata": {},
            "involvedObject": {},
            "source": {},
            "firstTimestamp": "2024-01-01T00:00:00Z",
            "lastTimestamp": None,
            "eventTime": "2024-01-01T00:00:00.123456Z",
            "series": {"lastObservedTime": None},
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
    (
        "pointers without omitempty are null",
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        {"webhooks": [{"name": "a.b.c"}]},
        {
            "metadata": {},
            "webhooks": [{"name": "a.b.c", "clientConfig": {}, "sideEffects": None, "admissionReviewVersions": None}],
        },
    ),
    (
        "null in a list is the zero value",
        "v1/ServiceAccount",
        {"secrets": [None, {"name": "a"}], "imagePullSecrets": []},
        {"metadata": {}, "secrets": [{}, {"name": "a"}]},
    ),
    (
        "null in a map is the zero value",
        "v1/ConfigMap",
        {"data": {"a": None}, "binaryData": {"b": None}},
        {"metadata": {}, "data": {"a": ""}, "binaryData": {"b": None}},
    ),
    (
        "the order of events.k8s.io",
        "events.k8s.io/v1/Event",
        {"note": "n", "type": "Normal", "regarding": {"name": "p", "kind": "Pod"}},
        {
            "metadata": {},
            "eventTime": None,
            "regarding": {"kind": "Pod", "name": "p"},
            "note": "n",
            "type": "Normal",
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        },
    ),
    (
        "a token request has its nulls",
        "authentication.k8s.io/v1/TokenRequest",
        {},
        {
            "metadata": {},
            "spec": {"audiences": None, "expirationSeconds": None, "boundObjectRef": None},
            "status": {"token": "", "expirationTimestamp": None},
        },
    ),
    (
        "options are small",
        "v1/DeleteOptions",
        {"kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": [], "preconditions": {}},
        {"kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {}},
    ),
    (
        "a review answers with a decision",
        "authorization.k8s.io/v1/SelfSubjectAccessReview",
        {"spec": {"resourceAttributes": {}}},
        {"metadata": {}, "spec": {"resourceAttributes": {}}, "status": {"allowed": False}},
    ),
    (
        "embedded rules are flattened",
        "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding",
        {
            "spec": {
                "matchResources": {
                    "resourceRules": [{"scope": "*", "apiGroups": ["a"], "operations": ["*"], "resourceNames": ["x"]}]
                }
            }
        },
        {
            "metadata": {},
            "spec": {
                "matchResources": {
                    "resourceRules": [{"resourceNames": ["x"], "operations": ["*"], "apiGroups": ["a"], "scope": "*"}]
                }
            },
        },
    ),
]


def table(name: str) -> Struct:
    api_version, _, kind = name.rpartition("/")
    found = struct_of(api_version, kind)
    assert found is not None
    return found


@rows(("name", "body", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_types_are_reported_in_gos_words(name: str, body: Object, error: str) -> None:
    assert decode(table(name), body).error == error


@pytest.mark.parametrize(("name", "body", "paths"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_unknown_fields(name: str, body: Object, paths: list[str]) -> None:
    decoded = decode(table(name), body)
    assert (decoded.error, decoded.unknown) == ("", paths)


@rows(("name", "body", "written"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_decoded_objects_are_those_that_go_writes(name: str, body: Object, written: Object) -> None:
    decoded = decode(table(name), body)
    assert (decoded.error, decoded.unknown) == ("", [])
    assert json.dumps(decoded.value) == json.dumps(written)  # the order of keys counts


# All tables

ALL = {f"{kind.api_version}/{kind.kind}": kind for kind in served()}


def structs(kind: Type, seen: set[int]) -> Iterator[Struct]:
    """A struct and all those inside it, each once."""
    if isinstance(kind, (List, Map)):
        yield from structs(kind.element, seen)
    elif isinstance(kind, Union):
        for choice in kind.choices.values():
            yield from structs(choice.type, seen)
    elif isinstance(kind, Struct) and id(kind) not in seen:
        seen.add(id(kind))
        yield kind
        for struct_field in kind.fields.values():
            yield from structs(struct_field.type, seen)


@rows("kind", ALL.values(), ids=ALL)
def test_a_kind_starts_with_its_type_and_metadata(kind: Kind) -> None:
    assert list(kind.struct.fields)[:3] == ["kind", "apiVersion", "metadata"]


@rows("kind", ALL.values(), ids=ALL)
def test_protobuf_numbers_are_unique_in_their_message(kind: Kind) -> None:
    for struct in structs(kind.struct, set()):
        numbers = [(field.within, field.number) for field in struct.fields.values() if field.number]
        assert len(set(numbers)) == len(numbers), struct
        nested = {field.within[:n] for field in struct.fields.values() for n in range(1, len(field.within) + 1)}
        assert not {(within[:-1], within[-1]) for within in nested} & set(numbers), struct


@rows("kind", ALL.values(), ids=ALL)
def test_everything_but_the_type_is_in_protobuf(kind: Kind) -> None:
    for struct in structs(kind.struct, set()):
        without = [name for name, field in struct.fields.items() if not field.number]
        assert without in ([], ["kind", "apiVersion"]), struct


@rows("kind", ALL.values(), ids=ALL)
def test_merging_by_key_needs_the_key(kind: Kind) -> None:
    for struct in structs(kind.struct, set()):
        for field in struct.fields.values():
            keys = {*field.list_keys, *([field.merge_key] if field.merge_key else [])}
            if keys:
                assert isinstance(field.type, List)
                assert isinstance(field.type.element, Struct)
                assert keys <= field.type.element.fields.keys()
            assert bool(field.list_keys) == (field.list_type == "map")


@rows("kind", ALL.values(), ids=ALL)
def test_structs_by_value_are_always_written(kind: Kind) -> None:
    for struct in structs(kind.struct, set()):
        for field in struct.fields.values():
            if isinstance(field.type, Struct):
                assert field.write is not Presence.OMIT_EMPTY, field


@rows("kind", ALL.values(), ids=ALL)
def test_decoding_is_idempotent(kind: Kind) -> None:
    once = decode(kind.struct, {"kind": kind.kind, "apiVersion": kind.api_version}).value
    assert decode(kind.struct, once) == (once, "", [])
    assert written(kind, once) == once


def test_scalars_of_all_tables_read_null_as_unset() -> None:
    for kind in served():
        for struct in structs(kind.struct, set()):
            for field in struct.fields.values():
                if isinstance(field.type, Scalar):
                    assert decode(struct, {field.name: None}).error == ""
