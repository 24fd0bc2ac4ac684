"""Claims of pods: upstream's tables (volume_binding_test.go, binder_test.go)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.objects import CLAIMS, STORAGE_CLASSES, VOLUMES
from noxu.workloads.scheduler.cluster import NodeFacts
from noxu.workloads.scheduler.diagnosis import Diagnosis
from noxu.workloads.scheduler.placement import Placement
from noxu.workloads.writes import Kind
from tests.rows import rows
from tests.workloads.plays import Play, sentence
from tests.workloads.scheduler.clusters import cluster, facts, node, pod, schedule

NODES = [node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"})]


def claim(
    name: str = "data", volume: str = "", *, bound: bool = True, of_class: str = "slow", **more: object
) -> tuple[Kind, Object]:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume and bound else {}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": of_class,
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    value: Object = {"metadata": metadata, "spec": {**spec, **({"volumeName": volume} if volume else {})}}
    for part, values in more.items():
        value[part] = {**value.get(part, {}), **values}  # type: ignore[dict-item]
    return CLAIMS, value


def volume(name: str, zone: str = "", size: str = "1Gi", **spec: object) -> tuple[Kind, Object]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}
    given = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        **affinity,
        **spec,
    }
    return VOLUMES, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": given, "status": {"phase": "Available"}}


def storage_class(name: str, mode: str, provisioner: str = "example.com/disks", **more: object) -> tuple[Kind, Object]:
    return STORAGE_CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


SLOW = storage_class("slow", "Immediate")
LATE = storage_class("late", "WaitForFirstConsumer")
LOCAL = storage_class("late", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
ONLY_2 = storage_class(
    "late", "WaitForFirstConsumer", allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["2"]}]}]
)
WAITS = claim(of_class="late")


def using(*names: str, name: str = "web", on: str = "") -> Object:
    volumes = [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in names]
    return pod(name, on, volumes=volumes)


SELECTED_B = claim(of_class="late", metadata={"annotations": {"volume.kubernetes.io/selected-node": "b"}})


@rows(
    "what, wanted, others, expected",
    [
        ("no claim", pod("web"), [], "a"),
        ("it is missing", using("data"), [], 'persistentvolumeclaim "data" not found'),
        (
            "one for this pod is not there yet",
            pod("web", volumes=[{"name": "scratch", "ephemeral": {}}]),
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"',
        ),
        (
            "one for this pod is another's",
            pod("web", volumes=[{"name": "scratch", "ephemeral": {}}]),
            [claim("web-scratch")],
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)",
        ),
        (
            "it is lost",
            using("data"),
            [claim(volume="gone", status={"phase": "Lost"})],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
        ),
        (
            "it is being deleted",
            using("data"),
            [claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
        ),
        ("it is to be bound first", using("data"), [SLOW, claim()], "pod has unbound immediate PersistentVolumeClaims"),
        ("its class is missing", using("data"), [claim()], "pod has unbound immediate PersistentVolumeClaims"),
        (
            "it is bound half",
            using("data"),
            [LATE, claim(volume="v", bound=False, of_class="late")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        ("it is bound", using("data"), [claim(volume="v"), volume("v")], "a"),
        ("its volume is elsewhere", using("data"), [claim(volume="v"), volume("v", "2")], "b"),
        (
            "its volume is nowhere",
            using("data"),
            [claim(volume="v"), volume("v", "3")],
            "2 node(s) didn't match PersistentVolume's node affinity",
        ),
        (
            "its volume is gone",
            using("data"),
            [claim(volume="v")],
            "2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        ),
        ("its class makes one anywhere", using("data"), [LATE, WAITS], "a"),
        ("its class makes one there", using("data"), [ONLY_2, WAITS], "b"),
        ("its node was selected before", using("data"), [LATE, SELECTED_B], "b"),
        ("no volume", using("data"), [LOCAL, WAITS], "2 node(s) didn't find available persistent volumes to bind"),
        ("a free volume", using("data"), [LOCAL, WAITS, volume("v", "2")], "b"),
        (
            "a small volume",
            using("data"),
            [LOCAL, WAITS, volume("v", "2", "1Mi")],
            "2 node(s) didn't find available persistent volumes to bind",
        ),
        (
            "another's volume",
            using("data"),
            [LOCAL, WAITS, volume("v", "2", claimRef={"namespace": "default", "name": "x"})],
            "2 node(s) didn't find available persistent volumes to bind",
        ),
        (
            "its own volume",
            using("data"),
            [LOCAL, WAITS, volume("v", "2", claimRef={"namespace": "default", "name": "data"})],
            "b",
        ),
        (
            "one volume for two claims",
            using("data", "more"),
            [LOCAL, WAITS, claim("more", of_class="late"), volume("v", "2")],
            "2 node(s) didn't find available persistent volumes to bind",
        ),
        (
            "two volumes for two claims",
            using("data", "more"),
            [LOCAL, WAITS, claim("more", of_class="late"), volume("v", "2"), volume("w", "2")],
            "b",
        ),
    ],
)
def test_the_node_of_a_pod_with_claims(
    what: str, wanted: Object, others: list[tuple[Kind, Object]], expected: str
) -> None:
    found = Placement(facts(wanted), cluster(NODES, [], *others)).find()
    if isinstance(found, NodeFacts):
        assert found.name == expected
    else:
        assert found.sentence() == f"0/2 nodes are available: {expected}."


def test_a_claim_for_one_pod_has_no_other() -> None:
    exclusive = claim(volume="v", spec={"accessModes": ["ReadWriteOncePod"]})
    found = Placement(
        facts(using("data")), cluster(NODES, [using("data", name="other", on="a")], exclusive, volume("v"))
    ).find()
    assert isinstance(found, Diagnosis)
    assert found.sentence() == (
        "0/2 nodes are available: node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode."
    )


def test_a_pod_waits_for_the_volume_that_its_node_chooses() -> None:
    play = Play(*((("", "nodes"), it) for it in NODES), LATE, WAITS, (("", "pods"), using("data")))
    play.run(schedule, "queue")
    assert play.done() == ["update persistentvolumeclaims data"]
    chosen = play.get(CLAIMS, "default/data")
    assert chosen["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "a"}
    play.run(schedule, "queue")
    assert play.done() == []  # it still waits
    annotations = {**chosen["metadata"]["annotations"], "pv.kubernetes.io/bind-completed": "yes"}
    play.add(
        CLAIMS,
        {
            **chosen,
            "metadata": {**chosen["metadata"], "annotations": annotations},
            "spec": {**chosen["spec"], "volumeName": "v"},
        },
    )
    play.add(*volume("v"))
    play.run(schedule, "queue")
    assert play.done() == ["bind web a", "event Normal Scheduled: Successfully assigned default/web to a"]


def test_a_free_volume_is_reserved_for_its_claim() -> None:
    play = Play(
        *((("", "nodes"), it) for it in NODES),
        LOCAL,
        WAITS,
        volume("big", "2", "5Gi"),
        volume("small", "2"),
        (("", "pods"), using("data")),
    )
    play.run(schedule, "queue")
    assert [sentence(it) for it in play.writes] == ["update persistentvolumes small"]
    reference = play.get(VOLUMES, "small")["spec"]["claimRef"]
    assert (reference["kind"], reference["name"], reference["uid"]) == ("PersistentVolumeClaim", "data", "uid-data")
