"""Roles and bindings: defaults, validation, what is immutable."""

from __future__ import annotations

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import errors, filled, kind_of, name_errors
from tests.rows import rows

RBAC = "rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
URL = {"nonResourceURLs": ["/x"], "verbs": ["get"]}
TO_ROLE = {"roleRef": {"kind": "Role", "name": "r"}}
TO_CLUSTER_ROLE = {"roleRef": {"kind": "ClusterRole", "name": "r"}}
ANN = {"kind": "User", "name": "ann"}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}
BOTH = 'nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs'

CASES: list[tuple[str, str, Object, list[str]]] = [
    ("no rules", "Role", {}, []),
    ("a rule", "Role", {"rules": [READ]}, []),
    (
        "an empty rule",
        "Role",
        {"rules": [READ, {}]},
        [
            "rules[1].verbs: Required value: verbs must contain at least one value",
            "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[1].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
    (
        "URLs in a namespace",
        "Role",
        {"rules": [URL]},
        ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ),
    ("URLs in the cluster", "ClusterRole", {"rules": [URL]}, []),
    ("URLs and resources", "ClusterRole", {"rules": [URL | READ]}, [f"rules[0].{BOTH}"]),
    (
        "aggregation of nothing",
        "ClusterRole",
        {"aggregationRule": {}},
        [
            "aggregationRule.clusterRoleSelectors: Required value: "
            "at least one clusterRoleSelector required if aggregationRule is non-nil"
        ],
    ),
    ("aggregation", "ClusterRole", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}, []),
    ("a binding without subjects", "RoleBinding", TO_ROLE, []),
    ("a binding of a cluster role in a namespace", "RoleBinding", TO_CLUSTER_ROLE | {"subjects": [ANN, ROBOT]}, []),
    (
        "a cluster-wide binding of a role",
        "ClusterRoleBinding",
        TO_ROLE,
        ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
    ),
    (
        "a reference to nothing",
        "RoleBinding",
        {"roleRef": {"apiGroup": "x", "kind": "X"}},
        [
            f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
            'roleRef.kind: Unsupported value: "X": supported values: "Role", "ClusterRole"',
            "roleRef.name: Required value",
        ],
    ),
    (
        "subjects that are none",
        "ClusterRoleBinding",
        TO_CLUSTER_ROLE
        | {"subjects": [{"kind": "X", "name": "a"}, {"kind": "ServiceAccount", "name": "a", "apiGroup": "b"}, {"kind": "User"}]},
        [
            'subjects[0].kind: Unsupported value: "X": supported values: "ServiceAccount", "User", "Group"',
            'subjects[1].apiGroup: Unsupported value: "b": supported values: ""',
            "subjects[1].namespace: Required value",
            "subjects[2].name: Required value",
        ],
    ),
]  # fmt: skip


@rows(("kind", "new", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_roles_and_bindings_are_validated(kind: str, new: Object, expected: list[str]) -> None:
    assert errors(kind_of(RBAC, kind), new) == expected


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_the_role_of_a_binding_is_immutable(kind: str) -> None:
    new = {"roleRef": {"kind": "ClusterRole", "name": "other"}}
    shown = f'{{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"other"}}'
    assert errors(kind_of(RBAC, kind), new, TO_CLUSTER_ROLE) == [f"roleRef: Invalid value: {shown}: field is immutable"]
    assert errors(kind_of(RBAC, kind), TO_CLUSTER_ROLE | {"subjects": [ANN]}, TO_CLUSTER_ROLE) == []


def test_groups_of_references_are_filled_in() -> None:
    value = filled(kind_of(RBAC, "RoleBinding"), TO_ROLE | {"subjects": [ANN, {**ANN, "kind": "Group"}, ROBOT]})
    assert value["roleRef"] == {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    assert [subject.get("apiGroup") for subject in value["subjects"]] == [GROUP, GROUP, None]


def test_names_of_roles_are_segments_of_paths() -> None:
    assert name_errors(kind_of(RBAC, "ClusterRole"), "system:auth-delegator", {}) == []
    assert name_errors(kind_of(RBAC, "Role"), "a/b", {}) == [
        "metadata.name: Invalid value: \"a/b\": may not contain '/'"
    ]
