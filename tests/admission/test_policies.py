"""ValidatingAdmissionPolicies: what they decide, through which bindings, with which params, and the messages of denials."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.admission import expressions
from noxu.admission.expressions import Inputs
from noxu.admission.policies import PolicyResult, ValidatingPolicy, evaluate
from noxu.registry import turns
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.rows import rows

REQUEST: Object = {
    "resource": {"group": "g", "version": "v1", "resource": "widgets"},
    "requestResource": {"group": "g", "version": "v2", "resource": "widgets"},
    "operation": "CREATE",
}
SEEN = Inputs({"spec": {"n": 5}}, None, REQUEST, namespace={"metadata": {"name": "default"}}, params={"max": 3})
NONE = "no such key: none"


def evaluated(
    *validations: Object, seen: Inputs = SEEN, limited: LoopBudget | None = None, **spec: Any
) -> PolicyResult:
    policy = ValidatingPolicy({"metadata": {"name": "p"}, "spec": {"validations": list(validations), **spec}})
    return evaluate(policy, seen, limited)


def messages_of(*validations: Object, **spec: Any) -> list[str]:
    """What each validation says; nothing if it admits."""
    return [decision.message for decision in evaluated(*validations, **spec).decisions]


def fails(**more: str) -> Object:
    return {"expression": "object.spec.n < 3", **more}


# One policy


def test_every_validation_decides() -> None:
    assert messages_of({"expression": "true"}, fails(), {"expression": "object.spec.n == 5"}, fails(message="no")) == [
        "", "failed expression: object.spec.n < 3", "", "no",
    ]  # fmt: skip


@rows(
    ("what", "validation", "message"),
    [
        ("the expression, trimmed", {"expression": " \n false "}, "failed expression: false"),
        ("the message, trimmed", fails(message=" too big "), "too big"),
        ("the messageExpression", fails(message="m", messageExpression="'n is ' + string(object.spec.n)"), "n is 5"),
        ("what it gives, trimmed", fails(messageExpression="'  x '"), "x"),
        ("not if it is empty", fails(message="m", messageExpression="''"), "m"),
        ("not if it is blank", fails(message="m", messageExpression="'  '"), "m"),
        ("not if it has several lines", fails(message="m", messageExpression="'a\\nb'"), "m"),
        ("not if it is too long", fails(message="m", messageExpression=f"'{'x' * 6000}'"), "m"),
        ("not if it fails", fails(message="m", messageExpression="string(object.none)"), "m"),
        ("not if it does not compile", fails(message="m", messageExpression="'a"), "m"),
        ("not if it is no text", fails(message="m", messageExpression="object.spec.n"), "m"),
        ("not if it asks an authorizer", fails(message="m", messageExpression="authorizer.path('/').check('x').reason()"), "m"),
        ("with params", fails(messageExpression="'max ' + string(params.max)"), "max 3"),
        ("with the namespace", fails(messageExpression="'in ' + namespaceObject.metadata.name"), "in default"),
    ],
)  # fmt: skip
def test_messages_of_denials(what: str, validation: Object, message: str) -> None:
    assert messages_of(validation, paramKind={"apiVersion": "g/v1", "kind": "Limit"}) == [message], what


@pytest.mark.parametrize(
    ("validation", "reason"),
    [(fails(), "Invalid"), (fails(reason="Forbidden"), "Forbidden"), ({"expression": "object.none", "reason": "Forbidden"}, "")],
)  # fmt: skip
def test_a_reason_is_for_failures_and_not_for_errors(validation: Object, reason: str) -> None:
    assert [decision.reason for decision in evaluated(validation).decisions] == [reason]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("object.spec.none == 1", f"expression 'object.spec.none == 1' resulted in error: {NONE}"),
        ("object.spec.n", "compilation error: must evaluate to bool but got dyn"),
        ("1 == params.x", "compilation error: compilation failed: ERROR: <input>:1:6: undeclared reference to 'params' "
                          "(in container '')\n | 1 == params.x\n | .....^"),
    ],
)  # fmt: skip
def test_errors_are_denials_unless_they_are_ignored(expression: str, error: str) -> None:
    both: tuple[Object, ...] = ({"expression": expression}, fails())
    assert messages_of(*both) == [error, "failed expression: object.spec.n < 3"]
    assert messages_of(*both, failurePolicy="Ignore") == ["", "failed expression: object.spec.n < 3"]


@pytest.mark.parametrize(
    ("what", "conditions", "decided"),
    [
        ("met", ["object.spec.n == 5"], ["no"]),
        ("not met", ["object.spec.n == 6"], []),
        ("one of two not met", ["object.spec.none == 1", "false"], []),
        ("failed", ["object.spec.none == 1"], [f"expression 'object.spec.none == 1' resulted in error: {NONE}"]),
        ("that see no namespace", ["namespaceObject == null"], ["no"]),
        ("that see the resource as it was asked for", ["request.resource.version == 'v2'"], ["no"]),
        ("with variables", ["variables.n == 5"], ["no"]),
    ],
)
def test_match_conditions(what: str, conditions: list[str], decided: list[str]) -> None:
    given = [{"name": str(n), "expression": text} for n, text in enumerate(conditions)]
    variables = [{"name": "n", "expression": "object.spec.n"}]
    validation = {"expression": "request.resource.version == 'v2'", "message": "no"}  # as the rule has it: v1
    assert messages_of(validation, matchConditions=given, variables=variables) == decided, what
    ignoring = messages_of(validation, matchConditions=given, variables=variables, failurePolicy="Ignore")
    assert ignoring == ([] if "error" in "".join(decided) else decided)


def test_match_conditions_that_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "BUDGET_OF_CONDITIONS", 10)
    given = [{"name": "c", "expression": "lists.range(100).all(x, x >= 0)"}]
    error = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert messages_of({"expression": "true"}, matchConditions=given) == [error]


def test_validations_that_cost_too_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "BUDGET", 1_000)
    costly: Object = {"expression": "lists.range(100).all(x, x >= 0)"}
    error = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert messages_of(costly) == [""]
    assert messages_of(costly, costly, costly, fails()) == [error], "one for all of them"
    assert messages_of(costly, costly, costly, fails(), failurePolicy="Ignore") == [""]
    expensive = {"expression": "true", "messageExpression": "string(lists.range(400).all(x, x >= 0))"}
    assert messages_of(expensive, fails()) == [f"failed messageExpression: {error}"] * 2, (
        "though no message would have been used it"
    )


def test_what_takes_long_is_not_done_where_the_loop_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_LOOP_SECONDS", 0)
    specs: list[dict[str, Any]] = [
        {"matchConditions": [{"name": "c", "expression": "lists.range(100).all(x, x >= 0)"}]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "string(lists.range(100).all(x, x >= 0))"}]},
    ]
    for spec in specs:
        with pytest.raises(LoopBudgetExceeded):
            evaluated({"expression": "true"}, limited=LoopBudget(), **spec)


def test_long_policies_are_compiled_off_the_event_loop() -> None:
    def policy(length: int) -> ValidatingPolicy:
        validation = {"expression": "true", "message": "x" * length}
        return ValidatingPolicy({"metadata": {"name": "p"}, "spec": {"validations": [validation]}})

    assert not policy(1000).takes_long
    long = policy(5000)
    assert long.takes_long
    evaluate(long, SEEN, None)
    assert long.compiled


@pytest.mark.parametrize(
    ("what", "expression", "annotations", "failed"),
    [
        ("a text", "'n=' + string(object.spec.n)", [("k", "n=5")], []),
        ("is trimmed", "' x '", [("k", "x")], []),
        ("null", "null", [], []),
        ("blank", "'  '", [], []),
        ("an error", "string(object.none)", [], ["expression 'string(object.none)' resulted in error: no such key: none"]),
        ("no text", "1", [], ["compilation error: must evaluate to one of [string null_type] but got int"]),
        ("a question", "authorizer.path('/').check('x').reason()", [],
         ["expression 'authorizer.path('/').check('x').reason()' resulted in error: no such attribute(s): authorizer"]),
    ],
)  # fmt: skip
def test_audit_annotations(what: str, expression: str, annotations: list[Any], failed: list[str]) -> None:
    given = [{"key": "k", "valueExpression": expression}]
    found = evaluated({"expression": "true"}, auditAnnotations=given)
    assert (list(found.annotations), list(found.failed)) == (annotations, failed), what
    assert list(evaluated({"expression": "true"}, auditAnnotations=given, failurePolicy="Ignore").failed) == []


# A server with policies

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.policed.example.com"},
    "spec": {
        "group": "policed.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"n": {"type": "integer"}, "d": {"type": "string", "default": "dflt"}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
            for name in ("v1", "v2")
        ],
    },
}
SETTINGS: Object = {
    **CRD,
    "metadata": {"name": "limits.policed.example.com"},
    "spec": {
        **CRD["spec"],
        "names": {"plural": "limits", "singular": "limit", "kind": "Limit", "listKind": "LimitList"},
    },
}
ANYTHING: Object = {"operations": ["*"], "apiGroups": ["policed.example.com"], "apiVersions": ["*"], "resources": ["*"]}


class Cluster:
    """A server, and what is made on it for one test. Objects of a test are labelled, so that only its policies see them."""

    numbers = count()

    def __init__(self, client: Client) -> None:
        self.client = client
        self.label = f"t{next(self.numbers)}"
        self.made: list[str] = []

    def policy(
        self, *validations: Object, binding: Object | None = None, match: Object | None = None, **spec: Any
    ) -> str:
        """A policy about the objects of this test, with one binding unless that is {}. Its name."""
        name = f"{self.label}-{len(self.made)}"
        constraints = {
            "resourceRules": [ANYTHING],
            "objectSelector": {"matchLabels": {"of": self.label}},
            **(match or {}),
        }
        self.make(POLICIES, name, {"matchConstraints": constraints, "validations": list(validations), **spec})
        if binding != {}:
            self.bind(name, name, **(binding or {}))
        return name

    def bind(self, name: str, policy: str, **spec: Any) -> None:
        self.make(BINDINGS, name, {"policyName": policy, "validationActions": ["Deny"], **spec})

    def make(self, path: str, name: str, spec: Object) -> None:
        kind = "ValidatingAdmissionPolicy" if path == POLICIES else "ValidatingAdmissionPolicyBinding"
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        answer = self.client.send("POST", path, body)
        assert answer.code == 201, answer.body
        self.made.append(f"{path}/{name}")

    def clean(self) -> None:
        for path in reversed(self.made):
            self.client.send("DELETE", path)

    def path(self, version: str = "v1", resource: str = "widgets") -> str:
        return f"/apis/policed.example.com/{version}/namespaces/default/{resource}"

    def widget(self, name: str, version: str = "v1", kind: str = "Widget", **spec: Any) -> Object:
        metadata = {"name": f"{self.label}-{name}", "labels": {"of": self.label}}
        return {"apiVersion": f"policed.example.com/{version}", "kind": kind, "metadata": metadata, "spec": spec}

    def create(self, name: str = "w", version: str = "v1", **spec: Any) -> Answer:
        return self.client.send("POST", self.path(version), self.widget(name, version, **spec))

    def merge(self, path: str, patch: Object) -> Answer:
        return self.client.send("PATCH", path, patch, "application/merge-patch+json")

    def limit(self, name: str, **spec: Any) -> None:
        body = self.widget(name, kind="Limit", **spec)
        body["metadata"]["labels"] = {"limits": self.label}
        assert self.client.send("POST", self.path(resource="limits"), body).code == 201


@pytest.fixture(scope="module")
def client(noxu_session: Noxu) -> Iterator[Client]:
    with Client(noxu_session.url) as client:
        for document in (CRD, SETTINGS):
            client.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
        yield client
        for document in (CRD, SETTINGS):
            client.send(
                "DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{document['metadata']['name']}"
            )


@pytest.fixture
def cluster(client: Client) -> Iterator[Cluster]:
    cluster = Cluster(client)
    yield cluster
    cluster.clean()


def small(**more: Any) -> Object:
    return {"expression": "object.spec.n < 10", "message": "n is too large", **more}


@pytest.mark.parametrize(
    ("reason", "code"),
    [("Invalid", 422), ("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413)],
)
def test_a_denial_is_a_status(cluster: Cluster, reason: str, code: int) -> None:
    policy = cluster.policy(small(reason=reason), {"expression": "false", "message": "is not shown"})
    answer = cluster.create("w", n=100)
    name = f"{cluster.label}-w"
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: n is too large"
    assert answer.code == code
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'widgets.policed.example.com "{name}" is forbidden: {message}',
        "reason": reason,
        "details": {"name": name, "group": "policed.example.com", "kind": "widgets", "causes": [{"message": message}]},
        "code": code,
    }


def _denied(cluster: Cluster, **spec: Any) -> str:
    """What is said after `denied request: `, an empty text if the object is created."""
    answer = cluster.create(f"w{next(cluster.numbers)}", **spec)
    return "" if answer.code == 201 else str(answer.body["message"]).partition("denied request: ")[2]


def test_policies_and_bindings_are_in_force_at_once(cluster: Cluster) -> None:
    policy = cluster.policy(small(), binding={})
    assert _denied(cluster, n=100) == "", "a policy without binding does nothing"
    cluster.bind(policy, policy)
    assert _denied(cluster, n=100) == "n is too large"
    patch: Object = {"spec": {"validations": [small(message="changed")]}}
    assert cluster.merge(f"{POLICIES}/{policy}", patch).code == 200
    assert _denied(cluster, n=100) == "changed"
    assert cluster.client.send("DELETE", f"{BINDINGS}/{policy}").code == 200
    assert _denied(cluster, n=100) == ""
    cluster.bind(policy, policy)
    assert cluster.client.send("DELETE", f"{POLICIES}/{policy}").code == 200
    assert _denied(cluster, n=100) == "", "nor does a binding without policy"


def test_the_object_is_seen_defaulted_and_pruned(cluster: Cluster) -> None:
    cluster.policy({"expression": "object.spec.d == 'dflt' && !has(object.spec.junk) && has(object.metadata.uid)"})
    assert _denied(cluster, n=1, junk=1) == ""


@pytest.mark.parametrize(
    ("what", "change", "denied"),
    [
        ("an update", lambda cluster, path: cluster.merge(path, {"spec": {"n": 2}}), True),
        ("an update of the status", lambda cluster, path: cluster.merge(f"{path}/status", {"status": {"x": 1}}), True),
        ("a deletion", lambda cluster, path: cluster.client.send("DELETE", path), True),
        ("a dry run", lambda cluster, path: cluster.merge(f"{path}?dryRun=All", {"spec": {"n": 2}}), True),
        ("a read", lambda cluster, path: cluster.client.send("GET", path), False),
    ],
)  # fmt: skip
def test_all_writes_are_validated(
    cluster: Cluster, what: str, change: Callable[[Cluster, str], Answer], denied: bool
) -> None:
    created = cluster.create(n=1)
    cluster.policy(
        {"expression": "object != null ? object.spec.n == 0 : oldObject.spec.n == 0", "messageExpression":
         "request.operation + (has(request.subResource) ? '/' + request.subResource : '')"},
        match={"resourceRules": [{**ANYTHING, "resources": ["*/*"]}]},
    )  # fmt: skip
    answer = change(cluster, f"{cluster.path()}/{created.body['metadata']['name']}")
    assert (answer.code == 422) is denied, what
    if denied:
        operation = {"a deletion": "DELETE", "an update of the status": "UPDATE/status"}.get(what, "UPDATE")
        assert str(answer.body["message"]).endswith(f"denied request: {operation}")


def test_objects_deleted_together_have_no_name(cluster: Cluster) -> None:
    cluster.create(n=1)
    cluster.policy({"expression": "false"})
    answer = cluster.client.send("DELETE", f"{cluster.path()}?labelSelector=of={cluster.label}")
    assert str(answer.body["message"]).startswith('widgets.policed.example.com "Unknown" is forbidden: ')


@pytest.mark.parametrize(
    ("what", "match", "matches"),
    [
        ("another operation", {"resourceRules": [{**ANYTHING, "operations": ["UPDATE"]}]}, False),
        ("another resource", {"resourceRules": [{**ANYTHING, "resources": ["gadgets"]}]}, False),
        ("another version, which is equivalent", {"resourceRules": [{**ANYTHING, "apiVersions": ["v2"]}]}, True),
        ("another version exactly", {"resourceRules": [{**ANYTHING, "apiVersions": ["v2"]}], "matchPolicy": "Exact"}, False),
        ("another scope", {"resourceRules": [{**ANYTHING, "scope": "Cluster"}]}, False),
        ("another name", {"resourceRules": [{**ANYTHING, "resourceNames": ["missing"]}]}, False),
        ("what is excluded", {"excludeResourceRules": [{**ANYTHING, "operations": ["CREATE"]}]}, False),
        ("the namespace", {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ("another namespace", {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["policy", "binding"])
def test_what_is_matched(cluster: Cluster, what: str, match: Object, matches: bool, where: str) -> None:
    if where == "policy":
        cluster.policy({"expression": "false"}, match=match)
    else:
        cluster.policy({"expression": "false"}, binding={"matchResources": match})
    assert bool(_denied(cluster, n=1)) is matches, what


def test_an_equivalent_object_is_shown_at_the_version_of_the_rule(cluster: Cluster) -> None:
    versions = "object.apiVersion + ' ' + request.kind.version + request.resource.version"
    requested = "request.requestKind.version + request.requestResource.version"
    cluster.policy(
        {"expression": "false", "messageExpression": f"{versions} + ' for ' + {requested}"},
        match={"resourceRules": [{**ANYTHING, "apiVersions": ["v1"]}]},
    )
    answer = cluster.create(version="v2", n=1)
    assert str(answer.body["message"]).endswith("denied request: policed.example.com/v1 v1v1 for v2v2")


def warnings_of(cluster: Cluster, **spec: Any) -> tuple[int, list[str]]:
    body = cluster.widget(f"w{next(cluster.numbers)}", **spec)
    code, headers, _ = cluster.client.exchange(
        "POST", cluster.path(), json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return code, [value for name, value in headers if name.lower() == "warning"]


def test_warnings_are_sent_for_each_failure_of_each_binding(cluster: Cluster) -> None:
    policy = cluster.policy(small(), {"expression": "object.spec.none == 1"}, binding={"validationActions": ["Warn"]})
    other = f"{policy}-other"
    cluster.bind(other, policy, validationActions=["Audit", "Warn"])
    code, warnings = warnings_of(cluster, n=100)
    begin = f"299 - \"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding"
    error = f"expression 'object.spec.none == 1' resulted in error: {NONE}"
    assert (code, warnings) == (201, [
        f"{begin} '{policy}': n is too large\"",
        f"{begin} '{policy}': {error}\"",
        f"{begin} '{other}': n is too large\"",
        f"{begin} '{other}': {error}\"",
    ])  # fmt: skip


def test_warnings_are_sent_with_a_denial(cluster: Cluster) -> None:
    cluster.policy(small(), binding={"validationActions": ["Warn"]})
    cluster.policy({"expression": "false"})
    code, warnings = warnings_of(cluster, n=100)
    assert (code, len(warnings)) == (422, 1)


def test_audit_alone_changes_nothing_but_its_annotations_may_deny(cluster: Cluster) -> None:
    cluster.policy(small(), binding={"validationActions": ["Audit"]})
    assert warnings_of(cluster, n=100) == (201, [])
    annotation = {"key": "k", "valueExpression": "string(object.spec.none)"}
    cluster.policy({"expression": "true"}, binding={"validationActions": ["Audit"]}, auditAnnotations=[annotation])
    assert _denied(cluster, n=1) == f"expression 'string(object.spec.none)' resulted in error: {NONE}"


# Params

LIMIT: Object = {"apiVersion": "policed.example.com/v1", "kind": "Limit"}
BELOW: Object = {
    "expression": "object.spec.n < params.spec.n",
    "messageExpression": "params.kind + ' ' + params.metadata.name",
}
NOT_FOUND = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"


def _reference(**more: Any) -> Object:
    return {"paramRef": {"parameterNotFoundAction": "Deny", **more}}


def test_a_param_by_name_is_in_the_namespace_of_the_request(cluster: Cluster) -> None:
    cluster.limit("five", n=5)
    name = f"{cluster.label}-five"
    cluster.policy(BELOW, binding=_reference(name=name), paramKind=LIMIT)
    assert _denied(cluster, n=4) == ""
    assert _denied(cluster, n=5) == f"Limit {name}"
    path = f"{cluster.path(resource='limits')}/{name}"
    assert cluster.merge(path, {"spec": {"n": 6}}).code == 200
    assert _denied(cluster, n=5) == "", "changes act at once"
    assert cluster.client.send("DELETE", path).code == 200
    assert _denied(cluster, n=4) == NOT_FOUND


def test_every_param_that_is_selected_counts(cluster: Cluster) -> None:
    cluster.limit("five", n=5)
    cluster.limit("seven", n=7)
    selector = {"matchLabels": {"limits": cluster.label}}
    cluster.policy(BELOW, binding=_reference(selector=selector), paramKind=LIMIT)
    assert _denied(cluster, n=4) == ""
    assert _denied(cluster, n=6) == f"Limit {cluster.label}-five"
    assert _denied(cluster, n=8) == f"Limit {cluster.label}-five", "the first by name is reported"


@pytest.mark.parametrize(
    ("what", "reference", "spec", "denied"),
    [
        ("not there", {"name": "missing"}, {}, NOT_FOUND),
        ("not there, which is allowed", {"name": "missing", "parameterNotFoundAction": "Allow"}, {}, ""),
        ("not there, but errors are ignored", {"name": "missing"}, {"failurePolicy": "Ignore"}, ""),
        ("none selected", {"selector": {"matchLabels": {"x": "y"}}}, {}, NOT_FOUND),
        ("in another namespace", {"name": "missing", "namespace": "kube-system"}, {}, NOT_FOUND),
        ("of no namespace", {"name": "default"}, {"paramKind": {"apiVersion": "v1", "kind": "Namespace"}}, "failed expression: params == null"),
        ("of no namespace, with one", {"name": "default", "namespace": "x"}, {"paramKind": {"apiVersion": "v1", "kind": "Namespace"}},
         "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"),
        ("of an unknown kind", {"name": "a"}, {"paramKind": {"apiVersion": "void.example.com/v1", "kind": "Void"}},
         "failed to configure policy: failed to find resource referenced by paramKind: 'void.example.com/v1, Kind=Void'"),
        ("of an unknown kind, but errors are ignored", {"name": "a"},
         {"paramKind": {"apiVersion": "void.example.com/v1", "kind": "Void"}, "failurePolicy": "Ignore"}, ""),
    ],
)  # fmt: skip
def test_params_that_are(cluster: Cluster, what: str, reference: Object, spec: Object, denied: str) -> None:
    cluster.policy({"expression": "params == null"}, binding=_reference(**reference), **{"paramKind": LIMIT, **spec})
    assert _denied(cluster, n=1) == denied, what


def test_params_without_reference_are_null(cluster: Cluster) -> None:
    cluster.policy({"expression": "params == null"}, paramKind=LIMIT)
    assert _denied(cluster, n=1) == ""


def test_an_error_of_configuration_denies_whatever_the_binding_says(cluster: Cluster) -> None:
    binding = {"validationActions": ["Warn"], **_reference(name="missing")}
    cluster.policy({"expression": "true"}, binding=binding, paramKind=LIMIT)
    assert _denied(cluster, n=1) == NOT_FOUND


# Expressions of policies, when they are written


def test_what_does_not_compile_is_refused_in_strict_mode_and_warned_of_otherwise(cluster: Cluster) -> None:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": cluster.label},
        "spec": {
            "matchConstraints": {"resourceRules": [ANYTHING]},
            "variables": [{"name": "v", "expression": "1"}],
            "validations": [{"expression": "variables.v == 'x'"}, {"expression": "params.x"}, {"expression": "true"}],
        },
    }
    refused = cluster.client.send("POST", f"{POLICIES}?fieldValidation=Strict", body)
    assert (refused.code, [cause["field"] for cause in refused.body["details"]["causes"]]) == (
        422, ["spec.validations[0].expression", "spec.validations[1].expression"],
    )  # fmt: skip
    assert refused.body["details"]["causes"][0]["message"] == (
        "Invalid value: \"variables.v == 'x'\": compilation failed: ERROR: <input>:1:13: found no matching overload for "
        "'_==_' applied to '(int, string)'\n | variables.v == 'x'\n | ............^"
    )
    assert cluster.client.send("POST", f"{POLICIES}?fieldValidation=Warn", body).code == 201
    cluster.client.send("DELETE", f"{POLICIES}/{cluster.label}")


def test_policies_do_not_validate_policies_and_bindings(cluster: Cluster) -> None:
    everything = {
        "operations": ["*"],
        "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["*"],
        "resources": ["*"],
    }
    cluster.policy({"expression": "false"}, match={"resourceRules": [everything], "objectSelector": {}})
    cluster.policy({"expression": "true"})


def test_definitions_are_validated_like_any_object(cluster: Cluster) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "resources": ["customresourcedefinitions"]}  # fmt: skip
    cluster.policy(
        {"expression": "object.spec.versions.all(v, v.served)", "messageExpression": "request.kind.kind"},
        match={"resourceRules": [rule]},
    )
    version = {**CRD["spec"]["versions"][0], "served": False}
    names = {"plural": "gadgets", "kind": "Gadget"}
    metadata = {"name": "gadgets.policed.example.com", "labels": {"of": cluster.label}}
    body = {**CRD, "metadata": metadata, "spec": {**CRD["spec"], "names": names, "versions": [version]}}
    answer = cluster.client.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", body)
    assert str(answer.body["message"]).endswith("denied request: CustomResourceDefinition")


def test_policies_validate_webhook_configurations(cluster: Cluster) -> None:
    kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["v1"],
        "resources": kinds,
    }
    cluster.policy(
        {
            "expression": "object.webhooks.all(w, w.failurePolicy == 'Ignore')",
            "message": "webhooks must not be in the way",
        },
        match={"resourceRules": [rule]},
    )
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    version, metadata = "admissionregistration.k8s.io/v1", {"name": cluster.label, "labels": {"of": cluster.label}}
    body = {"apiVersion": version, "kind": "ValidatingWebhookConfiguration", "metadata": metadata, "webhooks": [hook]}
    answer = cluster.client.send("POST", f"/apis/{version}/validatingwebhookconfigurations", body)
    assert str(answer.body["message"]).endswith("denied request: webhooks must not be in the way")
