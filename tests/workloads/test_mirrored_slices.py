"""endpointslice-mirroring-controller (situations of pkg/controller/endpointslicemirroring's tests)."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.mirrored_slices import MAX_ADDRESSES, EndpointSliceMirroringController
from noxu.workloads.objects import ENDPOINT_SLICES, ENDPOINTS, Objects
from noxu.workloads.writes import Kind, NamespacedName
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.services import service, sizes, slices

controller = object.__new__(EndpointSliceMirroringController)  # its steps need nothing of a server
PORT = {"name": "http", "port": 80, "protocol": "TCP"}
PLAIN = service(selector=None)


def run(play: Play) -> list[str]:
    assert play.run(controller.steps, "default/web") is None
    return [" ".join(sentence.split()[:3]) for sentence in play.done()]


def endpoints(*subsets: Object, **metadata: Any) -> tuple[Kind, Object]:
    metadata = {"name": "web", "namespace": "default", "uid": "endpoints-1", **metadata}
    return ENDPOINTS, {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": list(subsets)}


def subset(*ready: str, unready: tuple[str, ...] = (), ports: tuple[Object, ...] = (PORT,)) -> Object:
    return {
        "addresses": [{"ip": address} for address in ready],
        "notReadyAddresses": [{"ip": address} for address in unready],
        "ports": list(ports),
    }


MANY = tuple(f"10.2.{number // 250}.{number % 250}" for number in range(MAX_ADDRESSES + 3))


@rows(
    "situation, objects, four, six",
    [
        ("a subset", [PLAIN, endpoints(subset("10.2.0.1", "10.2.0.2"))], [2], []),
        ("without addresses", [PLAIN, endpoints()], [], []),
        ("with and without readiness", [PLAIN, endpoints(subset("10.2.0.1", unready=("10.2.0.2",)))], [2], []),
        ("both families", [PLAIN, endpoints(subset("10.2.0.1", "fd00::1", "fd00::2"))], [1], [2]),
        ("subsets with the same ports", [PLAIN, endpoints(subset("10.2.0.1"), subset("10.2.0.2"))], [2], []),
        ("subsets with other ports", [PLAIN, endpoints(subset("10.2.0.1"), subset("10.2.0.2", ports=()))], [1, 1], []),
        ("too many", [PLAIN, endpoints(subset(*MANY))], [MAX_ADDRESSES], []),
        ("a service with a selector", [service(), endpoints(subset("10.2.0.1"))], [], []),
        ("no service", [endpoints(subset("10.2.0.1"))], [], []),
        ("they say that they are not mirrored", [PLAIN, endpoints(subset("10.2.0.1"), labels={"endpointslice.kubernetes.io/skip-mirror": "true"})], [], []),
        ("they elect a leader", [PLAIN, endpoints(subset("10.2.0.1"), annotations={"control-plane.alpha.kubernetes.io/leader": ""})], [], []),
    ],
)  # fmt: skip
def test_slices(situation: str, objects: list[tuple[Kind, Object]], four: list[int], six: list[int]) -> None:
    play = Play(*objects)
    run(play)
    assert (sizes(play.objects), sizes(play.objects, "IPv6")) == (four, six), situation
    assert run(play) == []


def test_a_slice_is_like_its_endpoints() -> None:
    address = {"ip": "10.2.0.1", "hostname": "a", "nodeName": "node-1", "targetRef": {"kind": "Pod", "name": "p"}}
    annotations = {"a": "b", "endpoints.kubernetes.io/last-change-trigger-time": "x"}
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    given = {"labels": {"c": "d"}, "annotations": annotations | last}
    play = Play(PLAIN, endpoints({"addresses": [address], "ports": [{"port": 80, "protocol": "TCP"}]}, **given))
    assert run(play) == ["create endpointslices web-"]
    [value] = slices(play.objects)
    assert value["metadata"]["annotations"] == {"a": "b"}
    assert value["metadata"]["labels"] == {
        "c": "d",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    [owner] = value["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Endpoints", "web")
    assert value["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    rest = {key: address[key] for key in ("hostname", "nodeName", "targetRef")}
    assert value["endpoints"] == [{"addresses": ["10.2.0.1"], "conditions": {"ready": True}, **rest}]


@rows(
    "situation, new, written",
    [
        ("nothing changes", [endpoints(subset("10.2.0.1"))], []),
        ("another address", [endpoints(subset("10.2.0.9"))], ["update endpointslices web-1"]),
        ("it is not ready any more", [endpoints(subset(unready=("10.2.0.1",)))], ["update endpointslices web-1"]),
        ("other ports", [endpoints(subset("10.2.0.1", ports=()))], ["update endpointslices web-1"]),
        ("other labels", [endpoints(subset("10.2.0.1"), labels={"a": "b"})], ["update endpointslices web-1"]),
        ("no addresses", [endpoints()], ["delete endpointslices web-1"]),
        ("the service gets a selector", [service()], ["delete endpointslices web-1"]),
    ],
)
def test_changes(situation: str, new: list[tuple[Kind, Object]], written: list[str]) -> None:
    play = Play(PLAIN, endpoints(subset("10.2.0.1")))
    run(play)
    for kind, value in new:
        play.add(kind, value)
    assert run(play) == written, situation


def test_endpoints_that_are_gone() -> None:
    play = Play(PLAIN, endpoints(subset("10.2.0.1")))
    run(play)
    play.objects.remove(ENDPOINTS, NamespacedName("default", "web"))
    assert run(play) == ["delete endpointslices web-1"]


def test_addresses_without_a_place_are_reported() -> None:
    play = Play(PLAIN, endpoints(subset(*MANY)), endpoints())
    play.add(*endpoints(subset(*MANY)))
    play.run(controller.steps, "default/web")
    text = "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were skipped"
    assert play.done()[-1] == f"event Warning TooManyAddressesToMirror: {text}"


def test_what_concerns_endpoints() -> None:
    labels = {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    ours: Object = {"metadata": {"name": "web-1", "namespace": "default", "labels": labels}}
    for kind, value in (PLAIN, endpoints(), (ENDPOINT_SLICES, ours)):
        assert [key.name for key in controller.affected(Objects(), kind, None, value)] == ["web"]
    other: Object = {"metadata": {"name": "web-1", "namespace": "default"}}
    assert list(controller.affected(Objects(), ENDPOINT_SLICES, None, other)) == []
