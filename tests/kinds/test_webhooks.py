"""Webhook configurations: defaults, rules, clients, match conditions, and values that an update may keep."""

from __future__ import annotations

import pytest

from noxu.go.structs import decode
from noxu.kinds.kind import Context, Kind, Use, prepare, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

API = "admissionregistration.k8s.io/v1"
MUTATING = by_group_kind()[API, "MutatingWebhookConfiguration"]
VALIDATING = by_group_kind()[API, "ValidatingWebhookConfiguration"]
BOTH = pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])

RULE: Object = {"operations": ["CREATE"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["as"]}
HOOK: Object = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://example.com/x"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


def typed(kind: Kind, *hooks: Object, name: str = "x") -> Object:
    decoded = decode(kind.struct, {"metadata": {"name": name}, "webhooks": list(hooks)})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    kind.default(value)
    return value


def errors(
    hooks: list[Object],
    old: list[Object] | None = None,
    *,
    kind: Kind = MUTATING,
    context: Context = Context(),  # noqa: B008
) -> list[str]:
    before = None if old is None else typed(kind, *old)
    return [str(error) for error in kind.validate(typed(kind, *hooks), before, context)]


# Defaults


def test_defaults_of_a_mutating_hook() -> None:
    hook = {"name": "a.b.c", "rules": [{}], "clientConfig": {"service": {"name": "s", "namespace": "n"}}}
    (found,) = written(MUTATING, typed(MUTATING, hook))["webhooks"]
    expected = {
        "name": "a.b.c",
        "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 443}},
        "rules": [{"scope": "*"}],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": None,
        "timeoutSeconds": 10,
        "admissionReviewVersions": None,
        "reinvocationPolicy": "Never",
    }
    assert found == expected
    assert list(found) == list(expected)


def test_a_validating_hook_is_not_reinvoked() -> None:
    (found,) = typed(VALIDATING, {"name": "a.b.c"})["webhooks"]
    assert "reinvocationPolicy" not in found
    assert found["timeoutSeconds"] == 10


@BOTH
def test_fields_that_are_set_are_not_defaulted(kind: Kind) -> None:
    hook = {
        "name": "a.b.c",
        "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 1}},
        "rules": [{"scope": "Cluster"}],
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {"matchLabels": {"a": "b"}},
        "timeoutSeconds": 0,
    }
    (found,) = typed(kind, hook)["webhooks"]
    assert hook.items() <= found.items()


@BOTH
def test_a_configuration_without_hooks_is_all_right(kind: Kind) -> None:
    value = typed(kind)
    assert written(kind, value) == {"metadata": {"name": "x"}}
    assert kind.validate(value, None, Context()) == []


# One hook

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
FORM = "; desired format: https://host[/path]"
URL = "webhooks[0].clientConfig.url"
SERVICE = "webhooks[0].clientConfig.service"
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def reached(**config: object) -> Object:
    return {"clientConfig": config}


def at(url: str) -> Object:
    return reached(url=url)


def serviced(**more: object) -> Object:
    return reached(service={"name": "s", "namespace": "n", **more})


HOOKS: list[tuple[str, Object, list[str]]] = [
    ("a good one", {}, []),
    ("no name", {"name": ""}, ["webhooks[0].name: Required value"]),
    ("a short name", {"name": "a.b"}, ['webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots']),
    ("a bad name", {"name": "A.b.c"}, [f'webhooks[0].name: Invalid value: "A.b.c": {SUBDOMAIN}']),
    ("an unknown failure policy", {"failurePolicy": "Retry"}, ['webhooks[0].failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"']),
    ("an unknown match policy", {"matchPolicy": "Some"}, ['webhooks[0].matchPolicy: Unsupported value: "Some": supported values: "Equivalent", "Exact"']),
    ("an unknown reinvocation policy", {"reinvocationPolicy": "Always"}, ['webhooks[0].reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", "Never"']),
    ("side effects not set", {"sideEffects": None}, ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
    ("side effects", {"sideEffects": "Some"}, ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"']),
    ("no side effects on dry run", {"sideEffects": "NoneOnDryRun"}, []),
    ("a timeout of 0", {"timeoutSeconds": 0}, ["webhooks[0].timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"]),
    ("a timeout above the limit", {"timeoutSeconds": 31}, ["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"]),
    ("the longest timeout", {"timeoutSeconds": 30}, []),
    ("no review versions", {"admissionReviewVersions": []}, ["webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"]),
    ("only unknown review versions", {"admissionReviewVersions": ["v2"]}, ['webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1']),
    ("a duplicate review version", {"admissionReviewVersions": ["v1", "v1"]}, ['webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version']),
    ("a review version that is no name", {"admissionReviewVersions": ["v1", "1"]}, [
        "webhooks[0].admissionReviewVersions[1]: Invalid value: \"1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    ]),
    ("unknown review versions and a known one", {"admissionReviewVersions": ["v9", "v1beta1"]}, []),
    ("nowhere to be reached", reached(), ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]),
    ("two ways to be reached", reached(url="https://a.b", service={"name": "s", "namespace": "n"}), ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]),
    ("plain http to elsewhere", at("http://example.com"), [f"{URL}: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"]),
    ("plain http to this machine", at("http://127.0.0.1:8000/x"), []),
    ("plain http to this machine by name", at("http://localhost:8000"), []),
    ("plain http to this machine by IPv6", at("http://[::1]:8000/x"), []),
    ("plain http to a name that only begins like it", at("http://localhost.example.com"), [f"{URL}: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"]),
    ("plain http to this machine, with a query", at("http://localhost/x?y=z"), [f'{URL}: Invalid value: "y=z": query parameters are not permitted in the URL']),
    ("another scheme", at("ftp://localhost"), [f"{URL}: Invalid value: \"ftp\": 'https' is the only allowed URL scheme{FORM}"]),
    ("no host", at("https:///x"), [f'{URL}: Invalid value: "": host must be specified{FORM}']),
    ("a user", at("https://me@example.com"), [f'{URL}: Invalid value: "me": user information is not permitted in the URL']),
    ("a fragment", at("https://example.com#x"), [f'{URL}: Invalid value: "x": fragments are not permitted in the URL']),
    ("no URL at all", at("https://exa mple.com"), [f'{URL}: Required value: url must be a valid URL: parse "https://exa mple.com": invalid character " " in host name{FORM}']),
    ("a service", serviced(path="/a/b"), []),
    ("a service without its name, reported as by upstream", serviced(name=""), [f"{SERVICE}.namespace: Required value"]),
    ("a service without namespace, reported as by upstream", serviced(namespace=""), [f"{SERVICE}.name: Required value"]),
    ("a service at port 0", serviced(port=0), [f"{SERVICE}.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]),
    ("a service at a relative path", serviced(path="a"), [f"{SERVICE}.path: Invalid value: \"a\": must start with a '/'", f'{SERVICE}.path: Invalid value: "a": segment[0] may not be empty']),
    ("a service at a path with a hole", serviced(path="/a//b"), [f'{SERVICE}.path: Invalid value: "/a//b": segment[1] may not be empty']),
    ("a bad label in a selector", {"objectSelector": {"matchLabels": {"a!": "b"}}}, [f'webhooks[0].objectSelector.matchLabels: Invalid value: "a!": {QUALIFIED}']),
    ("a bad operator in a selector", {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, ['webhooks[0].namespaceSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator']),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in HOOKS], ids=[row[0] for row in HOOKS])
def test_webhooks_are_validated(change: Object, messages: list[str]) -> None:
    assert errors([{**HOOK, **change}]) == messages
    if "reinvocationPolicy" not in change:
        assert errors([{**HOOK, **change}], kind=VALIDATING) == messages


# Rules

RULES: list[tuple[str, Object, list[str]]] = [
    ("all of everything", {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, []),
    ("the core group", {"apiGroups": [""]}, []),
    ("nothing", {"operations": [], "apiGroups": [], "apiVersions": [], "resources": []}, [
        "operations: Required value",
        "apiGroups: Required value",
        "apiVersions: Required value",
        "resources: Required value",
    ]),
    ("an unknown operation", {"operations": ["CREATE", "create"]}, ['operations[1]: Unsupported value: "create": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"']),
    ("stars that are not alone", {"operations": ["*", "CREATE"], "apiGroups": ["a", "*"], "apiVersions": ["*", "v1"]}, [
        "operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
        "apiGroups: Invalid value: [\"a\",\"*\"]: if '*' is present, must not specify other API groups",
        "apiVersions: Invalid value: [\"*\",\"v1\"]: if '*' is present, must not specify other API versions",
    ]),
    ("an empty version", {"apiVersions": ["v1", ""]}, ["apiVersions[1]: Required value"]),
    ("an empty resource", {"resources": ["", "as"]}, ["resources[0]: Required value"]),
    ("resources and subresources", {"resources": ["as", "as/status", "*/scale"]}, []),
    ("a duplicate subresource", {"resources": ["as/*", "as/status"]}, ["resources[1]: Invalid value: \"as/status\": if 'as/*' is present, must not specify as/status"]),
    ("a duplicate subresource of all resources", {"resources": ["*/status", "as/status"]}, ["resources[1]: Invalid value: \"as/status\": if '*/status' is present, must not specify as/status"]),
    ("everything, and more", {"resources": ["*/*", "as"]}, ["resources: Invalid value: [\"*/*\",\"as\"]: if '*/*' is present, must not specify other resources"]),
    ("all resources, and one more", {"resources": ["*", "as"]}, ["resources: Invalid value: [\"*\",\"as\"]: if '*' is present, must not specify other resources without subresources"]),
    ("all resources, and one more in front: upstream forgets it", {"resources": ["as", "*"]}, []),
    ("all resources, and a subresource", {"resources": ["*", "as/status"]}, []),
    ("an unknown scope", {"scope": "All"}, ['scope: Unsupported value: "All": supported values: "*", "Cluster", "Namespaced"']),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules_are_validated(change: Object, messages: list[str]) -> None:
    found = errors([{**HOOK, "rules": [RULE, {**RULE, **change}]}])
    assert found == [f"webhooks[0].rules[1].{message}" for message in messages]


# Match conditions


def condition(name: str = "one", expression: str = "true") -> Object:
    return {"name": name, "expression": expression}


CONDITIONS: list[tuple[str, list[Object], list[str]]] = [
    ("two", [condition("one"), condition("a.b/two")], []),
    ("one without anything", [condition("", " ")], ["[0].expression: Required value", "[0].name: Required value"]),
    ("a name twice", [condition(), condition("two"), condition()], ['[2].name: Duplicate value: "one"']),
    ("a bad name", [condition("a b")], [f'[0].name: Invalid value: "a b": {QUALIFIED}']),
    ("too many", [condition(f"c{n}") for n in range(65)], [": Too many: 65: must have at most 64 items"]),
    ("as many as may be", [condition(f"c{n}") for n in range(64)], []),
    ("one that does not compile", [condition(expression=" bad ")], ['[0].expression: Invalid value: "bad": no']),
]


def refuse_bad(expression: str, use: Use) -> str:
    return "no" if "bad" in expression and not use.stored else ""


@pytest.mark.parametrize(("given", "messages"), [row[1:] for row in CONDITIONS], ids=[row[0] for row in CONDITIONS])
def test_match_conditions_are_validated(given: list[Object], messages: list[str]) -> None:
    found = errors([{**HOOK, "matchConditions": given}], context=Context(check=refuse_bad))
    assert found == [f"webhooks[0].matchConditions{message}" for message in messages]


def test_variables_in_a_match_condition() -> None:
    uses: list[tuple[str, Use]] = []

    def note(expression: str, use: Use) -> str:
        uses.append((expression, use))
        return ""

    errors([{**HOOK, "matchConditions": [condition(expression=" a ")]}], context=Context(check=note))
    assert uses == [("a", Use("bool", params=False, authorizer=True, variables=(), stored=False))]


# Several hooks and updates


def test_names_are_unique() -> None:
    again = {**HOOK, "name": "d.e.f"}
    assert errors([HOOK, again, HOOK]) == ['webhooks[2].name: Duplicate value: "a.b.c"']


def test_names_of_hooks_that_have_none_are_not_compared() -> None:
    nameless = {**HOOK, "name": ""}
    assert errors([nameless, nameless]) == ["webhooks[0].name: Required value", "webhooks[1].name: Required value"]


LENIENT: list[tuple[str, list[Object], list[Object], list[str]]] = [
    ("side effects, as before", [{**HOOK, "sideEffects": "Some"}], [{**HOOK, "sideEffects": "Unknown"}], []),
    ("side effects that are still unknown to us", [{**HOOK, "sideEffects": "X"}], [{**HOOK, "sideEffects": "Some"}], [
        'webhooks[0].sideEffects: Unsupported value: "X": supported values: "None", "NoneOnDryRun", "Some", "Unknown"',
    ]),
    ("new side effects", [{**HOOK, "sideEffects": "Some"}], [HOOK], [
        'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ]),
    ("unknown review versions, as before", [{**HOOK, "admissionReviewVersions": ["v2"]}], [{**HOOK, "admissionReviewVersions": ["v3"]}], []),
    ("names twice, as before", [HOOK, HOOK], [HOOK, HOOK], []),
    ("names twice, not before", [HOOK, HOOK], [HOOK], ['webhooks[1].name: Duplicate value: "a.b.c"']),
    ("a bad label value, as before", [{**HOOK, "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b!"]}]}}], [{**HOOK, "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["c!"]}]}}], []),
    ("the same bad conditions", [{**HOOK, "matchConditions": [condition("a b", "bad")]}], [{**HOOK, "matchConditions": [condition("a b", "bad")]}], []),
    ("other conditions with the same bad expression", [{**HOOK, "matchConditions": [condition("new", "bad")]}], [{**HOOK, "matchConditions": [condition("old", "bad")]}], []),
    ("other conditions with another bad expression", [{**HOOK, "matchConditions": [condition("new", "bad2")]}], [{**HOOK, "matchConditions": [condition("old", "bad")]}], ['webhooks[0].matchConditions[0].expression: Invalid value: "bad2": no']),
    ("conditions of one hook more", [{**HOOK, "matchConditions": [condition("a b")]}, {**HOOK, "name": "d.e.f"}], [{**HOOK, "matchConditions": [condition("a b")]}], [f'webhooks[0].matchConditions[0].name: Invalid value: "a b": {QUALIFIED}']),
]  # fmt: skip


@rows(("new", "old", "messages"), [row[1:] for row in LENIENT], ids=[row[0] for row in LENIENT])
def test_updates_may_keep_values_accepted_before(new: list[Object], old: list[Object], messages: list[str]) -> None:
    assert errors(new, old, context=Context(check=refuse_bad)) == messages


def test_names_for_files_cannot_be_created() -> None:
    value = typed(MUTATING, name="x.static.k8s.io")
    messages = (
        'metadata.name: Invalid value: "x.static.k8s.io": names ending with ".static.k8s.io" are reserved for static '
        "manifest-based configurations and cannot be managed via the API"
    )
    assert [str(error) for error in MUTATING.validate(value, None, Context())] == [messages]
    assert MUTATING.validate(value, value, Context()) == []


@BOTH
def test_generations_count_changes_of_the_hooks(kind: Kind) -> None:
    old = typed(kind, HOOK)
    prepare(kind, old, None)
    assert old["metadata"]["generation"] == 1
    same = typed(kind, HOOK)
    same["metadata"]["labels"] = {"a": "b"}
    prepare(kind, same, old)
    assert same["metadata"]["generation"] == 1
    changed = typed(kind, {**HOOK, "timeoutSeconds": 5})
    prepare(kind, changed, old)
    assert changed["metadata"]["generation"] == 2


@BOTH
def test_properties_of_the_configuration_kinds(kind: Kind) -> None:
    assert (kind.namespaced, kind.categories, kind.has_status) == (False, ("api-extensions",), False)
    assert (kind.unconditional_update, kind.create_on_update) == (False, False)
