"""Conditions of CRDs: NamesAccepted, Established, KubernetesAPIApprovalPolicyConformant, Terminating."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from noxu.crd import conditions
from noxu.crd.conditions import AcceptedNames, Condition, Naming, names_conditions
from noxu.values import Json, Object
from tests.rows import rows

THEN, NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
NONE = {"plural": "", "kind": ""}


def named(
    plural: str = "foos",
    kind: str = "Foo",
    *,
    accepted: Object | None = None,
    established: str = "",
    group: str = "g.io",
    **more: Json,
) -> Object:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List", **more}
    conditions_: list[Object] | None = None
    if established:
        conditions_ = [
            {"type": "Established", "status": established, "lastTransitionTime": THEN, "reason": "R", "message": "M"}
        ]
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "versions": []},
        "status": {"conditions": conditions_, "acceptedNames": accepted or NONE, "storedVersions": []},
    }


def granted(plural: str = "foos", kind: str = "Foo", **more: Json) -> Object:
    crd = named(plural, kind, **more)
    return {**crd, "status": {**crd["status"], "acceptedNames": crd["spec"]["names"]}}


# -- setting conditions -----------------------------------------------------------------------------------------------

SETTING: list[tuple[str, list[Object] | None, Condition, list[Object]]] = [
    (
        "the first",
        None,
        Condition("A", "True", "R", "M"),
        [{"type": "A", "status": "True", "lastTransitionTime": NOW, "reason": "R", "message": "M"}],
    ),
    (
        "a new one comes last",
        [{"type": "B", "status": "True", "lastTransitionTime": THEN}],
        Condition("A", "False", "", ""),
        [{"type": "B", "status": "True", "lastTransitionTime": THEN}, {"type": "A", "status": "False", "lastTransitionTime": NOW}],
    ),
    (
        "another status is a transition, in the same place",
        [{"type": "A", "status": "True", "lastTransitionTime": THEN}, {"type": "B", "status": "True", "lastTransitionTime": THEN}],
        Condition("A", "False", "R", "M"),
        [{"type": "A", "status": "False", "lastTransitionTime": NOW, "reason": "R", "message": "M"}, {"type": "B", "status": "True", "lastTransitionTime": THEN}],
    ),
    (
        "another reason is none",
        [{"type": "A", "status": "True", "lastTransitionTime": THEN, "reason": "R", "message": "M", "observedGeneration": 3}],
        Condition("A", "True", "S", ""),
        [{"type": "A", "status": "True", "lastTransitionTime": THEN, "reason": "S", "observedGeneration": 3}],
    ),
    (
        "a time that was missing is filled in",
        [{"type": "A", "status": "True", "lastTransitionTime": None}],
        Condition("A", "True", "", ""),
        [{"type": "A", "status": "True", "lastTransitionTime": NOW}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "condition", "after"), [row[1:] for row in SETTING], ids=[row[0] for row in SETTING]
)
def test_setting_a_condition(before: list[Object] | None, condition: Condition, after: list[Object]) -> None:
    crd = {"status": {"conditions": before}}
    text = json.dumps(before)
    conditions.set_condition(crd, condition, NOW)
    assert json.dumps(crd["status"]["conditions"]) == json.dumps(after)
    assert json.dumps(before) == text
    assert conditions.is_set(crd, condition)
    assert not conditions.is_set(crd, condition._replace(message="other"))


def test_conditions_are_found_by_type() -> None:
    crd = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]}}
    assert conditions.find(crd, "A") == {"type": "A", "status": "False"}
    assert conditions.find(crd, "C") is None
    assert [conditions.is_true(crd, name) for name in "ABC"] == [False, True, False]
    assert not conditions.is_true({"status": {"conditions": None}}, "A")


# -- names ------------------------------------------------------------------------------------------------------------

NO_CONFLICT = Condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
INSTALLING = Condition("Established", "False", "Installing", "the initial names have been accepted")
NOT_ACCEPTED = Condition("Established", "False", "NotAccepted", "not all names are accepted")


def conflict(reason: str, message: str) -> Condition:
    return Condition("NamesAccepted", "False", reason, message)


NAMES: list[tuple[str, Object, list[Object], Object, Condition]] = [
    (
        "no other CRD",
        named(shortNames=["f"], categories=["all"]),
        [],
        {"plural": "foos", "singular": "foo", "shortNames": ["f"], "kind": "Foo", "listKind": "FooList", "categories": ["all"]},
        NO_CONFLICT,
    ),
    (
        "others have other names",
        named(),
        [granted("bars", "Bar", shortNames=["f"])],
        {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        NO_CONFLICT,
    ),
    (
        "another resource has the plural as a short name",
        named(),
        [granted("bars", "Bar", shortNames=["foos"])],
        {"plural": "", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        conflict("PluralConflict", '"foos" is already in use'),
    ),
    (
        "another resource has the singular",
        named(),
        [granted("foo", "Bar")],
        {"plural": "foos", "kind": "Foo", "listKind": "FooList"},
        conflict("SingularConflict", '"foo" is already in use'),
    ),
    (
        "short names are all reported",
        named(shortNames=["a", "b", "c"]),
        [granted("bars", "Bar", shortNames=["a", "c"])],
        {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        conflict("ShortNamesConflict", '["a" is already in use, "c" is already in use]'),
    ),
    (
        "kinds are among themselves",
        named(kind="bars", singular="foo"),
        [granted("bars", "Bar")],
        {"plural": "foos", "singular": "foo", "kind": "bars", "listKind": "barsList"},
        NO_CONFLICT,
    ),
    (
        "of several conflicts the last one is reported",
        named(),
        [granted("foos", "Foo")],
        {"plural": "", "kind": ""},
        conflict("ListKindConflict", '"FooList" is already in use'),
    ),
    (
        "a kind that is another's list kind",
        named(kind="FooList", listKind="X"),
        [granted("bars", "Foo")],
        {"plural": "foos", "singular": "foolist", "kind": "", "listKind": "X"},
        conflict("KindConflict", '"FooList" is already in use'),
    ),
    (
        "names that were granted stay granted",
        named(accepted={"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}),
        [granted("bars", "Bar", shortNames=["foos"])],
        {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        NO_CONFLICT,
    ),
    (
        "short names that are ours already are no conflict",
        named(accepted={"plural": "foos", "shortNames": ["a"], "kind": "Foo"}, shortNames=["a", "b"]),
        [],
        {"plural": "foos", "singular": "foo", "shortNames": ["a", "b"], "kind": "Foo", "listKind": "FooList"},
        NO_CONFLICT,
    ),
    (
        "one's own other names are taken, too",
        named(accepted={"plural": "foos", "kind": "Foo"}, singular="foos"),
        [],
        {"plural": "foos", "kind": "Foo", "listKind": "FooList"},
        conflict("SingularConflict", '"foos" is already in use'),
    ),
    (
        "categories are never refused",
        named(categories=["c"]),
        [granted("foos", "Foo", categories=["c"])],
        {"plural": "", "kind": "", "categories": ["c"]},
        conflict("ListKindConflict", '"FooList" is already in use'),
    ),
]  # fmt: skip


@rows(("crd", "others", "accepted", "condition"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_names(crd: Object, others: list[Object], accepted: Object, condition: Condition) -> None:
    before = json.dumps(crd)
    naming = names_conditions(crd, AcceptedNames(others))
    assert json.dumps(naming.accepted) == json.dumps(accepted)
    assert naming.names_accepted == condition
    assert naming.established == (INSTALLING if condition is NO_CONFLICT else NOT_ACCEPTED)
    assert names_conditions(crd, AcceptedNames([crd, *others])) == naming
    assert json.dumps(crd) == before


OTHER = [granted("foos", "Foo")]
KEPT = Condition("Established", "True", "R", "M")
ESTABLISHING: list[tuple[str, str, list[Object], Condition]] = [
    ("accepted for the first time", "", [], INSTALLING),
    ("accepted after a conflict", "False", [], INSTALLING),
    ("accepted again", "True", [], KEPT),
    ("in conflict from the start", "", OTHER, NOT_ACCEPTED),
    ("still in conflict", "False", OTHER, KEPT._replace(status="False")),
    ("in conflict later on", "True", OTHER, KEPT),
]


@pytest.mark.parametrize(
    ("status", "others", "condition"), [row[1:] for row in ESTABLISHING], ids=[row[0] for row in ESTABLISHING]
)
def test_establishing(status: str, others: list[Object], condition: Condition) -> None:
    naming: Naming = names_conditions(named(established=status), AcceptedNames(others))
    assert naming.established == condition


def test_established_unless_the_ca_bundle_is_unreadable(build: Callable[..., Object]) -> None:
    fine = Condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    assert conditions.established(build()) == fine
    webhook: Object = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h"}}}
    assert conditions.established(build(conversion=webhook)) == fine
    webhook["webhook"]["clientConfig"]["caBundle"] = "Zm9v"
    assert conditions.established(build(conversion=webhook)) == Condition(
        "Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
    )


# -- approval ---------------------------------------------------------------------------------------------------------

REQUIRED = 'protected groups must have approval annotation "api-approved.kubernetes.io"'
SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
APPROVALS: list[tuple[str, str, str | None, tuple[str, str, str] | None]] = [
    ("one's own group", "example.com", None, None),
    ("experiments of the community", "gateway.networking.x-k8s.io", None, None),
    ("a name that only ends like it", "myk8s.io", None, None),
    ("missing", "a.k8s.io", None, ("False", "MissingAnnotation", f"{REQUIRED}, {SEE}")),
    ("empty", "k8s.io", "", ("False", "MissingAnnotation", f"{REQUIRED}, {SEE}")),
    ("a link", "kubernetes.io", "https://x.y/z", ("True", "ApprovedAnnotation", "approved in https://x.y/z")),
    ("not approved", "a.kubernetes.io", "unapproved: x", ("False", "UnapprovedAnnotation", 'not approved: "unapproved: x"')),
    ("a path", "k8s.io", "/x", ("False", "InvalidAnnotation", f'{REQUIRED} with either a URL or a reason starting with "unapproved", {SEE}')),
    ("a link without a host", "k8s.io", "https:///x", ("False", "InvalidAnnotation", f'{REQUIRED} with either a URL or a reason starting with "unapproved", {SEE}')),
    ("words", "k8s.io", "yes", ("False", "InvalidAnnotation", f'{REQUIRED} with either a URL or a reason starting with "unapproved", {SEE}')),
]  # fmt: skip


@rows(("group", "text", "messages"), [row[1:] for row in APPROVALS], ids=[row[0] for row in APPROVALS])
def test_approval(group: str, text: str | None, messages: tuple[str, str, str] | None) -> None:
    crd = named(group=group)
    if text is not None:
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": text}
    expected = None if messages is None else Condition("KubernetesAPIApprovalPolicyConformant", *messages)
    assert conditions.approved(crd) == expected


def test_deletion() -> None:
    assert conditions.DELETION_PENDING.reason == "InstanceDeletionPending"
    assert (
        Condition("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        == conditions.DELETION_IN_PROGRESS
    )
    assert conditions.DELETION_COMPLETED.status == conditions.NEVER_ESTABLISHED.status == "False"
    assert conditions.deletion_failed("x").message == "could not issue all deletes: x"
