"""`--controllers` and profiles: which controllers of kube-controller-manager run."""

from __future__ import annotations

import pytest

from noxu.controllers import manager
from noxu.controllers.constructors import MAKERS
from noxu.controllers.manager import (
    AVAILABLE,
    CONTROLLERS,
    OF_WORKLOADS,
    check_controllers,
    check_profile,
    check_workloads,
    enabled,
)
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
NEEDS_NODES = "is a controller of workloads, which run with simulated nodes: add --nodes"
REFUSED: list[tuple[str, list[str], str]] = [
    ("an unknown name", ["nope"], f'"nope" {UNKNOWN}'),
    ("an unknown name to disable", ["*", "-nope"], f'"nope" {UNKNOWN}'),
    ("a misspelt name", ["namespace-controler"], f'"namespace-controler" {UNKNOWN}; did you mean namespace-controller?'),
    ("blanks are part of a name", ["*", " namespace"], f'" namespace" {UNKNOWN}; did you mean namespace?'),
    ("a doubled sign", ["--namespace"], f'"-namespace" {UNKNOWN}; did you mean namespace?'),
    ("several", ["a", "-b"], f'["a" {UNKNOWN}, "b" {UNKNOWN}]'),
    ("a controller that is missing here", ["ttl-controller"], '"ttl-controller" is not available'),
    ("by its older name", ["*", "ttl"], '"ttl" is not available'),
    ("one of workloads", ["job-controller"], f'"job-controller" {NEEDS_NODES}'),
    ("one of workloads by its older name", ["*", "job"], f'"job" {NEEDS_NODES}'),
]  # fmt: skip


@pytest.mark.parametrize(("items", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_list_is_refused(items: list[str], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
        check_controllers(items)
    assert str(raised.value) == f"{message}: this server has {', '.join(AVAILABLE)}"


def test_with_nodes_the_controllers_of_workloads_are_available() -> None:
    check_controllers(["*", "-job-controller", "replicaset"], has_nodes=True)
    listed = [known.name for known in enabled(["*", "-job", "-replicaset-controller"], of_workloads=True)]
    assert {*OF_WORKLOADS} - {*listed} == {"job-controller", "replicaset-controller"}
    with pytest.raises(ValueError, match=f'"ttl" is not available: this server has .*, {OF_WORKLOADS[-1]}$'):
        check_controllers(["ttl"], has_nodes=True)


WORKLOADS: list[tuple[str, int | None, bool, str, str]] = [
    ("no nodes", None, False, "", ""),
    ("nodes with all there is", 3, True, "succeed", ""),
    ("the controllers without a node", 0, False, "", ""),
    ("fewer than none", -1, False, "", "nodes: -1 is not a number from 0 to 5000"),
    ("too many", 5001, False, "", "nodes: 5001 is not a number from 0 to 5000"),
    ("an answer that there is not", 1, False, "suceed", 'exec: "suceed" is not succeed; did you mean succeed?'),
    ("rules without nodes", None, True, "", "stages is about simulated nodes: add nodes"),
    ("an answer without nodes", None, False, "succeed", "exec is about simulated nodes: add nodes"),
]


@rows(("nodes", "stages", "answer", "message"), [row[1:] for row in WORKLOADS], ids=[row[0] for row in WORKLOADS])
def test_simulated_nodes(nodes: int | None, stages: bool, answer: str, message: str) -> None:
    refusal = ""
    try:
        check_workloads(nodes, stages=stages, exec=answer)
    except ValueError as error:
        refusal = str(error)
    assert refusal == message


def test_simulated_nodes_of_a_command() -> None:
    """The names are those that a person writes there."""
    with pytest.raises(ValueError, match=r"^--stages is about simulated nodes: add --nodes$"):
        check_workloads(None, stages=True, exec="", option="--")


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
