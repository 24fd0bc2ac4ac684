"""MutatingAdmissionPolicies: what their expressions make of objects, in which order, and what is said if they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.admission import expressions, mutations
from noxu.admission.expressions import Inputs
from noxu.admission.mutations import MutatingPolicy, MutationError, mutated
from noxu.api.errors import ApiError
from noxu.apply.types import of_schema
from noxu.registry import turns
from noxu.schema.structural import parse
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.rows import rows

STRING: Object = {"type": "string"}
SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": STRING,
                "d": {"type": "string", "default": "dflt"},
                "n": {"type": "integer"},
                "f": {"type": "number"},
                "when": {"type": "string", "format": "date-time"},
                "list": {"type": "array", "items": STRING},
                "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": STRING, "v": STRING, "list": {"type": "array", "items": STRING}},
                    },
                },
                "map": {"type": "object", "additionalProperties": STRING},
                "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING}},
                "atomics": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING}},
                },
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "o": {"type": "object", "properties": {"x": {"type": "string", "default": "ox"}}},
                "replicas": {"type": "integer"},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "s": STRING}},
    },
}  # fmt: skip
KIND = of_schema(parse(SCHEMA))
SPEC: Object = {"a": "x", "n": 5, "list": ["p", "q"], "set": ["s1"], "items": [{"name": "x", "v": "old"}, {"name": "z"}],
                "map": {"k": "v"}}  # fmt: skip
REQUEST: Object = {"operation": "CREATE", "requestResource": {}, "resource": {}, "userInfo": {"username": "bob"}}


def mutate(text: str, *, patches: bool, spec: Object = SPEC, **more: Any) -> Object:
    """The object after one mutation."""
    field = "jsonPatch" if patches else "applyConfiguration"
    mutation = {"patchType": "JSONPatch" if patches else "ApplyConfiguration", field: {"expression": text}}
    policy = MutatingPolicy({"metadata": {"name": "p"}, "spec": {"mutations": [mutation], **more}})
    metadata = {"name": "w", "labels": {"own": "1"}}
    value = {"apiVersion": "g/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
    seen = Inputs(value, None, REQUEST, namespace={"metadata": {"name": "default"}}, params={"max": 3})
    return mutated(policy, policy.mutations[0], seen, KIND, None).object


def refusal(text: str, *, patches: bool, **more: Any) -> str:
    with pytest.raises(MutationError) as raised:
        mutate(text, patches=patches, **more)
    return str(raised.value)


# JSON patches


def patched(operations: str) -> Object:
    spec: Object = mutate(f"[{operations}]", patches=True)["spec"]
    return spec


@pytest.mark.parametrize(
    ("what", "operations", "changes"),
    [
        ("add", "JSONPatch{op: 'add', path: '/spec/d', value: 'y'}", {"d": "y"}),
        ("add to a list", "JSONPatch{op: 'add', path: '/spec/list/-', value: 'r'}", {"list": ["p", "q", "r"]}),
        ("replace", "JSONPatch{op: 'replace', path: '/spec/a', value: 'y'}", {"a": "y"}),
        ("copy", "JSONPatch{op: 'copy', from: '/spec/a', path: '/spec/d'}", {"d": "x"}),
        ("several, in order", "JSONPatch{op: 'add', path: '/spec/d', value: 'y'}, JSONPatch{op: 'copy', from: '/spec/d', path: '/spec/a'}", {"d": "y", "a": "y"}),
        ("a test that holds", "JSONPatch{op: 'test', path: '/spec/n', value: 5}, JSONPatch{op: 'add', path: '/spec/n', value: 6}", {"n": 6}),
        ("a test that does not hold", "JSONPatch{op: 'add', path: '/spec/n', value: 6}, JSONPatch{op: 'test', path: '/spec/n', value: 5}", {}),
        ("a test for null never holds", "JSONPatch{op: 'test', path: '/spec/none', value: null}, JSONPatch{op: 'add', path: '/spec/n', value: 6}", {}),
    ],
)  # fmt: skip
def test_operations(what: str, operations: str, changes: Object) -> None:
    assert patched(operations) == {**SPEC, **changes}, what


@rows(
    ("expression", "value"),
    [
        ("1", 1), ("1u", 1), ("1.5", 1.5), ("2.0", 2), ("true", True), ("null", None), ("'a'", "a"),
        ("9007199254740991", 9007199254740991),
        ("9007199254740993", "9007199254740993"),
        ("b'abc'", "YWJj"),
        ("timestamp('2024-01-01T00:00:00Z')", "2024-01-01T00:00:00Z"),
        ("duration('90s')", "90s"),
        ("[1, 2]", [1, 2]), ("[[1], [2]]", [[1], [2]]), ("{'a': {'b': [1]}}", {"a": {"b": [1]}}), ("[{'a': 1}]", [{"a": 1}]),
        ("object.spec.map", {"k": "v"}), ("object.spec.items", SPEC["items"]), ("object.spec.list.map(x, x + '1')", ["p1", "q1"]),
        ("optional.of(1)", 1), ("object.spec.?n", 5),
        ("Object.spec{a: 1, b: Object.spec.b{c: [1], d: {'e': 1.5}}}", {"a": 1, "b": {"c": [1], "d": {"e": 1.5}}}),
        ("[Object.spec{a: 1}]", [{"a": 1}]),
        ("Object.spec{?a: optional.none(), ?b: optional.of(1)}", {"b": 1}),
        ("Object.spec{a: 9007199254740993}", {"a": 9007199254740992}),
        ("Object.spec{a: object.spec.items}", {"a": SPEC["items"]}),
        ("Object{a: 1}.a", 1), ("has(Object{a: 1}.b)", False), ("Object{a: 1} == Object{a: 1}", True),
        ("Object{a: 1} == Object{a: 2}", False), ("JSONPatch{op: 'x'}.op", "x"), ("has(JSONPatch{op: 'x'}.path)", False),
        ("JSONPatch{op: 'x', value: 1} == JSONPatch{op: 'x', value: 1}", True),
        ("JSONPatch{op: 'x', value: 1} == JSONPatch{op: 'x'}", False),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
        ("namespaceObject.metadata.name", "default"), ("request.userInfo.username", "bob"),
    ],
)  # fmt: skip
def test_values_of_patches_are_json(expression: str, value: object) -> None:
    given = patched(f"JSONPatch{{op: 'add', path: '/spec/open', value: {expression}}}")["open"]
    assert (given, type(given)) == (value, type(value))


def test_a_value_may_be_omitted() -> None:
    assert patched("JSONPatch{op: 'add', path: '/spec/a', ?value: object.spec.?none}")["a"] is None
    assert patched("JSONPatch{op: 'add', path: '/spec/a', ?value: object.spec.?n}")["a"] == 5


NO_JSON = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("{1: 2}", "unsupported type conversion from 'int' to string"),
        ("{true: 2}", "type conversion error from bool to 'string'"),
        ("quantity('1')", "type conversion error from 'Quantity' to '*structpb.Value'"),
        ("int", "type conversion not supported for 'type'"),
        ("optional.none()", "optional.none() dereference"),
        ("JSONPatch{op: 'x'}", "cannot convert to native type: *structpb.Value"),
        ("Object.spec{a: null}", "proto: invalid type: structpb.NullValue"),
        ("Object.spec{a: [[1]]}", "proto: invalid type: []ref.Val"),
        ("Object.spec{a: {1: 2}}", "fail to convert field \"a\": map key '\\x01' is of type types.Int, not string"),
    ],
)  # fmt: skip
def test_values_that_are_no_json(expression: str, error: str) -> None:
    assert (
        refusal(f"[JSONPatch{{op: 'add', path: '/spec/open', value: {expression}}}]", patches=True) == NO_JSON + error
    )


@rows(
    ("expression", "error"),
    [
        ("[JSONPatch{op: 'remove', path: '/spec/none'}]",
         "JSON Patch: error in remove for path: '/spec/none': Unable to remove nonexistent key: none: missing value"),
        ("[JSONPatch{op: 'frob', path: '/spec'}]", "JSON Patch: Unexpected kind: frob"),
        ("[JSONPatch{op: 'test', path: '/none/x', value: 1}]",
         "JSON Patch: test operation does not apply: is missing path: /none/x: missing value"),
        ("[JSONPatch{op: object.spec.n}]",
         "expression '[JSONPatch{op: object.spec.n}]' resulted in error: unexpected type int64 for JSONPatchType 'op' field"),
        ("[JSONPatch{op: object.spec.list}]",
         "expression '[JSONPatch{op: object.spec.list}]' resulted in error: unexpected type []interface {} for JSONPatchType 'op' field"),
        ("[JSONPatch{op: 'add', path: '/x', value: Object.spec{a: Object.spec.b{c: 1}}}]",
         'type mismatch: unexpected type name "Object.spec.b", expected "Object.spec.a", which matches field name path from root Object type'),
        ("[]", "must evaluate to list(JSONPatch) but got list(dyn)"),
        ("'x'", "must evaluate to list(JSONPatch) but got string"),
        ("[Object{}]", "must evaluate to list(JSONPatch) but got list(Object)"),
        ("object.spec.none", "must evaluate to list(JSONPatch) but got dyn"),
        ("[JSONPatch{op: 1}]", "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided "
         "type is 'int'\n | [JSONPatch{op: 1}]\n | .............^"),
        ("[JSONPatch{nope: 1}]", "compilation failed: ERROR: <input>:1:16: expected type of field 'nope' is '' but provided "
         "type is 'int'\n | [JSONPatch{nope: 1}]\n | ...............^"),
        ("[JSONPatch{value: type(Object{}) == Object}]", "program instantiation failed: reference to undefined type: Object"),
    ],
)  # fmt: skip
def test_patches_that_cannot_be_applied(expression: str, error: str) -> None:
    assert refusal(expression, patches=True) == error


def test_a_patch_that_takes_the_kind_away_is_no_error_of_the_policy() -> None:
    with pytest.raises(ApiError) as raised:
        patched("JSONPatch{op: 'remove', path: '/kind'}")
    assert raised.value.code == 500
    assert raised.value.message.startswith(
        'Internal error occurred: Object \'Kind\' is missing in \'{"apiVersion":"g/v1"'
    )


# Apply configurations


def applied(spec: str) -> Object:
    merged: Object = mutate(f"Object{{spec: Object.spec{{{spec}}}}}", patches=False)["spec"]
    return merged


@rows(
    ("what", "configuration", "changes"),
    [
        ("nothing", "", {}),
        ("a scalar", "a: 'y'", {"a": "y"}),
        ("a number of either kind", "f: 3, n: 7.0", {"f": 3, "n": 7.0}),
        ("members of a map", "map: {'k': 'w', 'l': 'm'}", {"map": {"k": "w", "l": "m"}}),
        ("members written as an object", "map: Object.spec.map{l: 'm'}", {"map": {"k": "v", "l": "m"}}),
        ("members of a set", "set: ['s0', 's1']", {"set": ["s0", "s1"]}),
        ("items by their keys", "items: [Object.spec.items{name: 'x', v: 'new'}, Object.spec.items{name: 'y'}]",
         {"items": [{"name": "x", "v": "new"}, {"name": "z"}, {"name": "y"}]}),
        ("items made of the object's", "items: object.spec.items.map(i, Object.spec.items{name: i.name, v: 'all'})",
         {"items": [{"name": "x", "v": "all"}, {"name": "z", "v": "all"}]}),
        ("what is of no schema", "open: Object.spec.open{x: [1], y: Object.spec.open.y{z: 1}}", {"open": {"x": [1], "y": {"z": 1}}}),
        ("an optional that is there", "?d: optional.of('e')", {"d": "e"}),
        ("an optional that is not", "?d: object.spec.?d", {}),
        ("parts of the object", "d: object.spec.a + string(object.spec.n)", {"d": "x5"}),
        ("params", "n: params.max", {"n": 3}),
    ],
)  # fmt: skip
def test_configurations_are_merged(what: str, configuration: str, changes: Object) -> None:
    given = mutate(
        f"Object{{spec: Object.spec{{{configuration}}}}}", patches=False, paramKind={"apiVersion": "g/v1", "kind": "L"}
    )
    assert given["spec"] == {**SPEC, **changes}, what


def test_metadata_is_merged_and_the_kind_stays() -> None:
    given = mutate(
        "Object{kind: 'Other', metadata: Object.metadata{name: 'other', labels: {'more': '2'}}}", patches=False
    )
    assert (given["kind"], given["metadata"]) == ("Widget", {"name": "other", "labels": {"own": "1", "more": "2"}})


UNTYPED = "error applying patch: failed to convert patch object to typed object: "
ATOMIC = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "


@rows(
    ("what", "configuration", "error"),
    [
        ("an unknown field", "unknown: 1", f"{UNTYPED}.spec.unknown: field not declared in schema"),
        ("a wrong type", "n: 'x'", f"{UNTYPED}.spec.n: expected numeric (int or float), got string"),
        ("an item without key", "items: [Object.spec.items{v: 'x'}]",
         f'{UNTYPED}.spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)'),
        ("an item twice", "set: ['a', 'a']", f'{UNTYPED}.spec.set: duplicate entries for key [="a"]'),
        ("a list", "list: ['x']", f"{ATOMIC}.spec.list"),
        ("an empty list", "list: []", f"{ATOMIC}.spec.list"),
        ("an atomic struct", "atomic: Object.spec.atomic{x: 'y'}", f"{ATOMIC}.spec.atomic"),
        ("several", "list: [], items: [Object.spec.items{name: 'x', list: []}]", f"{ATOMIC}.spec.list, .spec.items[0].list"),
        ("null for a text", "a: null", f"{UNTYPED}.spec.a: expected string, got &value.valueUnstructured{{Value:0}}"),
        ("null for a struct", "o: null", f"{UNTYPED}.spec.o: expected map, got &{{NULL_VALUE}}"),
        ("an unsigned number", "n: 7u", f"{UNTYPED}.spec.n: expected numeric (int or float), got uint64"),
        ("maps in a list", "items: [{'name': 'x'}]",
         f"{UNTYPED}.spec.items: element 0: associative list with keys may not have non-map elements"),
        ("maps in a map", "atomics: {'a': {'x': '1'}}", f"{UNTYPED}.spec.atomics.a: expected map, got &{{map[x:1]}}"),
        ("keys that are no texts", "map: {1: 'k'}",
         f"{UNTYPED}.spec: expected map, got &{{fail to convert field \"map\": map key '\\x01' is of type types.Int, not string}}"),
        ("a duration", "a: duration('90s')", f"{UNTYPED}.spec.a: expected string, got &value.valueUnstructured{{Value:90000000000}}"),
        ("a moment", "when: timestamp('2024-01-01T00:00:00Z')",
         f"{UNTYPED}.spec.when: expected any scalar, got &{{2024-01-01T00:00:00Z}}"),
        ("what is no JSON, where anything goes", "open: Object.spec.open{x: duration('1s')}",
         "error applying patch: cannot use time.Duration as JSON"),
    ],
)  # fmt: skip
def test_configurations_that_cannot_be_merged(what: str, configuration: str, error: str) -> None:
    text = f"Object{{spec: Object.spec{{{configuration}}}}}"
    assert refusal(text, patches=False) == error, what


def test_values_of_maps_are_not_searched_for_what_is_atomic() -> None:
    assert applied("atomics: Object.spec.atomics{a: Object.spec.atomics.a{x: '1'}}")["atomics"] == {"a": {"x": "1"}}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Object{spec: Object.wrong{a: 'x'}}",
         'type mismatch: unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object type'),
        ("Object{spec: Object.spec{items: [Object.no{name: 'x'}]}}",
         'type mismatch: unexpected type name "Object.no", expected "Object.spec.items", which matches field name path from root Object type'),
        ("Object{spec: Object.spec{map: {'k': Object.no{}}}}",
         'type mismatch: unexpected type name "Object.no", expected "Object.spec.map", which matches field name path from root Object type'),
        ("Object{a: {1: 'k'}}", "invalid return type: *dynamic.ObjectVal"),
        ("Object.spec{a: 'x'}", "must evaluate to Object but got Object.spec"),
        ("object", "must evaluate to Object but got dyn"),
        ("{'spec': 1}", "must evaluate to Object but got map(string, int)"),
    ],
)  # fmt: skip
def test_what_is_no_configuration(text: str, error: str) -> None:
    assert refusal(text, patches=False) == error


def test_a_live_object_that_is_not_of_its_schema_cannot_be_merged_with() -> None:
    error = "error applying patch: failed to convert original object to typed object: .spec.junk: field not declared in schema"
    assert refusal("Object{spec: Object.spec{a: 'y'}}", patches=False, spec={"junk": 1}) == error


def test_live_sets_may_hold_what_applied_ones_may_not() -> None:
    merged = mutate("Object{spec: Object.spec{a: 'y'}}", patches=False, spec={"set": ["s", "s"]})
    assert merged["spec"] == {"set": ["s", "s"], "a": "y"}


def test_expressions_that_fail_or_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Object{spec: Object.spec{a: object.none}}"
    assert refusal(text, patches=False) == f"expression '{text}' resulted in error: no such key: none"
    monkeypatch.setattr(expressions, "BUDGET", 20)
    error = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert refusal("Object{spec: Object.spec{a: 'x'}}", patches=False) == error


# A server with policies

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
GROUP = "mutated.example.com"
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
            for name in ("v1", "v2")
        ],
    },
}
PATH = f"/apis/{GROUP}/v1/namespaces/default/widgets"
ANYTHING: Object = {
    "operations": ["CREATE", "UPDATE"],
    "apiGroups": [GROUP],
    "apiVersions": ["*"],
    "resources": ["widgets"],
}


def patching(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def applying(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def setting(field: str, value: str) -> Object:
    return patching(f"[JSONPatch{{op: 'add', path: '/spec/{field}', value: {value}}}]")


class Cluster:
    """A server, and the policies made on it for one test, about objects labelled for it."""

    numbers = count()

    def __init__(self, client: Client) -> None:
        self.client = client
        self.label = f"m{next(self.numbers)}"
        self.made: list[str] = []

    def policy(self, *given: Object, binding: Object | None = None, rules: Object | None = None, **spec: Any) -> str:
        name = f"{self.label}-{len(self.made)}"
        selector = {"matchLabels": {"of": self.label}}
        match = {"resourceRules": [{**ANYTHING, **(rules or {})}], "objectSelector": selector}
        body = {"matchConstraints": match, "mutations": list(given), "reinvocationPolicy": "Never", **spec}
        for path, kind, content in (
            (POLICIES, "MutatingAdmissionPolicy", body),
            (BINDINGS, "MutatingAdmissionPolicyBinding", {"policyName": name, **(binding or {})}),
        ):
            version = "admissionregistration.k8s.io/v1"
            answer = self.client.send(
                "POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": content}
            )
            assert answer.code == 201, answer.body
            self.made.append(f"{path}/{name}")
        return name

    def clean(self) -> None:
        for path in reversed(self.made):
            self.client.send("DELETE", path)

    def create(self, name: str = "w", version: str = "v1", query: str = "", **spec: Any) -> Answer:
        metadata = {"name": f"{self.label}-{name}", "labels": {"of": self.label}}
        body = {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": metadata, "spec": spec}
        return self.client.send("POST", PATH.replace("/v1/", f"/{version}/") + query, body)

    def merge(self, name: str, patch: Object) -> Answer:
        return self.client.send("PATCH", f"{PATH}/{self.label}-{name}", patch, "application/merge-patch+json")


@pytest.fixture(scope="module")
def client(noxu_session: Noxu) -> Iterator[Client]:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with Client(noxu_session.url) as client:
        client.send("POST", definitions, CRD)
        yield client
        client.send("DELETE", f"{definitions}/{CRD['metadata']['name']}")


@pytest.fixture
def cluster(client: Client) -> Iterator[Cluster]:
    cluster = Cluster(client)
    yield cluster
    cluster.clean()


def test_each_mutation_sees_the_one_before_with_defaults(cluster: Cluster) -> None:
    cluster.policy(
        patching("[JSONPatch{op: 'remove', path: '/spec/d'}, JSONPatch{op: 'add', path: '/spec/o', value: {}}]"),
        applying("Object{spec: Object.spec{a: object.spec.d + ' ' + object.spec.o.x + ' ' + variables.a}}"),
        variables=[{"name": "a", "expression": "object.spec.?a.orValue('none')"}],
    )
    assert cluster.create(d="sent").body["spec"] == {"a": "dflt ox none", "d": "dflt", "o": {"x": "ox"}}


def test_what_is_not_declared_is_pruned_afterwards(cluster: Cluster) -> None:
    cluster.policy(
        patching("[JSONPatch{op: 'add', path: '/spec/junk', value: 1}, JSONPatch{op: 'add', path: '/top', value: 1}]")
    )
    created = cluster.create(n=1)
    assert (created.code, created.body["spec"]) == (201, {"n": 1, "d": "dflt"})
    assert "top" not in created.body


def test_what_policies_set_has_no_owner_and_is_validated(cluster: Cluster) -> None:
    cluster.policy(setting("n", "object.spec.?n.orValue(0) > 5 ? dyn('text') : dyn(6)"))
    created = cluster.create()
    assert created.body["spec"]["n"] == 6
    assert "f:n" not in str(created.body["metadata"]["managedFields"])
    refused = cluster.create("x", n=9)
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "spec.n")


@pytest.mark.parametrize(
    ("what", "mutation", "name", "code"),
    [
        ("the name", patching("[JSONPatch{op: 'replace', path: '/metadata/name', value: object.metadata.name + '-other'}]"), "w-other", 201),
        ("the kind", patching("[JSONPatch{op: 'replace', path: '/kind', value: 'Gadget'}]"), "", 422),
        ("the group", patching("[JSONPatch{op: 'replace', path: '/apiVersion', value: 'x/v9'}]"), "", 500),
        ("the namespace", patching("[JSONPatch{op: 'replace', path: '/metadata/namespace', value: 'other'}]"), "", 400),
        ("the status, which is wiped", patching("[JSONPatch{op: 'add', path: '/status', value: {'s': 'x'}}]"), "w", 201),
    ],
)  # fmt: skip
def test_a_policy_may_change(cluster: Cluster, what: str, mutation: Object, name: str, code: int) -> None:
    cluster.policy(mutation)
    answer = cluster.create()
    assert answer.code == code, what
    if name:
        assert answer.body["metadata"]["name"] == f"{cluster.label}-{name}"
        assert "status" not in answer.body
    if code == 500:
        assert answer.body["message"] == (
            "Internal error occurred: failed to convert object: x/v9, Kind=Widget is unstructured and is not suitable "
            f'for converting to "{GROUP}/v1"'
        )


def test_updates_are_mutated_and_deletions_are_not(cluster: Cluster) -> None:
    cluster.policy(setting("n", "object.spec.n + 10"))
    assert cluster.create(n=1).body["spec"]["n"] == 11
    assert cluster.merge("w", {"spec": {"n": 2}}).body["spec"]["n"] == 12
    assert cluster.client.send("DELETE", f"{PATH}/{cluster.label}-w").code == 200


def test_subresources_are_mutated_if_they_are_named(cluster: Cluster) -> None:
    cluster.create(replicas=1)
    cluster.policy(
        patching("[JSONPatch{op: 'add', path: '/status/s', value: 'policy'}]"), rules={"resources": ["widgets/status"]}
    )
    answer = cluster.client.send(
        "PATCH", f"{PATH}/{cluster.label}-w/status", {"status": {"replicas": 3}}, "application/merge-patch+json"
    )
    assert answer.body["status"] == {"replicas": 3, "s": "policy"}


def test_a_scale_is_mutated_as_such(cluster: Cluster) -> None:
    cluster.create(replicas=1)
    rule = {**ANYTHING, "resources": ["widgets/scale"], "resourceNames": [f"{cluster.label}-w"]}
    match = {"resourceRules": [rule]}
    cluster.policy(
        applying("Object{spec: Object.spec{replicas: object.kind == 'Scale' ? object.spec.replicas + 4 : 0}}"),
        matchConstraints=match,
    )
    path = f"{PATH}/{cluster.label}-w/scale"
    answer = cluster.client.send("PATCH", path, {"spec": {"replicas": 3}}, "application/merge-patch+json")
    assert answer.body["spec"] == {"replicas": 7}


def test_an_equivalent_object_is_mutated_at_the_version_of_the_rule(cluster: Cluster) -> None:
    cluster.policy(
        applying("Object{spec: Object.spec{a: object.apiVersion + request.requestKind.version}}"),
        rules={"apiVersions": ["v1"]},
    )
    created = cluster.create(version="v2")
    assert (created.body["apiVersion"], created.body["spec"]["a"]) == (f"{GROUP}/v2", f"{GROUP}/v1v2")


def test_a_dry_run_is_mutated_and_not_stored(cluster: Cluster) -> None:
    cluster.policy(setting("a", "'dry'"))
    assert cluster.create(query="?dryRun=All").body["spec"]["a"] == "dry"
    assert cluster.client.send("GET", f"{PATH}/{cluster.label}-w").code == 404


# What fails


def test_all_errors_of_all_policies_are_causes(cluster: Cluster) -> None:
    first = cluster.policy(
        applying("Object{spec: Object.spec{list: []}}"), setting("a", "object.none"), setting("a", "'x'")
    )
    second = cluster.policy(applying("Object{spec: Object.spec{no: 1}}"))
    answer = cluster.create()
    failed = "[JSONPatch{op: 'add', path: '/spec/a', value: object.none}]"
    messages = [
        f"policy '{first}' with binding '{first}' denied request: {ATOMIC}.spec.list",
        f"policy '{first}' with binding '{first}' denied request: expression '{failed}' resulted in error: no such key: none",
        f"policy '{second}' with binding '{second}' denied request: {UNTYPED}.spec.no: field not declared in schema",
    ]
    assert answer.code == 403
    assert (answer.body["reason"], answer.body["message"]) == ("Invalid", messages[0])
    assert answer.body["details"] == {
        "name": f"{cluster.label}-w",
        "group": GROUP,
        "kind": "widgets",
        "causes": [{"message": message} for message in messages],
    }


def test_errors_are_ignored_and_the_other_mutations_stay(cluster: Cluster) -> None:
    cluster.policy(setting("a", "'kept'"), setting("n", "object.none"), failurePolicy="Ignore")
    assert cluster.create().body["spec"] == {"a": "kept", "d": "dflt"}


@pytest.mark.parametrize(
    ("what", "spec", "binding", "reason", "message"),
    [
        ("a condition that fails", {"matchConditions": [{"name": "c", "expression": "object.none == 1"}]}, {}, "Invalid",
         "policy 'NAME' with binding 'NAME' denied request: expression 'object.none == 1' resulted in error: no such key: none"),
        ("params that are not there", {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}},
         {"paramRef": {"name": "missing", "parameterNotFoundAction": "Deny"}}, "Forbidden",
         "policy 'NAME' with binding 'NAME' denied request: failed to configure binding: no params found for policy binding with "
         "`Deny` parameterNotFoundAction"),
        ("params of an unknown kind", {"paramKind": {"apiVersion": "void.example.com/v1", "kind": "Void"}}, {}, "Forbidden",
         'policy "NAME" denied request: failed to configure policy: failed to find resource referenced by paramKind: '
         "'void.example.com/v1, Kind=Void'"),
    ],
)  # fmt: skip
def test_errors_of_configuration(
    cluster: Cluster, what: str, spec: Object, binding: Object, reason: str, message: str
) -> None:
    name = cluster.policy(setting("a", "'x'"), binding=binding, **spec)
    answer = cluster.create()
    expected_message = message.replace("NAME", name)
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (403, reason, expected_message), what
    cluster.clean()
    cluster.made.clear()
    cluster.policy(setting("a", "'x'"), binding=binding, failurePolicy="Ignore", **spec)
    assert cluster.create().body["spec"] == {"d": "dflt"}


@pytest.mark.parametrize(
    ("what", "spec", "changed"),
    [
        ("a condition that holds", {"matchConditions": [{"name": "c", "expression": "request.operation == 'CREATE'"}]}, True),
        ("a condition that does not", {"matchConditions": [{"name": "c", "expression": "request.operation == 'UPDATE'"}]}, False),
        ("a binding about this", {"binding": {"matchResources": {"resourceRules": [ANYTHING]}}}, True),
        ("a binding about something else", {"binding": {"matchResources": {"resourceRules": [{**ANYTHING, "operations": ["UPDATE"]}]}}}, False),
    ],
)  # fmt: skip
def test_what_is_mutated(cluster: Cluster, what: str, spec: Object, changed: bool) -> None:
    cluster.policy(setting("a", "'x'"), **spec)
    assert ("a" in cluster.create().body["spec"]) is changed, what


def test_params_are_seen(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": cluster.label}, "data": {"a": "from the map"}}
    cluster.client.send("POST", "/api/v1/namespaces/default/configmaps", body)
    reference = {"paramRef": {"name": cluster.label, "parameterNotFoundAction": "Deny"}}
    cluster.policy(
        applying("Object{spec: Object.spec{a: params.data.a}}"),
        binding=reference,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    assert cluster.create().body["spec"]["a"] == "from the map"


# Reinvocation


def test_a_policy_with_if_needed_is_evaluated_again_after_its_own_change(cluster: Cluster) -> None:
    appended = "(has(object.spec.list) ? object.spec.list : []) + ['p']"
    cluster.policy(setting("list", appended), reinvocationPolicy="IfNeeded")
    assert cluster.create().body["spec"]["list"] == ["p", "p"]


def test_other_policies_are_evaluated_once(cluster: Cluster) -> None:
    appended = "(has(object.spec.list) ? object.spec.list : []) + ['{}']"
    cluster.policy(setting("list", appended.format("never")))
    cluster.policy(setting("a", "'x'"))
    assert cluster.create().body["spec"]["list"] == ["never"]


def test_what_takes_long_is_mutated_off_the_event_loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_LOOP_SECONDS", 0)
    cluster.policy(setting("a", "string(lists.range(500).all(x, x >= 0))"))
    assert cluster.create().body["spec"]["a"] == "true"


def test_rounds_remember_the_policies_that_were_evaluated() -> None:
    rounds = mutations._Rounds()
    key = ("p", "b", "", "")
    rounds.changed()
    assert rounds.to_reinvoke == set()
    rounds.evaluated(key)
    rounds.changed()
    assert rounds.to_reinvoke == {key}
