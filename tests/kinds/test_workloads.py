"""apps/v1 and ReplicationController: specs, what does not change, statuses, generations, warnings."""

from __future__ import annotations

import pytest

from noxu.kinds.kind import Context
from noxu.values import Json, Object
from tests.kinds.objects import create_messages, created, kind_of, merged, messages, update_messages, updated
from tests.rows import rows
from tests.timing import cpu_seconds

POD = {"containers": [{"name": "c", "image": "nginx"}]}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}
KINDS = {
    "Deployment": kind_of("apps/v1", "Deployment"),
    "ReplicaSet": kind_of("apps/v1", "ReplicaSet"),
    "StatefulSet": kind_of("apps/v1", "StatefulSet"),
    "DaemonSet": kind_of("apps/v1", "DaemonSet"),
    "ReplicationController": kind_of("v1", "ReplicationController"),
}


def given(kind: str, **change: Json) -> Object:
    spec = {"template": TEMPLATE} if kind == "ReplicationController" else SELECTED
    return {"metadata": {"name": "x"}, "spec": merged(spec, change)}


def stored(kind: str, **change: Json) -> Object:
    return created(KINDS[kind], given(kind, **change))


MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"y"}: `selector` does not match template `labels`'
OTHER_LABELS = {"template": {"metadata": {"labels": {"app": "y"}}}}
ONLY_ALWAYS = 'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'
NOT_NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"


def rolling(**fields: Json) -> Json:
    return {"rollingUpdate": fields}


CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SPECS: list[tuple[str, str, Json, list[str]]] = [
    *((f"a minimal {kind}", kind, {}, []) for kind in KINDS),
    *((f"other labels of a {kind}", kind, OTHER_LABELS, [MISMATCH]) for kind in KINDS if kind != "ReplicationController"),
    *((f"no containers in a {kind}", kind, {"template": {"spec": {"containers": []}}}, ["spec.template.spec.containers: Required value"]) for kind in KINDS),
    *((f"pods of a {kind} that end", kind, {"template": {"spec": {"restartPolicy": "Never"}}}, [ONLY_ALWAYS]) for kind in KINDS),
    *((f"negative replicas of a {kind}", kind, {"replicas": -1}, [f"spec.replicas: {NOT_NEGATIVE}"]) for kind in KINDS if kind != "DaemonSet"),
    *(
        (f"a deadline of pods of a {kind}", kind, {"template": {"spec": {"activeDeadlineSeconds": 1}}}, [f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {named} is not Supported"])
        for kind, named in (("Deployment", "ReplicaSet"), ("ReplicaSet", "ReplicaSet"), ("StatefulSet", "StatefulSet"), ("DaemonSet", "DaemonSet"))
    ),
    *(
        (f"an empty selector of a {kind}", kind, {"selector": {"matchLabels": None}}, [f"spec.selector: Invalid value: {{}}: empty selector is invalid for {named}"])
        for kind, named in (("Deployment", "deployment"), ("ReplicaSet", "deployment"), ("StatefulSet", "statefulset"), ("DaemonSet", "daemonset"))
    ),
    ("no selector", "Deployment", {"selector": None}, ["spec.selector: Required value", MISMATCH.replace('"y"', '"x"')]),
    ("no labels", "Deployment", {"template": {"metadata": None}}, ["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"]),
    ("a selector that is none", "Deployment", {"selector": {"matchExpressions": [{"key": "a", "operator": "x"}]}}, [
        'spec.selector.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator',
        'spec.selector: Invalid value: {"matchLabels":{"app":"x"},"matchExpressions":[{"key":"a","operator":"x"}]}: invalid label selector',
    ]),
    ("a strategy that is none", "Deployment", {"strategy": {"type": "x"}}, ['spec.strategy: Unsupported value: {"Type":"x","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"']),
    ("nothing unavailable, nothing more", "Deployment", {"strategy": rolling(maxUnavailable=0, maxSurge="0%")}, ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"]),
    ("more than all", "Deployment", {"strategy": rolling(maxUnavailable="101%")}, ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
    ("no percentage", "Deployment", {"strategy": rolling(maxSurge="x")}, ["spec.strategy.rollingUpdate.maxSurge: Invalid value: \"x\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"]),
    ("a short deadline", "Deployment", {"progressDeadlineSeconds": 5, "minReadySeconds": 5}, ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"]),
    ("a negative limit", "Deployment", {"revisionHistoryLimit": -1}, [f"spec.revisionHistoryLimit: {NOT_NEGATIVE}"]),
    ("a volume that is not mounted", "Deployment", {"template": {"spec": {"containers": {"0": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}}}}}, ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "v"']),
    ("nodes unavailable and more", "DaemonSet", {"updateStrategy": rolling(maxSurge=1)}, ["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]),
    ("no nodes unavailable", "DaemonSet", {"updateStrategy": rolling(maxUnavailable=0)}, ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
    ("a policy that is none", "StatefulSet", {"podManagementPolicy": "x"}, ["spec.podManagementPolicy: Invalid value: \"x\": must be 'OrderedReady' or 'Parallel'"]),
    ("a strategy that is none of a StatefulSet", "StatefulSet", {"updateStrategy": {"type": "x"}}, ["spec.updateStrategy: Invalid value: {\"Type\":\"x\",\"RollingUpdate\":null}: must be 'RollingUpdate' or 'OnDelete'"]),
    ("a partition on deletion", "StatefulSet", {"updateStrategy": {"type": "OnDelete", **rolling(partition=1)}}, ["spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed for updateStrategy 'RollingUpdate'"]),
    ("a retention that is none", "StatefulSet", {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "x"}}, ['spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "x": supported values: "Retain", "Delete"']),
    ("a service that is none", "StatefulSet", {"serviceName": "a.b"}, ['spec.serviceName: Invalid value: "a.b": must not contain dots']),
    ("a claim without modes and size", "StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {}}]}, ["spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required", "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"]),
    ("a mounted claim", "StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": CLAIM_SPEC}], "template": {"spec": {"containers": {"0": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}}}}}, []),
    ("no template", "ReplicationController", {"template": None, "selector": {"a": "b"}}, ["spec.template: Required value"]),
    ("no selector of a ReplicationController", "ReplicationController", {"template": {"metadata": None}}, ["spec.selector: Required value"]),
    ("other labels of a ReplicationController", "ReplicationController", {"selector": {"app": "y"}}, [MISMATCH.replace('"y"', '"x"')]),
]  # fmt: skip


@rows(("kind", "change", "expected"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_specs_are_validated(kind: str, change: Json, expected: list[str]) -> None:
    assert create_messages(KINDS[kind], given(kind, **change)) == expected


OTHER = {"selector": {"matchLabels": {"app": "y"}}, **OTHER_LABELS}
IMMUTABLE_SELECTOR = 'spec.selector: Invalid value: {"matchLabels":{"app":"y"}}: field is immutable'
CLAIM = {"metadata": {"name": "v"}, "spec": {}}
UPDATES: list[tuple[str, str, Json, list[str]]] = [
    *((f"the selector of a {kind}", kind, OTHER, [IMMUTABLE_SELECTOR]) for kind in KINDS if kind != "ReplicationController"),
    ("the selector of a ReplicationController", "ReplicationController", {"selector": {"app": "y"}, **OTHER_LABELS}, []),
    ("the type of a strategy", "Deployment", {"strategy": {"type": "Recreate"}}, ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]),
    ("the strategy", "Deployment", {"strategy": {"type": "Recreate", "rollingUpdate": None}}, []),
    ("the template and the readiness", "StatefulSet", {"template": {"spec": {"hostname": "a"}}, "minReadySeconds": 5}, []),
    ("the service", "StatefulSet", {"serviceName": "y"}, ['spec.serviceName: Invalid value: "y": field is immutable']),
    ("the policy", "StatefulSet", {"podManagementPolicy": "Parallel"}, ['spec.podManagementPolicy: Invalid value: "Parallel": field is immutable']),
]  # fmt: skip


@rows(("kind", "change", "expected"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_updates_are_validated(kind: str, change: Json, expected: list[str]) -> None:
    assert update_messages(KINDS[kind], stored(kind), {"spec": change}) == expected


def test_claims_of_a_stateful_set_do_not_change() -> None:
    (message,) = update_messages(
        KINDS["StatefulSet"], stored("StatefulSet"), {"spec": {"volumeClaimTemplates": [CLAIM]}}
    )
    assert message.startswith('spec.volumeClaimTemplates: Invalid value: [{"')
    assert message.endswith(": field is immutable")


def test_a_template_that_was_stored_remains_valid() -> None:
    old = stored("StatefulSet", template={"spec": {"containers": []}})
    assert update_messages(KINDS["StatefulSet"], old, {"spec": {"replicas": 3}}) == []


ABOVE = "cannot be greater than status.replicas"
STATUSES: list[tuple[str, str, Json, Json, list[str]]] = [
    ("all ready", "Deployment", {}, {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}, []),
    ("more ready than there are", "Deployment", {}, {"readyReplicas": 2}, [f"status.readyReplicas: Invalid value: 2: {ABOVE}"]),
    ("a negative number of replicas", "Deployment", {}, {"replicas": -1}, ["status.replicas: Invalid value: -1: must be greater than or equal to 0", *[f"status.{name}: Invalid value: 0: {ABOVE}" for name in ("updatedReplicas", "readyReplicas", "availableReplicas")]]),
    ("more available than ready", "Deployment", {}, {"replicas": 2, "availableReplicas": 1}, ["status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas"]),
    ("a negative number", "Deployment", {}, {"unavailableReplicas": -1}, [f"status.unavailableReplicas: {NOT_NEGATIVE}"]),
    ("fewer collisions", "Deployment", {"collisionCount": 2}, {"collisionCount": 1}, ["status.collisionCount: Invalid value: 1: cannot be decremented"]),
    ("no collisions any more", "Deployment", {"collisionCount": 2}, {"collisionCount": None}, ["status.collisionCount: Invalid value: 0: cannot be decremented"]),
    ("more labelled than there are", "ReplicaSet", {}, {"fullyLabeledReplicas": 1}, [f"status.fullyLabeledReplicas: Invalid value: 1: {ABOVE}"]),
    ("more current than there are", "StatefulSet", {}, {"currentReplicas": 1}, [f"status.currentReplicas: Invalid value: 1: {ABOVE}"]),
    ("more available than ready in a StatefulSet", "StatefulSet", {}, {"replicas": 1, "availableReplicas": 1}, ["status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"]),
    ("more ready than scheduled", "DaemonSet", {}, {"numberReady": 5}, []),
    ("a negative number of nodes", "DaemonSet", {}, {"numberReady": -1}, [f"status.numberReady: {NOT_NEGATIVE}"]),
    ("more ready than there are in a ReplicationController", "ReplicationController", {}, {"readyReplicas": 1}, [f"status.readyReplicas: Invalid value: 1: {ABOVE}"]),
]  # fmt: skip


@rows(("kind", "before", "change", "expected"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_statuses_are_validated(kind: str, before: Json, change: Json, expected: list[str]) -> None:
    old = merged(stored(kind), {"status": before})
    assert update_messages(KINDS[kind], old, {"status": change}, "status") == expected


GENERATIONS: list[tuple[str, str, Json, str, int]] = [
    ("a spec", "Deployment", {"spec": {"replicas": 2}}, "", 2),
    ("annotations of a Deployment", "Deployment", {"metadata": {"annotations": {"a": "b"}}}, "", 2),
    (
        "annotations of a Deployment through the status",
        "Deployment",
        {"metadata": {"annotations": {"a": "b"}}},
        "status",
        1,
    ),
    ("labels of a Deployment", "Deployment", {"metadata": {"labels": {"a": "b"}}}, "", 1),
    ("annotations of a ReplicaSet", "ReplicaSet", {"metadata": {"annotations": {"a": "b"}}}, "", 1),
    ("a status", "Deployment", {"status": {"replicas": 1}}, "status", 1),
    ("a spec through the status", "Deployment", {"spec": {"replicas": 2}}, "status", 1),
]


@pytest.mark.parametrize(
    ("kind", "change", "subresource", "generation"),
    [row[1:] for row in GENERATIONS],
    ids=[row[0] for row in GENERATIONS],
)
def test_generations(kind: str, change: Json, subresource: str, generation: int) -> None:
    assert updated(KINDS[kind], stored(kind), change, subresource)["metadata"]["generation"] == generation


def test_a_daemon_set_counts_changes_of_its_template() -> None:
    kind, name = KINDS["DaemonSet"], "deprecated.daemonset.template.generation"
    first = stored("DaemonSet")
    second = updated(kind, first, {"spec": {"template": {"spec": {"hostname": "a"}}}})
    third = updated(kind, second, {"spec": {"minReadySeconds": 1}, "metadata": {"annotations": {name: "9", "a": "b"}}})
    assert [each["metadata"]["annotations"][name] for each in (first, second, third)] == ["1", "2", "2"]
    assert [each["metadata"]["generation"] for each in (first, second, third)] == [1, 2, 3]


def test_warnings_are_about_names_and_changed_templates() -> None:
    deployment, names = KINDS["Deployment"], {"metadata": {"name": "a.b"}}
    new = created(deployment, merged(given("Deployment", template={"spec": {"nodeSelector": {"beta.kubernetes.io/arch": "x"}}}), names))  # fmt: skip
    about_template = 'spec.template.spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead'
    assert deployment.warnings(new, None) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
        "recommended: [must not contain dots]",
        about_template,
    ]
    assert deployment.warnings(new, new) == []
    assert deployment.warnings(updated(deployment, new, {"spec": {"replicas": 2}}), new) == [about_template]


def test_controller_revisions_keep_their_data() -> None:
    kind = kind_of("apps/v1", "ControllerRevision")
    revision = {"metadata": {"name": "x"}, "revision": 1}
    assert create_messages(kind, revision) == ["data: Required value: data is mandatory"]
    old = created(kind, {**revision, "data": {"a": 1}})
    assert messages(kind, old, None) == []
    assert update_messages(kind, old, {"revision": 2}) == []
    assert update_messages(kind, old, {"revision": -1}) == [f"revision: {NOT_NEGATIVE}"]
    assert update_messages(kind, old, {"data": {"a": 2}}) == ['data: Invalid value: {"a":2}: field is immutable']


def test_a_new_deployment_costs_little() -> None:
    """Decoding, defaults, validation and warnings take 0.4 ms of processor time."""
    kind, number = KINDS["Deployment"], 20

    def create() -> None:
        for _ in range(number):
            new = stored("Deployment")
            assert not kind.validate(new, None, Context()) + kind.warnings(new, None)

    assert cpu_seconds(create) / number < 0.004
