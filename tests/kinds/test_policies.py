"""Admission policies and their bindings: defaults, constraints, expressions, params, actions."""

from __future__ import annotations

import pytest

from noxu.go.structs import decode
from noxu.kinds.kind import Context, Kind, Use, prepare, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

API = "admissionregistration.k8s.io/v1"
VALIDATING = by_group_kind()[API, "ValidatingAdmissionPolicy"]
MUTATING = by_group_kind()[API, "MutatingAdmissionPolicy"]
VALIDATING_BINDING = by_group_kind()[API, "ValidatingAdmissionPolicyBinding"]
MUTATING_BINDING = by_group_kind()[API, "MutatingAdmissionPolicyBinding"]

RULE: Object = {"operations": ["CREATE"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["as"]}
MATCH: Object = {"resourceRules": [RULE]}
VALIDATES: Object = {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
PATCH: Object = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
MUTATES: Object = {"matchConstraints": MATCH, "mutations": [PATCH], "reinvocationPolicy": "Never"}
BINDS: Object = {"policyName": "p", "validationActions": ["Deny"]}


def typed(kind: Kind, spec: Object, **more: Object) -> Object:
    decoded = decode(kind.struct, {"metadata": {"name": "p"}, "spec": spec, **more})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    kind.default(value)
    return value


def errors(kind: Kind, spec: Object, old: Object | None = None, context: Context = Context()) -> list[str]:  # noqa: B008
    before = None if old is None else typed(kind, old)
    return [str(error) for error in kind.validate(typed(kind, spec), before, context)]


# Defaults


@pytest.mark.parametrize(("kind", "path"), [(VALIDATING, "matchConstraints"), (MUTATING, "matchConstraints"), (VALIDATING_BINDING, "matchResources"), (MUTATING_BINDING, "matchResources")])  # fmt: skip
def test_match_resources_are_defaulted(kind: Kind, path: str) -> None:
    spec = written(
        kind, typed(kind, {path: {"resourceRules": [RULE], "excludeResourceRules": [{"scope": "Cluster"}]}})
    )["spec"]
    assert spec[path] == {
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{**RULE, "scope": "*"}],
        "excludeResourceRules": [{"scope": "Cluster"}],
        "matchPolicy": "Equivalent",
    }
    assert spec.get("failurePolicy") == ("Fail" if path == "matchConstraints" else None)


def test_absent_fields_are_not_defaulted() -> None:
    assert typed(VALIDATING, {})["spec"] == {"failurePolicy": "Fail"}
    assert typed(MUTATING, {})["spec"] == {"failurePolicy": "Fail"}  # no reinvocationPolicy
    assert typed(VALIDATING_BINDING, {})["spec"] == {}


# What both kinds of policies have in common

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
IDENTIFIER = "must be a valid CEL identifier"


def params(api_version: str, kind: str) -> Object:
    return {"paramKind": {"apiVersion": api_version, "kind": kind}}


def variable(name: str, expression: str = "1") -> Object:
    return {"name": name, "expression": expression}


def matching(**more: object) -> Object:
    return {"matchConstraints": {"resourceRules": [RULE], **more}}


COMMON: list[tuple[str, Object, list[str]]] = [
    ("a good one", {}, []),
    ("an unknown failure policy", {"failurePolicy": "Retry"}, ['spec.failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"']),
    ("an empty failure policy", {"failurePolicy": ""}, ["spec.failurePolicy: Required value"]),
    ("params of a core kind", params("v1", "ConfigMap"), []),
    ("params of a kind of one's own", params("a.b/v1beta1", "Limit"), []),
    ("params of nothing", params("", ""), ["spec.paramKind.apiVersion: Required value", "spec.paramKind.kind: Required value"]),
    ("params without version", params("a.b/", "Limit"), ['spec.paramKind.apiVersion: Invalid value: "a.b/": version must be specified']),
    ("params of a slash", params("/", "Limit"), ['spec.paramKind.apiVersion: Invalid value: "/": version must be specified']),
    ("params with too many slashes", params("a/b/c", "Limit"), ['spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c']),
    ("params with a bad group and version", params("A/1", "Limit"), [
        f'spec.paramKind.apiVersion: Invalid value: "A": {SUBDOMAIN}',
        f'spec.paramKind.apiVersion: Invalid value: "1": {LABEL_1035}',
    ]),
    ("params of a bad kind", params("v1", "My_Kind"), [f'spec.paramKind.kind: Invalid value: "My_Kind": may have mixed case, but should otherwise match: {LABEL_1035}']),
    ("no constraints", {"matchConstraints": None}, ["spec.matchConstraints: Required value"]),
    ("constraints without rules", {"matchConstraints": {}}, ["spec.matchConstraints.resourceRules: Required value"]),
    ("an unknown match policy", matching(matchPolicy="Some"), ['spec.matchConstraints.matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"']),
    ("a bad selector", matching(objectSelector={"matchLabels": {"a!": ""}}), [f'spec.matchConstraints.objectSelector.matchLabels: Invalid value: "a!": {QUALIFIED}']),
    ("a bad rule", matching(resourceRules=[{**RULE, "resources": [""]}]), ["spec.matchConstraints.resourceRules[0].resources[0]: Required value"]),
    ("a bad rule that excludes", matching(excludeResourceRules=[{**RULE, "operations": []}]), ["spec.matchConstraints.excludeResourceRules[0].operations: Required value"]),
    ("names of resources", matching(resourceRules=[{**RULE, "resourceNames": ["a", "b/c", "a", ".."]}]), [
        "spec.matchConstraints.resourceRules[0].resourceNames[1]: Invalid value: \"b/c\": may not contain '/'",
        'spec.matchConstraints.resourceRules[0].resourceNames[2]: Duplicate value: "a"',
        "spec.matchConstraints.resourceRules[0].resourceNames[3]: Invalid value: \"..\": may not be '..'",
    ]),
    ("conditions", {"matchConditions": [{"name": "a b", "expression": ""}]}, [
        "spec.matchConditions[0].expression: Required value",
        f'spec.matchConditions[0].name: Invalid value: "a b": {QUALIFIED}',
    ]),
    ("variables", {"variables": [variable("a"), variable("_b1", "variables.a")]}, []),
    ("a variable with nothing", {"variables": [variable(" ", " ")]}, [
        "spec.variables[0].name: Required value: name is not specified",
        "spec.variables[0].expression: Required value: expression is not specified",
    ]),
    ("variables that are no names", {"variables": [variable("a-b"), variable("in"), variable("1a")]}, [
        f'spec.variables[0].name: Invalid value: "a-b": {IDENTIFIER}',
        f'spec.variables[1].name: Invalid value: "in": {IDENTIFIER}',
        f'spec.variables[2].name: Invalid value: "1a": {IDENTIFIER}',
    ]),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in COMMON], ids=[row[0] for row in COMMON])
def test_policies_are_validated(change: Object, messages: list[str]) -> None:
    assert errors(VALIDATING, VALIDATES | change) == messages
    assert errors(MUTATING, MUTATES | change) == messages


# Validating policies


def validating(**validation: object) -> Object:
    return {"validations": [{"expression": "true", **validation}]}


NO_ITEM = "Required value: validations or auditAnnotations must contain at least one item"
AUDIT: Object = {"key": "k", "valueExpression": "'v'"}
LONG = "'" + "x" * 5120 + "'"
VALIDATIONS: list[tuple[str, Object, list[str]]] = [
    ("only annotations", {"validations": [], "auditAnnotations": [AUDIT]}, []),
    ("neither validations nor annotations", {"validations": []}, [f"spec.validations: {NO_ITEM}", f"spec.auditAnnotations: {NO_ITEM}"]),
    ("no expression", validating(expression=" \n"), ["spec.validations[0].expression: Required value: expression is not specified"]),
    ("a message of a character that only Python takes for white space", validating(message="\x1f"), []),
    ("a message between such characters", validating(message="\x1f\nx"), ['spec.validations[0].message: Invalid value: "\\x1f\\nx": must not contain line breaks']),
    ("a message that ends with a line break", validating(message="x\n"), []),
    ("a message that ends with such a character", validating(message="x\n\x1f"), ['spec.validations[0].message: Invalid value: "x\\n\\x1f": must not contain line breaks']),
    ("a blank message", validating(message="  "), ['spec.validations[0].message: Invalid value: "  ": must be non-empty if specified']),
    ("a message of two lines", validating(message="a\nb"), ['spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks']),
    ("a message that ends its line", validating(message="a\n"), []),
    ("a blank message expression", validating(messageExpression=" "), ['spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified']),
    ("reasons", {"validations": [{"expression": "true", "reason": reason} for reason in ("Forbidden", "Invalid", "RequestEntityTooLarge")]}, []),
    ("an unknown reason", validating(reason="Because"), ['spec.validations[0].reason: Unsupported value: "Because": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"']),
    ("an annotation with nothing", {"auditAnnotations": [{}]}, [
        'spec.auditAnnotations[0].key: Invalid value: "p/": name part must be non-empty',
        f'spec.auditAnnotations[0].key: Invalid value: "p/": {QUALIFIED}',
        "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
    ]),
    ("annotations with one key", {"auditAnnotations": [AUDIT, AUDIT]}, ['spec.auditAnnotations[1].key: Duplicate value: "k"']),
    ("a long value", {"auditAnnotations": [{"key": "k", "valueExpression": LONG}]}, ["spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length"]),
    ("as many annotations as may be", {"auditAnnotations": [{**AUDIT, "key": f"k{n}"} for n in range(20)]}, []),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in VALIDATIONS], ids=[row[0] for row in VALIDATIONS])
def test_validating_policies_are_validated(change: Object, messages: list[str]) -> None:
    assert errors(VALIDATING, VALIDATES | change) == messages


def test_too_many_annotations_are_shown_as_upstream_holds_them() -> None:
    (messages,) = errors(VALIDATING, VALIDATES | {"auditAnnotations": [{**AUDIT, "key": f"k{n}"} for n in range(21)]})
    assert messages.startswith(
        'spec.auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"\'v\'"},{"Key":"k1",'
    )
    assert messages.endswith("]: must not have more than 20 auditAnnotations")


def test_an_annotation_needs_the_name_of_the_policy() -> None:
    policy = typed(VALIDATING, VALIDATES | {"auditAnnotations": [AUDIT]})
    del policy["metadata"]["name"]
    assert [str(error) for error in VALIDATING.validate(policy, None, Context())] == [
        'spec.auditAnnotations[0].key: Invalid value: "k": requires metadata.name be non-empty'
    ]


# Mutating policies


def mutating(**mutation: object) -> Object:
    return {"mutations": [mutation]}


MUTATIONS: list[tuple[str, Object, list[str]]] = [
    ("both types", {"mutations": [PATCH, {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}, []),
    ("none", {"mutations": []}, ["spec.mutations: Required value: mutations must contain at least one item"]),
    ("no type", mutating(), ["spec.mutations[0].patchType: Required value"]),
    ("an unknown type", mutating(patchType="Merge"), ['spec.mutations[0].patchType: Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"']),
    ("nothing to do", mutating(patchType="JSONPatch"), ["spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch"]),
    ("no expression", mutating(patchType="JSONPatch", jsonPatch={"expression": " "}), ["spec.mutations[0].jsonPatch.expression: Required value"]),
    ("the other one", mutating(patchType="ApplyConfiguration", jsonPatch={"expression": "[]"}), [
        "spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration",
        'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration',
    ]),
    ("one too many", mutating(**PATCH, applyConfiguration={"expression": "Object{}"}), [
        'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
    ]),
    ("no reinvocation policy", {"reinvocationPolicy": ""}, ["spec.reinvocationPolicy: Required value"]),
    ("an unknown reinvocation policy", {"reinvocationPolicy": "Always"}, ['spec.reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"']),
    ("nothing can be changed about a delete", matching(resourceRules=[{**RULE, "operations": ["CREATE", "DELETE"]}]), [
        'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
    ]),
    ("all operations are all right", matching(resourceRules=[{**RULE, "operations": ["*"]}]), []),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in MUTATIONS], ids=[row[0] for row in MUTATIONS])
def test_mutating_policies_are_validated(change: Object, messages: list[str]) -> None:
    assert errors(MUTATING, MUTATES | change) == messages


# What expressions may name

A, B = ("a", "1"), ("b", "variables.a")
EVERYTHING: Object = {
    **VALIDATES,
    **params("v1", "ConfigMap"),
    "matchConditions": [{"name": "m", "expression": " m "}],
    "variables": [variable(*A), variable(*B)],
    "validations": [{"expression": " v ", "messageExpression": " w "}],
    "auditAnnotations": [{"key": "k", "valueExpression": " x "}],
}


def uses(kind: Kind, spec: Object, old: Object | None = None) -> list[tuple[str, Use]]:
    seen: list[tuple[str, Use]] = []

    def note(expression: str, use: Use) -> str:
        seen.append((expression, use))
        return ""

    assert errors(kind, spec, old, Context(check=note)) == []
    return seen


def test_variables_in_the_expressions_of_a_validating_policy() -> None:
    assert uses(VALIDATING, EVERYTHING) == [
        ("m", Use("bool", params=True)),
        ("1", Use("any", params=True)),
        ("variables.a", Use("any", params=True, variables=(A,))),
        (" v ", Use("bool", params=True, variables=(A, B))),
        (" w ", Use("string", params=True, authorizer=False, variables=(A, B))),
        ("x", Use("string or null", params=True, variables=(A, B))),
    ]


def test_variables_in_the_expressions_of_a_mutating_policy() -> None:
    apply = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": " Object{} "}}
    assert uses(MUTATING, MUTATES | {"variables": [variable(*A)], "mutations": [PATCH, apply]}) == [
        ("1", Use("any")),
        ("[]", Use("JSONPatch", variables=(A,))),
        ("Object{}", Use("ApplyConfiguration", variables=(A,))),
    ]


def test_expressions_of_the_stored_policy_stay_allowed() -> None:
    changed = {**EVERYTHING, "matchConditions": [{"name": "n", "expression": "m"}, {"name": "o", "expression": "new"}]}
    old = {**EVERYTHING, "matchConditions": [{"name": "m", "expression": "m"}]}
    assert [(expression, use.stored) for expression, use in uses(VALIDATING, changed, old)] == [
        ("m", True),
        ("new", False),
        ("1", False),
        ("variables.a", False),
        (" v ", True),
        (" w ", True),
        ("x", True),
    ]


def test_unchanged_conditions_are_not_validated_again() -> None:
    again = [expression for expression, _ in uses(VALIDATING, EVERYTHING, EVERYTHING)]
    assert "m" not in again
    assert " v " in again


def test_conditions_are_validated_again_when_the_params_change() -> None:
    changed = EVERYTHING | params("v1", "Secret")
    assert next(expression for expression, _ in uses(VALIDATING, changed, EVERYTHING)) == "m"


REFUSED: list[tuple[str, Kind, Object, str]] = [
    ("a condition", VALIDATING, {"matchConditions": [{"name": "m", "expression": " bad "}]}, 'spec.matchConditions[0].expression: Invalid value: "bad"'),
    ("a variable", VALIDATING, {"variables": [variable("a", " bad ")]}, 'spec.variables[0].expression: Invalid value: " bad "'),
    ("a validation", VALIDATING, validating(expression=" bad "), 'spec.validations[0].expression: Invalid value: " bad "'),
    ("a message", VALIDATING, validating(messageExpression=" bad "), 'spec.validations[0].messageExpression: Invalid value: " bad "'),
    ("an annotation, shown as it was sent", VALIDATING, {"auditAnnotations": [{"key": "k", "valueExpression": " bad "}]}, 'spec.auditAnnotations[0].valueExpression: Invalid value: " bad "'),
    ("a patch, shown as compiled", MUTATING, mutating(patchType="JSONPatch", jsonPatch={"expression": " bad "}), 'spec.mutations[0].jsonPatch.expression: Invalid value: "bad"'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_expressions_that_do_not_compile(kind: Kind, change: Object, message: str) -> None:
    good = VALIDATES if kind is VALIDATING else MUTATES
    context = Context(check=lambda expression, use: "compilation failed" if "bad" in expression else "")
    assert errors(kind, good | change, context=context) == [f"{message}: compilation failed"]


# Bindings


def referring(**reference: object) -> Object:
    return {"paramRef": {"parameterNotFoundAction": "Deny", **reference}}


EXCLUSIVE = "name and selector are mutually exclusive"
BINDINGS: list[tuple[str, Object, list[str]]] = [
    ("a good one", {}, []),
    ("no policy", {"policyName": ""}, ["spec.policyName: Required value"]),
    ("a bad name", {"policyName": "P"}, [f'spec.policyName: Invalid value: "P": {SUBDOMAIN}']),
    ("params by name", referring(name="a", namespace="x"), []),
    ("params by label", referring(selector={"matchLabels": {"a": "b"}}), []),
    ("all params", referring(selector={}), []),
    ("params by name and label", referring(name="a", selector={}), [f"spec.paramRef.name: Forbidden: {EXCLUSIVE}", f"spec.paramRef.selector: Forbidden: {EXCLUSIVE}"]),
    ("params by nothing", {"paramRef": {}}, [
        "spec.paramRef: Required value: one of name or selector must be specified",
        "spec.paramRef.parameterNotFoundAction: Required value",
    ]),
    ("a bad name of params", referring(name="a/b"), ["spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'"]),
    ("a bad label of params", referring(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}), [
        "spec.paramRef.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ]),
    ("an unknown action for missing params", referring(name="a", parameterNotFoundAction="Wait"), [
        'spec.paramRef.parameterNotFoundAction: Unsupported value: "Wait": supported values: "Deny", "Allow"',
    ]),
    ("resources to match", {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, []),
    ("a bad rule", {"matchResources": {"resourceRules": [{**RULE, "scope": "X"}]}}, [
        'spec.matchResources.resourceRules[0].scope: Unsupported value: "X": supported values: "*", "Cluster", "Namespaced"',
    ]),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in BINDINGS], ids=[row[0] for row in BINDINGS])
def test_bindings_are_validated(change: Object, messages: list[str]) -> None:
    assert errors(VALIDATING_BINDING, BINDS | change) == messages
    assert errors(MUTATING_BINDING, {"policyName": "p"} | change) == messages


TWICE = "(repeating the same validation failure information in the API response and headers serves no purpose)"
ACTIONS: list[tuple[str, list[str], list[str]]] = [
    ("warn and audit", ["Warn", "Audit"], []),
    ("none", [], ["spec.validationActions: Required value: at least one validation action is required"]),
    ("an unknown one", ["Log"], ['spec.validationActions[0]: Unsupported value: "Log": supported values: "Audit", "Deny", "Warn"']),
    ("one twice", ["Deny", "Deny"], ['spec.validationActions[1]: Duplicate value: "Deny"']),
    ("deny and warn", ["Deny", "Warn"], [f'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn {TWICE}']),
]  # fmt: skip


@pytest.mark.parametrize(("actions", "messages"), [row[1:] for row in ACTIONS], ids=[row[0] for row in ACTIONS])
def test_actions_are_validated(actions: list[str], messages: list[str]) -> None:
    assert errors(VALIDATING_BINDING, BINDS | {"validationActions": actions}) == messages


def test_a_mutating_binding_cannot_match_a_delete() -> None:
    match = {"matchResources": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}}
    assert errors(MUTATING_BINDING, {"policyName": "p", **match}) == [
        'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": '
        'supported values: "*", "CONNECT", "CREATE", "UPDATE"'
    ]
    assert errors(VALIDATING_BINDING, BINDS | match) == []


# Status, generation, names


def test_a_new_policy_has_no_status() -> None:
    policy = typed(VALIDATING, VALIDATES, status={"observedGeneration": 5})
    prepare(VALIDATING, policy, None)
    assert written(VALIDATING, policy)["status"] == {}
    assert policy["metadata"]["generation"] == 1


def test_an_update_keeps_the_status_and_counts() -> None:
    old = typed(VALIDATING, VALIDATES, status={"observedGeneration": 1})
    old["metadata"]["generation"] = 4
    new = typed(VALIDATING, VALIDATES | {"failurePolicy": "Ignore"}, status={"observedGeneration": 9})
    prepare(VALIDATING, new, old)
    assert (new["status"], new["metadata"]["generation"]) == ({"observedGeneration": 1}, 5)


def test_an_update_of_the_status_keeps_all_other_fields() -> None:
    old = typed(VALIDATING, VALIDATES)
    old["metadata"] |= {"generation": 4, "labels": {"a": "b"}, "finalizers": ["a.b/c"]}
    new = typed(VALIDATING, {}, status={"observedGeneration": 4})
    new["metadata"] |= {"labels": {"c": "d"}, "annotations": {"e": "f"}, "resourceVersion": "7"}
    prepare(VALIDATING, new, old, Context("status"))
    assert new["spec"] == old["spec"]
    assert new["status"] == {"observedGeneration": 4}
    assert new["metadata"] == {
        "name": "p",
        "generation": 4,
        "labels": {"a": "b"},
        "finalizers": ["a.b/c"],
        "resourceVersion": "7",
    }


GOOD_CONDITION: Object = {
    "type": "Ready",
    "status": "True",
    "reason": "Checked",
    "message": "",
    "lastTransitionTime": "2024-01-01T00:00:00Z",
}
REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
STATUSES: list[tuple[str, Object, list[str]]] = [
    ("a good one", {"conditions": [GOOD_CONDITION]}, []),
    ("a condition with nothing", {"conditions": [{}]}, [
        "[0].type: Required value: is required",
        "[0].status: Required value",
        "[0].lastTransitionTime: Required value",
        "[0].reason: Required value",
    ]),
    ("a condition with bad parts", {"conditions": [{**GOOD_CONDITION, "type": "a b", "status": "Yes", "reason": "1", "observedGeneration": -1}]}, [
        f'[0].type: Invalid value: "a b": {QUALIFIED}',
        '[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"',
        "[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
        f'[0].reason: Invalid value: "1": {REASON_RULE}',
    ]),
    ("a wordy condition", {"conditions": [{**GOOD_CONDITION, "reason": "x" * 1025, "message": "x" * 32769}]}, [
        "[0].reason: Too long: may not be more than 1024 bytes",
        "[0].message: Too long: may not be more than 32768 bytes",
    ]),
    ("a condition twice", {"conditions": [GOOD_CONDITION, GOOD_CONDITION]}, ['[1]: Duplicate value: "Ready"']),
]  # fmt: skip


@pytest.mark.parametrize(("status", "messages"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_statuses_are_validated(status: Object, messages: list[str]) -> None:
    policy = typed(VALIDATING, {}, status=status)
    found = [str(error) for error in VALIDATING.validate(policy, policy, Context("status"))]
    assert found == [f"status.conditions{message}" for message in messages]


def test_warnings_of_the_type_checker_need_a_message_and_a_field() -> None:
    policy = typed(VALIDATING, {}, status={"typeChecking": {"expressionWarnings": [{}]}})
    assert [str(error) for error in VALIDATING.validate(policy, policy, Context("status"))] == [
        "status.typeChecking.expressionWarnings[0].warning: Required value",
        "status.typeChecking.expressionWarnings[0].fieldRef: Required value",
    ]


@pytest.mark.parametrize(
    "kind", [VALIDATING, MUTATING, VALIDATING_BINDING, MUTATING_BINDING], ids=lambda kind: kind.kind
)
def test_names_for_files_cannot_be_created(kind: Kind) -> None:
    good = {VALIDATING: VALIDATES, MUTATING: MUTATES, VALIDATING_BINDING: BINDS, MUTATING_BINDING: {"policyName": "p"}}
    value = typed(kind, good[kind])
    value["metadata"]["name"] = "p.static.k8s.io"
    (messages,) = kind.validate(value, None, Context())
    assert messages.field == "metadata.name"
    assert kind.validate(value, value, Context()) == []


@pytest.mark.parametrize(
    "kind", [VALIDATING, MUTATING, VALIDATING_BINDING, MUTATING_BINDING], ids=lambda kind: kind.kind
)
def test_properties_of_the_policy_kinds(kind: Kind) -> None:
    assert (kind.namespaced, kind.categories, kind.generation) == (False, ("api-extensions",), ("spec",))
    assert (kind.unconditional_update, kind.create_on_update) == (False, False)
    assert kind.has_status is (kind is VALIDATING)
