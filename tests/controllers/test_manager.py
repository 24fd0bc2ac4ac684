"""`--controllers` and profiles: which controllers of kube-controller-manager run."""

from __future__ import annotations

import pytest

from noxu.controllers import manager
from noxu.controllers.constructors import MAKERS
from noxu.controllers.manager import AVAILABLE, CONTROLLERS, check_controllers, check_profile, enabled
from tests.rows import rows

NAMESPACES, ACCOUNTS, ROOT_CA, POLICIES = (
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "validatingadmissionpolicy-status-controller",
)
SELECTIONS: list[tuple[str, list[str], set[str]]] = [
    ("all", ["*"], {NAMESPACES, ACCOUNTS, ROOT_CA, POLICIES}),
    ("an empty list", [], set()),
    ("one", [NAMESPACES], {NAMESPACES}),
    ("all except one", ["*", f"-{NAMESPACES}"], {ACCOUNTS, ROOT_CA, POLICIES}),
    ("the order does not matter", [f"-{NAMESPACES}", "*"], {ACCOUNTS, ROOT_CA, POLICIES}),
    ("without * only what is named", [f"-{NAMESPACES}", ACCOUNTS], {ACCOUNTS}),
    ("the first item decides: enabled", [NAMESPACES, f"-{NAMESPACES}"], {NAMESPACES}),
    ("the first item decides: disabled", ["*", f"-{NAMESPACES}", NAMESPACES], {ACCOUNTS, ROOT_CA, POLICIES}),
    ("older names", ["namespace", "-serviceaccount", "root-ca-cert-publisher"], {NAMESPACES, ROOT_CA}),
    ("an older name hides the newer one", ["-namespace", NAMESPACES], set()),
    ("controllers that are missing here are not enabled", ["*", "-job-controller"], set(AVAILABLE)),
]


@rows(("items", "names"), [row[1:] for row in SELECTIONS], ids=[row[0] for row in SELECTIONS])
def test_a_list_enables(items: list[str], names: set[str]) -> None:
    check_controllers(items)
    assert {known.name for known in enabled(items)} & {NAMESPACES, ACCOUNTS, ROOT_CA, POLICIES} == names & {
        NAMESPACES,
        ACCOUNTS,
        ROOT_CA,
        POLICIES,
    }


UNKNOWN = "is not in the list of known controllers"
REFUSED: list[tuple[str, list[str], str]] = [
    ("an unknown name", ["nope"], f'"nope" {UNKNOWN}'),
    ("an unknown name to disable", ["*", "-nope"], f'"nope" {UNKNOWN}'),
    ("a misspelt name", ["namespace-controler"], f'"namespace-controler" {UNKNOWN}; did you mean namespace-controller?'),
    ("blanks are part of a name", ["*", " namespace"], f'" namespace" {UNKNOWN}; did you mean namespace?'),
    ("a doubled sign", ["--namespace"], f'"-namespace" {UNKNOWN}; did you mean namespace?'),
    ("several", ["a", "-b"], f'["a" {UNKNOWN}, "b" {UNKNOWN}]'),
    ("a controller that is missing here", ["job-controller"], '"job-controller" is not available'),
    ("by its older name", ["*", "job"], '"job" is not available'),
]  # fmt: skip


@pytest.mark.parametrize(("items", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_list_is_refused(items: list[str], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
        check_controllers(items)
    assert str(raised.value) == f"{message}: this server has {', '.join(AVAILABLE)}"


def test_the_table_is_sorted_and_unambiguous() -> None:
    names = [known.name for known in CONTROLLERS]
    assert names == sorted(names)
    every = [name for known in CONTROLLERS for name in (known.name, known.alias) if name]
    assert len(every) == len(set(every))
    assert "garbage-collector-controller" in names


def test_profiles() -> None:
    assert {profile: [known.name for known in enabled(items)] for profile, items in manager.PROFILES.items()} == {
        "local": list(AVAILABLE),
        "cluster": list(AVAILABLE),
        "envtest": [],
    }
    for profile in manager.PROFILES:
        check_profile(profile)


def test_every_controller_that_is_available_can_be_made() -> None:
    assert sorted(MAKERS) == sorted(AVAILABLE)
