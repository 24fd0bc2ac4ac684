"""endpointslice-controller (situations of k8s.io/endpointslice's reconciler_test.go, utils_test.go, trafficdist_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.endpoint_slices import EndpointSliceController
from noxu.workloads.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES, Objects
from noxu.workloads.writes import Kind, NamespacedName
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.services import HTTP, TIME, node, pod, pods, service, sizes, slices

controller = object.__new__(EndpointSliceController)  # its steps need nothing of a server


def run(play: Play) -> list[str]:
    assert play.run(controller.steps, "default/web") is None
    return play.done()


def played(*objects: tuple[Kind, Object]) -> Play:
    play = Play(node(), *objects)
    run(play)
    return play


# -- what a slice is


def test_a_slice_of_a_service() -> None:
    play = Play(node(**{"topology.kubernetes.io/zone": "east"}), service(labels={"tier": "front"}), pod(1))
    assert run(play) == ["create endpointslices web-"]
    [value] = slices(play.objects)
    metadata = value.pop("metadata")
    assert value == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.1.0.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": "node-1",
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "pod-1"},
                "zone": "east",
            }
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }
    assert metadata["generateName"] == "web-"
    assert metadata["labels"] == {
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Service", "service-web", True)


@rows(
    "situation, the_service, the_pod, ready, serving, terminating",
    [
        ("ready", service(), pod(), True, True, False),
        ("not ready", service(), pod(ready=False), False, False, False),
        ("ready, and being deleted", service(), pod(ending=True), False, True, True),
        ("not ready, and being deleted", service(), pod(ready=False, ending=True), False, False, True),
        ("not ready, but published", service(publishNotReadyAddresses=True), pod(ready=False), True, False, False),
        ("being deleted, but published", service(publishNotReadyAddresses=True), pod(ending=True), True, True, True),
    ],
)
def test_conditions(
    situation: str, the_service: Any, the_pod: Any, ready: bool, serving: bool, terminating: bool
) -> None:
    [value] = slices(played(the_service, the_pod).objects)
    assert value["endpoints"][0]["conditions"] == {"ready": ready, "serving": serving, "terminating": terminating}


BOTH = ["10.1.0.1", "2000::1"]
NAMED = {"name": "tls", "port": 443, "targetPort": "web", "protocol": "TCP"}
SIDECAR = {
    "name": "side",
    "restartPolicy": "Always",
    "ports": [{"name": "web", "containerPort": 99, "protocol": "TCP"}],
}
OTHER_CONTAINER = {"name": "main", "ports": [{"name": "web", "containerPort": 9000, "protocol": "TCP"}]}


@rows(
    "situation, objects, four, six",
    [
        ("no pods: a slice without endpoints", [service()], [0], []),
        ("a pod that has ended", [service(), pod(phase="Failed")], [0], []),
        ("a pod without an address", [service(), pod(addresses=[])], [0], []),
        ("a pod of a node that does not exist", [service(), pod(nodeName="gone"), pod(2)], [1], []),
        ("and that is published", [service(publishNotReadyAddresses=True), pod(nodeName="gone")], [1], []),
        ("both families", [service(ipFamilies=["IPv4", "IPv6"]), pod(addresses=BOTH)], [1], [1]),
        ("both families, and a pod has one", [service(ipFamilies=["IPv4", "IPv6"]), pod()], [1], [0]),
        ("headless without families: both", [service(clusterIP="None", ipFamilies=[]), pod(addresses=BOTH)], [1], [1]),
        ("the family of the address", [service(clusterIP="fd00::1", ipFamilies=[]), pod(addresses=BOTH)], [], [1]),
        ("different numbers of a named port", [service(ports=[NAMED]), pod(1), pod(2, containers=[OTHER_CONTAINER])], [1, 1], []),
        ("a named port of a sidecar", [service(ports=[NAMED]), pod(containers=[{"name": "a"}], initContainers=[SIDECAR])], [1], []),
        ("250 pods", [service(), *pods(1, 250)], [100, 100, 50], []),
    ],
)  # fmt: skip
def test_slices(situation: str, objects: list[tuple[Kind, Object]], four: list[int], six: list[int]) -> None:
    play = played(*objects)
    assert (sizes(play.objects), sizes(play.objects, "IPv6")) == (four, six), situation
    assert run(play) == [], "nothing has changed"


@rows(
    "situation, objects",
    [
        ("there is none", []),
        ("a service without a selector", [service(selector=None), pod()]),
        ("a service that is a name", [service(type="ExternalName"), pod()]),
    ],
)
def test_services_without_slices(situation: str, objects: list[tuple[Kind, Object]]) -> None:
    assert slices(played(*objects).objects) == [], situation


def test_a_hostname_in_the_domain_of_the_service() -> None:
    play = played(service(), pod(1, hostname="a", subdomain="web"), pod(2, hostname="b", subdomain="other"))
    assert [each.get("hostname") for each in slices(play.objects)[0]["endpoints"]] == ["a", None]


def test_ports_without_a_name_and_with_a_protocol() -> None:
    [value] = slices(played(service(ports=[{"port": 80, "targetPort": 80, "appProtocol": "http"}]), pod()).objects)
    assert value["ports"] == [{"name": "", "port": 80, "protocol": "TCP", "appProtocol": "http"}]


# -- what changes


def added(play: Play, *objects: tuple[Kind, Object]) -> list[str]:
    for kind, value in objects:
        play.add(kind, value)
    return [" ".join(sentence.split()[:2]) for sentence in run(play)]


def gone(play: Play, first: int, last: int) -> list[str]:
    for number in range(first, last + 1):
        play.objects.remove(PODS, NamespacedName("default", f"web-{number}"))
    return added(play)


UPDATE, CREATE, DELETE = "update endpointslices", "create endpointslices", "delete endpointslices"


def test_new_endpoints_fill_one_unchanged_slice_if_they_fit() -> None:
    play = played(service(), *pods(1, 150))
    assert sizes(play.objects) == [100, 50]
    assert added(play, *pods(151, 160)) == [UPDATE]
    assert sizes(play.objects) == [100, 60]
    assert added(play, *pods(161, 210)) == [CREATE], "they do not all fit"
    assert sizes(play.objects) == [100, 60, 50]


def test_new_endpoints_fill_first_what_changes_anyway() -> None:
    play = played(service(), *pods(1, 230))
    gone(play, 1, 20)
    gone(play, 101, 110)
    assert sizes(play.objects) == [80, 90, 30]
    changed = [pod(50, ready=False), pod(150, ready=False), *pods(301, 315)]
    assert added(play, *changed) == [UPDATE, UPDATE]
    assert sizes(play.objects) == [85, 100, 30], "the fullest first"


def test_a_slice_without_endpoints_goes_and_the_last_one_stays() -> None:
    play = played(service(), *pods(1, 150))
    assert gone(play, 101, 150) == [DELETE]
    assert sizes(play.objects) == [100]
    assert gone(play, 1, 100) == [UPDATE]
    assert sizes(play.objects) == [0]
    assert slices(play.objects)[0]["ports"] == []
    assert added(play, pod(1)) == [UPDATE], "the empty one becomes one with endpoints"
    assert sizes(play.objects) == [1]


def test_other_ports_recycle_slices() -> None:
    play = played(service(), *pods(1, 110))
    assert added(play, service(ports=[{**HTTP, "targetPort": 9090}])) == [UPDATE, UPDATE]
    assert [value["ports"][0]["port"] for value in slices(play.objects)] == [9090, 9090]


def test_slices_follow_the_labels_of_their_service() -> None:
    play = played(service(labels={"a": "1"}), pod())
    assert added(play, service(labels={"b": "2", "kubernetes.io/service-name": "mine"})) == [UPDATE]
    labels = slices(play.objects)[0]["metadata"]["labels"]
    assert (labels.get("a"), labels["b"], labels["kubernetes.io/service-name"]) == (None, "2", "web")


def test_slices_of_a_former_service_are_deleted() -> None:
    play = played(service(), pod())
    [kind, value] = service()
    assert added(play, (kind, {**value, "metadata": {**value["metadata"], "uid": "new"}})) == [CREATE, DELETE]


def test_a_service_that_is_being_deleted_gets_no_new_slices() -> None:
    [kind, value] = service()
    value["metadata"]["deletionTimestamp"] = TIME
    assert slices(played((kind, value), pod()).objects) == []


def test_a_family_that_the_service_no_longer_has() -> None:
    play = played(service(ipFamilies=["IPv4", "IPv6"]), pod(addresses=BOTH))
    assert added(play, service()) == [DELETE]


def test_the_time_of_the_change() -> None:
    def time() -> str:
        annotations = slices(play.objects)[0]["metadata"].get("annotations") or {}
        return str(annotations.get("endpoints.kubernetes.io/last-change-trigger-time", ""))

    play = played(service(), pod(1), pod(2))
    assert time() == TIME, "the service was created"
    added(play, pod(1, ready=False, since="2026-01-01T00:05:00Z"), pod(2, ready=False, since="2026-01-01T00:04:00Z"))
    assert time() == "2026-01-01T00:04:00Z", "the first one of those that have changed"
    gone(play, 2, 2)
    assert time() == "", "it is not known"


ZONE = {"topology.kubernetes.io/zone": "east"}


@rows(
    "distribution, zone, hints",
    [
        (None, ZONE, None),
        ("PreferClose", ZONE, {"forZones": [{"name": "east"}]}),
        ("PreferSameZone", ZONE, {"forZones": [{"name": "east"}]}),
        ("PreferSameNode", ZONE, {"forZones": [{"name": "east"}], "forNodes": [{"name": "node-1"}]}),
        ("PreferClose", {}, None),
    ],
)
def test_hints(distribution: str | None, zone: dict[str, str], hints: Object | None) -> None:
    play = Play(node(**zone), service(trafficDistribution=distribution), pod(1), pod(2, ready=False))
    run(play)
    assert [each.get("hints") for each in slices(play.objects)[0]["endpoints"]] == [hints, None]
    assert run(play) == []
    added(play, service())
    assert [each.get("hints") for each in slices(play.objects)[0]["endpoints"]] == [None, None]


# -- what concerns a service

POD = pod()[1]
OURS: Object = {
    "metadata": {
        "name": "web-abc",
        "namespace": "default",
        "labels": {
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
    }
}
THEIRS: Object = {"metadata": {"name": "x", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}}}


@rows(
    "situation, kind, old, new, keys",
    [
        ("a pod is created", PODS, None, POD, ["web"]),
        ("the service is created", SERVICES, None, service()[1], ["web"]),
        ("a slice of its own is deleted", ENDPOINT_SLICES, OURS, None, ["web"]),
        ("a slice is no longer its own", ENDPOINT_SLICES, OURS, THEIRS, ["web"]),
        ("a slice of others", ENDPOINT_SLICES, None, THEIRS, []),
        ("the node of a pod is created", NODES, None, node()[1], ["web"]),
        ("the node of a pod changes", NODES, node()[1], node(a="b")[1], []),
    ],
)
def test_what_concerns_a_service(
    situation: str, kind: Kind, old: Object | None, new: Object | None, keys: list[str]
) -> None:
    objects = Objects([service(), service(name="other", selector={"app": "other"}), (PODS, POD)])
    assert [key.name for key in controller.affected(objects, kind, old, new)] == keys, situation
