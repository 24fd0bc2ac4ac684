"""Fields that are dropped because their feature gate is off in a release."""

from __future__ import annotations

from typing import Any, Final

from noxu.go.structs import decode
from noxu.kinds.defaults import GATES
from noxu.kinds.gates import dropper
from noxu.kinds.kind import prepare
from noxu.kinds.scheme import by_group_kind, served
from noxu.releases import NEWEST, OLDEST
from noxu.releases.gated_fields import GATED, LAST
from noxu.values import Object, copy
from tests.rows import rows

RELEASES: Final = range(OLDEST, NEWEST + 1)


def pod(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def container(**fields: Any) -> Object:
    return pod(containers=[{"name": "a", **fields}])


def other(api_version: str, kind: str, **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def dropped(value: Object, release: int, old: Object | None = None) -> Object:
    kind, new = by_group_kind(release)[value["apiVersion"], value["kind"]], copy(value)
    drop = kind.drop()
    if drop is not None:
        drop(new, old)
    spec: Object = new["spec"]
    return spec


@rows(
    ("value", "since"),
    [
        (container(lifecycle={"preStop": {"sleep": {"seconds": 1}}}), 30),
        (other("batch/v1", "Job", successPolicy={"rules": []}), 31),
        (other("v1", "Service", trafficDistribution="PreferClose"), 31),
        (container(volumeMounts=[{"name": "a", "recursiveReadOnly": "Enabled"}]), 31),
        (other("batch/v1", "Job", managedBy="example.com/a"), 32),
        (container(resizePolicy=[{"resourceName": "cpu"}]), 33),
        (pod(ephemeralContainers=[{"name": "a", "resizePolicy": [{"resourceName": "cpu"}]}]), 33),
        (container(securityContext={"procMount": "Unmasked"}), 33),
        (pod(securityContext={"seLinuxChangePolicy": "MountOption"}), 33),
        (pod(hostUsers=False), 33),
        (pod(resourceClaims=[{"name": "a"}]), 34),
        (pod(resources={"requests": {"cpu": "1"}}), 34),
        (other("v1", "PersistentVolumeClaim", volumeAttributesClassName="a"), 34),
        (pod(hostnameOverride="a"), 35),
        (container(env=[{"name": "A", "valueFrom": {"fileKeyRef": {"key": "a"}}}]), 35),
        (pod(volumes=[{"name": "a", "image": {"reference": "b"}}]), 35),
        (other("autoscaling/v2", "HorizontalPodAutoscaler", behavior={"scaleUp": {"tolerance": "1"}}), 35),
        (other("apps/v1", "StatefulSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 1}}), 35),
        (container(lifecycle={"stopSignal": "SIGTERM"}), 36),
        (pod(volumes=[{"name": "a", "projected": {"sources": [{"podCertificate": {"keyType": "a"}}]}}]), 36),
        (other("coordination.k8s.io/v1", "Lease", strategy="OldestEmulationVersion"), 36),
    ],
)
def test_a_field_is_kept_since_its_gate_is_on(value: Object, since: int) -> None:
    """An older release does not know it, or drops it."""
    kinds = {release: by_group_kind(release)[value["apiVersion"], value["kind"]] for release in RELEASES}
    decoded = {release: decode(kind.struct, value).value for release, kind in kinds.items()}
    kept = [release for release in RELEASES if dropped(decoded[release], release) == decoded[NEWEST]["spec"]]
    assert kept == list(range(since, NEWEST + 1))


@rows(
    ("release", "value", "expected"),
    [
        (32, pod(hostUsers=False, nodeName="n"), {"nodeName": "n"}),
        (32, container(securityContext={"procMount": "Unmasked"}), {"containers": [{"name": "a", "securityContext": {"procMount": "Default"}}]}),
        (29, container(lifecycle={"preStop": {"sleep": {"seconds": 1}}}), {"containers": [{"name": "a"}]}),
        (29, container(lifecycle={"preStop": {"sleep": {"seconds": 1}}, "postStart": {"exec": {}}}), {"containers": [{"name": "a", "lifecycle": {"postStart": {"exec": {}}}}]}),
        (35, container(lifecycle={"stopSignal": "SIGTERM", "preStop": {"exec": {}}}), {"containers": [{"name": "a", "lifecycle": {"preStop": {"exec": {}}}}]}),
        (34, container(env=[{"name": "A", "valueFrom": {"fileKeyRef": {"key": "a"}}}]), {"containers": [{"name": "a", "env": [{"name": "A", "valueFrom": {}}]}]}),
        (
            34,
            pod(
                containers=[{"name": "a", "volumeMounts": [{"name": "i", "mountPath": "/i"}, {"name": "e", "mountPath": "/e"}]}],
                initContainers=[{"name": "b", "volumeMounts": [{"name": "i", "mountPath": "/i"}]}],
                volumes=[{"name": "i", "image": {"reference": "r"}}, {"name": "e", "emptyDir": {}}],
            ),
            {
                "containers": [{"name": "a", "volumeMounts": [{"name": "e", "mountPath": "/e"}]}],
                "initContainers": [{"name": "b"}],
                "volumes": [{"name": "e", "emptyDir": {}}],
            },
        ),
        (31, other("apps/v1", "Deployment", template={"spec": {"hostUsers": True, "hostNetwork": True}}), {"template": {"spec": {"hostNetwork": True}}}),
        (31, other("batch/v1", "CronJob", jobTemplate={"spec": {"managedBy": "example.com/a", "template": {"spec": {"hostUsers": True}}}}), {"jobTemplate": {"spec": {"template": {"spec": {}}}}}),
    ],
)  # fmt: skip
def test_nothing_else_is_dropped(release: int, value: Object, expected: Object) -> None:
    assert dropped(value, release) == expected


@rows(
    ("old", "kept"),
    [
        (None, False),
        (container(), False),
        (container(lifecycle={"preStop": {"exec": {}}}), False),
        (pod(initContainers=[{"name": "b", "lifecycle": {"postStart": {"sleep": {"seconds": 3}}}}]), True),
    ],
)
def test_an_update_keeps_what_the_old_object_uses_anywhere(old: Object | None, kept: bool) -> None:
    value = container(lifecycle={"preStop": {"sleep": {"seconds": 1}}})
    assert (dropped(value, 29, old) == value["spec"]) == kept


def test_a_default_that_a_field_was_forced_to_is_not_used() -> None:
    value = container(securityContext={"procMount": "Unmasked"})
    assert dropped(value, 29, container(securityContext={"procMount": "Default"})) != value["spec"]
    assert dropped(value, 29, value) == value["spec"]


def test_fields_are_dropped_when_an_object_is_prepared() -> None:
    new = other("v1", "Service", trafficDistribution="PreferClose")
    prepare(by_group_kind(30)["v1", "Service"], new, None)
    assert "trafficDistribution" not in new["spec"]


def test_the_newest_release_drops_nothing() -> None:
    assert LAST < NEWEST
    assert not [kind.kind for kind in served() if kind.drop() is not None]


def test_each_field_of_the_table_is_one_of_a_kind() -> None:
    for gated in GATED:
        found = [kind for kind in served(gated.until) if dropper(kind.struct, gated.until) is not None]
        assert found, gated.gate
        for name in gated.fields:
            owner, _, field = name.partition(".")
            assert any(_declares(kind.struct, owner, field, set()) for kind in served(gated.until)), name


def _declares(type_: Any, owner: str, field: str, seen: set[Any]) -> bool:
    if hasattr(type_, "element"):
        return _declares(type_.element, owner, field, seen)
    if not hasattr(type_, "fields") or type_ in seen:
        return False
    seen.add(type_)
    found = type_.fields.get(field)
    if found is not None and owner in (type_.name, found.inline.rpartition(".")[2]):
        return True
    return any(_declares(each.type, owner, field, seen) for each in type_.fields.values())


def test_a_default_of_a_gate_comes_with_it() -> None:
    since = {gated.gate: gated.until + 1 for gated in GATED}
    assert {gate: since.get(gate, GATES[gate]) for gate in GATES} == GATES
    for release in (34, 35):
        value = other("apps/v1", "StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {}})
        by_group_kind(release)["apps/v1", "StatefulSet"].default(value)
        assert ("maxUnavailable" in value["spec"]["updateStrategy"]["rollingUpdate"]) == (release == 35)


def test_the_mode_of_an_address_is_no_default_in_the_oldest_release() -> None:
    for release in (29, 30):
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        value = {**other("v1", "Service", type="LoadBalancer"), "status": status}
        by_group_kind(release)["v1", "Service"].default(value)
        assert ("ipMode" in value["status"]["loadBalancer"]["ingress"][0]) == (release == 30)
