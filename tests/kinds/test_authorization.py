"""Reviews and tokens: resources that are never stored."""

from __future__ import annotations

import pytest

from noxu.go.structs import decode
from noxu.kinds.authorization import TOKEN_REQUEST, default_token_request, validate_token_request
from noxu.kinds.kind import VIRTUAL_VERBS, Context
from noxu.kinds.scheme import by_group_kind, served
from noxu.values import Object
from tests.rows import rows


def errors(kind: str, spec: Object, metadata: Object | None = None) -> list[str]:
    found = by_group_kind()["authorization.k8s.io/v1", kind]
    decoded = decode(found.struct, {"metadata": metadata or {}, "spec": spec})
    assert (decoded.error, decoded.unknown) == ("", [])
    return [str(error) for error in found.validate(decoded.value, None, Context())]


RESOURCE: Object = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
PATH: Object = {"nonResourceAttributes": {"path": "/x", "verb": "get"}}
WHO: Object = {"user": "me"}
SHOWN = 'Invalid value: {"Path":"/x","Verb":"get"}'
NEITHER = (
    "spec.resourceAttributes: Invalid value: null: "
    "exactly one of nonResourceAttributes or resourceAttributes must be specified"
)
NOBODY = 'spec.user: Invalid value: "": at least one of user or group must be specified'


def selecting(name: str, selector: Object) -> Object:
    return {"resourceAttributes": {name: selector}}


KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
IN = "must be specified when `operator` is 'In' or 'NotIn'"
EXISTS = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
OWN_REVIEWS: list[tuple[str, Object, list[str]]] = [
    ("a resource", RESOURCE, []),
    ("a path", PATH, []),
    ("both", {**RESOURCE, **PATH}, [f"spec.nonResourceAttributes: {SHOWN}: cannot be specified in combination with resourceAttributes"]),
    ("neither", {}, [NEITHER]),
    ("an empty resource is one", {"resourceAttributes": {}}, []),
    ("a raw selector", selecting("fieldSelector", {"rawSelector": "a=b"}), []),
    ("an empty selector", selecting("labelSelector", {}), [
        "spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
    ]),
    ("a selector given twice", selecting("fieldSelector", {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}), [
        'spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements',
    ]),
    ("unknown operators", selecting("labelSelector", {"requirements": [{"key": "a", "operator": "Near"}]}), []),
    ("a field requirement without its parts", selecting("fieldSelector", {"requirements": [{"operator": "In"}]}), [
        "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified",
        f"spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: {IN}",
    ]),
    ("a label requirement with bad parts", selecting("labelSelector", {"requirements": [{"key": "a!", "operator": "Exists", "values": ["b"]}]}), [
        f"spec.resourceAttributes.labelSelector.requirements[0].values: Forbidden: {EXISTS}",
        f'spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: "a!": {KEY_RULE}',
    ]),
]  # fmt: skip


@rows(("spec", "messages"), [row[1:] for row in OWN_REVIEWS], ids=[row[0] for row in OWN_REVIEWS])
def test_questions_about_oneself(spec: Object, messages: list[str]) -> None:
    assert errors("SelfSubjectAccessReview", spec) == messages


REVIEWS: list[tuple[str, Object, list[str]]] = [
    ("a user", {**RESOURCE, **WHO}, []),
    ("a group", {**PATH, "groups": ["g"]}, []),
    ("no user", RESOURCE, [NOBODY]),
    ("nothing at all", {}, [NEITHER, NOBODY]),
]


@pytest.mark.parametrize(("spec", "messages"), [row[1:] for row in REVIEWS], ids=[row[0] for row in REVIEWS])
def test_subject_access_reviews(spec: Object, messages: list[str]) -> None:
    assert errors("SubjectAccessReview", spec) == messages


def in_namespace(namespace: str) -> Object:
    return {"resourceAttributes": {"namespace": namespace}, **WHO}


LOCAL_REVIEWS: list[tuple[str, Object, list[str]]] = [
    ("about its namespace", in_namespace("x"), []),
    ("about another one", in_namespace("y"), ['spec.resourceAttributes.namespace: Invalid value: "y": must match metadata.namespace']),
    ("about a path", {**PATH, **WHO}, [f"spec.nonResourceAttributes: {SHOWN}: disallowed on this kind of request"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "messages"), [row[1:] for row in LOCAL_REVIEWS], ids=[row[0] for row in LOCAL_REVIEWS]
)
def test_questions_in_a_namespace(spec: Object, messages: list[str]) -> None:
    assert errors("LocalSubjectAccessReview", spec, {"namespace": "x"}) == messages


def test_a_question_has_no_metadata() -> None:
    assert errors("SelfSubjectAccessReview", RESOURCE, {"name": "n"}) == [
        'metadata: Invalid value: {"name":"n"}: must be empty'
    ]
    assert errors("SubjectAccessReview", {**RESOURCE, **WHO}, {"namespace": "x"}) == [
        'metadata: Invalid value: {"namespace":"x"}: must be empty'
    ]
    assert errors("LocalSubjectAccessReview", in_namespace("x"), {"namespace": "x", "labels": {"a": "b"}}) == [
        'metadata: Invalid value: {"namespace":"x","labels":{"a":"b"}}: must be empty except for namespace'
    ]
    managed = {"managedFields": [{"manager": "m"}]}
    assert errors("SelfSubjectAccessReview", RESOURCE, managed) == []


def test_questions_about_rules_are_never_wrong() -> None:
    assert errors("SelfSubjectRulesReview", {"namespace": "x"}, {"name": "n"}) == []


def test_questions_are_only_created() -> None:
    virtual = {kind.plural: kind for kind in served() if not kind.stored and kind.kind != "Binding"}
    assert sorted(virtual) == [
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    ]
    assert {kind.verbs for kind in virtual.values()} == {VIRTUAL_VERBS}
    assert [name for name, kind in virtual.items() if kind.namespaced] == ["localsubjectaccessreviews"]


# Tokens

WEBHOOK: Object = {
    "kind": "ValidatingWebhookConfiguration",
    "apiVersion": "admissionregistration.k8s.io/v1",
    "name": "w",
}
FEW = "may not specify a duration less than 10 minutes"
MANY = "may not specify a duration larger than 2^32 seconds"
ONE = "webhook bound requests require exactly one admissionReviewAPIGroups attestation"


def attested(**attestations: list[str]) -> Object:
    return {"boundObjectRef": WEBHOOK, "audiences": ["a"], "attestations": attestations}


TOKENS: list[tuple[str, Object, list[str]]] = [
    ("an hour by default", {}, []),
    ("ten minutes", {"expirationSeconds": 600}, []),
    ("too short", {"expirationSeconds": 599}, [f"spec.expirationSeconds: Invalid value: 599: {FEW}"]),
    ("too long", {"expirationSeconds": 2**32 + 1}, [f"spec.expirationSeconds: Invalid value: 4294967297: {MANY}"]),
    ("bound to a pod", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1"}, "audiences": ["a", "b"]}, []),
    ("attested without a webhook", {"attestations": {"a": ["b"]}}, [
        'spec.attestations: Invalid value: {"a":["b"]}: attestations may only be specified with a webhook bound object reference',
    ]),
    ("bound to a webhook", attested(admissionReviewAPIGroups=["apps"]), []),
    ("for all groups", attested(admissionReviewAPIGroups=["*"]), []),
    ("without an audience", {**attested(admissionReviewAPIGroups=["*"]), "audiences": []}, [
        "spec.audiences: Invalid value: []: must be length 1 when bound to a webhook config",
    ]),
    ("not attested", attested(), [f"spec.attestations: Invalid value: null: {ONE}"]),
    ("attested with something else", attested(other=["x"]), ['spec.attestations[other]: Unsupported value: "other": supported values: "admissionReviewAPIGroups"']),
    ("for two groups", attested(admissionReviewAPIGroups=["a", "b"]), ['spec.attestations[admissionReviewAPIGroups]: Invalid value: ["a","b"]: must specify a single value']),
    ("for the core group", attested(admissionReviewAPIGroups=[""]), ['spec.attestations[admissionReviewAPIGroups][0]: Invalid value: "": may not be an empty string']),
    ("for what is no group", attested(admissionReviewAPIGroups=["A"]), [
        "spec.attestations[admissionReviewAPIGroups][0]: Invalid value: \"A\": must specify a valid API Group: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ]),
]  # fmt: skip


@rows(("spec", "messages"), [row[1:] for row in TOKENS], ids=[row[0] for row in TOKENS])
def test_requests_for_tokens(spec: Object, messages: list[str]) -> None:
    request = decode(TOKEN_REQUEST, {"spec": spec}).value
    default_token_request(request)
    assert [str(error) for error in validate_token_request(request)] == messages


def test_a_token_lasts_an_hour_by_default() -> None:
    request = decode(TOKEN_REQUEST, {}).value
    default_token_request(request)
    assert request["spec"]["expirationSeconds"] == 3600
