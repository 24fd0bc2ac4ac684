"""endpoints-controller (situations of pkg/controller/endpoint/endpoints_controller_test.go)."""

from __future__ import annotations

from typing import Any

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.endpoints import MAX_ADDRESSES, EndpointsController
from noxu.workloads.objects import ENDPOINTS, PODS, SERVICES, Objects
from noxu.workloads.writes import Kind, NamespacedName
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.services import HTTP, TIME, pod, pods, service

controller = object.__new__(EndpointsController)  # its steps need nothing of a server


def run(play: Play) -> list[str]:
    assert play.run(controller.steps, "default/web") is None
    return play.done()


def subsets(*objects: tuple[Kind, Object]) -> list[Object]:
    """Subsets as texts: the ready addresses, the others, the ports."""
    play = Play(*objects)
    run(play)
    return [
        (
            " ".join(each["ip"] for each in subset.get("addresses") or ()),
            " ".join(each["ip"] for each in subset.get("notReadyAddresses") or ()),
            " ".join(f"{port.get('name', '')}:{port['port']}/{port['protocol']}" for port in subset.get("ports") or ()),
        )
        for subset in play.get(ENDPOINTS, "default/web")["subsets"]
    ]


NAMED = {"name": "tls", "port": 443, "targetPort": "web", "protocol": "TCP"}
FOUR, SIX = "10.1.0.1", "2000::1"


@rows(
    "situation, objects, expected",
    [
        ("a service without pods", [service()], []),
        ("ready pods, by address", [service(), pod(2), pod(1)], [("10.1.0.1 10.1.0.2", "", "http:8080/TCP")]),
        ("one is not ready", [service(), pod(1), pod(2, ready=False)], [("10.1.0.1", "10.1.0.2", "http:8080/TCP")]),
        ("one is being deleted", [service(), pod(1), pod(2, ending=True)], [("10.1.0.1", "", "http:8080/TCP")]),
        ("one has ended", [service(), pod(1, phase="Succeeded"), pod(2, phase="Failed", ready=False)], []),
        ("one has no address", [service(), pod(1, addresses=[])], []),
        ("one has an address of loopback", [service(), pod(1), pod(2, addresses=["127.1.0.2"])], [("10.1.0.1", "", "http:8080/TCP")]),
        ("one has other labels", [service(), pod(1, labels={"app": "other"})], []),
        (
            "all are published, ready or not",
            [service(publishNotReadyAddresses=True), pod(1, ready=False), pod(2, ending=True, ready=False)],
            [("10.1.0.1 10.1.0.2", "", "http:8080/TCP")],
        ),
        ("a named port", [service(ports=[NAMED]), pod(1)], [("10.1.0.1", "", "tls:8443/TCP")]),
        ("a named port that no container has", [service(ports=[{**NAMED, "targetPort": "nope"}]), pod(1)], []),
        ("two ports", [service(ports=[NAMED, HTTP]), pod(1)], [("10.1.0.1", "", "http:8080/TCP tls:8443/TCP")]),
        ("headless, without ports", [service(clusterIP="None", ports=[]), pod(1)], [("10.1.0.1", "", "")]),
        ("not headless, without ports", [service(ports=[]), pod(1)], []),
        ("both families: the first one", [service(ipFamilies=["IPv6", "IPv4"]), pod(1, addresses=[FOUR, SIX])], [(SIX, "", "http:8080/TCP")]),
        ("a family that the pod does not have", [service(ipFamilies=["IPv6"]), pod(1)], []),
    ],
)  # fmt: skip
def test_subsets(situation: str, objects: list[tuple[Kind, Object]], expected: list[Any]) -> None:
    assert subsets(*objects) == expected, situation


def test_an_address_says_which_pod_it_is() -> None:
    play = Play(service(), pod(1, hostname="a", subdomain="web"), pod(2, hostname="b", subdomain="other"))
    run(play)
    [subset] = play.get(ENDPOINTS, "default/web")["subsets"]
    reference = {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": "pod-1"}
    assert subset["addresses"][0] == {"ip": "10.1.0.1", "hostname": "a", "nodeName": "node-1", "targetRef": reference}
    assert "hostname" not in subset["addresses"][1]


OTHERS: Object = {"metadata": {"name": "web", "namespace": "default"}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]}
ELECTS: Object = {"metadata": {**OTHERS["metadata"], "annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}}


@rows(
    "situation, objects, written",
    [
        ("nothing is there", [], []),
        ("a service without a selector", [service(selector=None), (ENDPOINTS, OTHERS)], []),
        ("a service that is a name", [service(type="ExternalName"), pod(1)], []),
        ("they are new", [service(), pod(1)], ["create endpoints web"]),
        ("they are different", [service(), pod(1), (ENDPOINTS, OTHERS)], ["update endpoints web"]),
        ("the service is gone", [(ENDPOINTS, OTHERS)], ["delete endpoints web"]),
        ("they elect a leader", [(ENDPOINTS, ELECTS)], []),
    ],
)
def test_writes(situation: str, objects: list[tuple[Kind, Object]], written: list[str]) -> None:
    assert run(Play(*objects)) == written, situation


def test_they_are_written_when_something_changes() -> None:
    play = Play(service(labels={"tier": "front"}), pod(1))
    run(play)
    assert run(play) == []
    metadata = play.get(ENDPOINTS, "default/web")["metadata"]
    assert metadata["labels"] == {"tier": "front", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert metadata["annotations"] == {"endpoints.kubernetes.io/last-change-trigger-time": TIME}
    play.add(*pod(1, ready=False, since="2026-01-01T00:05:00Z"))
    assert run(play) == ["update endpoints web"]
    metadata = play.get(ENDPOINTS, "default/web")["metadata"]
    assert metadata["annotations"] == {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:05:00Z"}
    play.objects.remove(PODS, NamespacedName("default", "web-1"))
    assert run(play) == ["update endpoints web"]
    assert (
        "annotations" not in play.get(ENDPOINTS, "default/web")["metadata"]
        or not play.get(ENDPOINTS, "default/web")["metadata"]["annotations"]
    )
    play.add(*service(labels={"tier": "back"}, clusterIP="None"))
    assert run(play) == ["update endpoints web"]
    assert play.get(ENDPOINTS, "default/web")["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


@rows(
    "ready, unready, kept",
    [
        (MAX_ADDRESSES, 0, None),
        (MAX_ADDRESSES + 1, 0, (MAX_ADDRESSES, 0)),
        (MAX_ADDRESSES + 1, 5, (MAX_ADDRESSES, 0)),
        (MAX_ADDRESSES - 1, 5, (MAX_ADDRESSES - 1, 1)),
    ],
)
def test_more_than_a_thousand_addresses(ready: int, unready: int, kept: tuple[int, int] | None) -> None:
    play = Play(service(), *pods(1, ready), *pods(ready + 1, ready + unready, ready=False))
    run(play)
    found = play.get(ENDPOINTS, "default/web")
    [subset] = found["subsets"]
    is_truncated = found["metadata"]["annotations"].get("endpoints.kubernetes.io/over-capacity") == "truncated"
    numbers = len(subset.get("addresses") or ()), len(subset.get("notReadyAddresses") or ())
    assert (numbers if is_truncated else None) == kept
    assert run(play) == []


CAUSE = {"reason": "NamespaceTerminating"}


@rows(
    "situation, details, raises",
    [("the namespace is being deleted", {"causes": [CAUSE]}, False), ("a policy refuses them", {}, True)],
)
def test_refused_endpoints(situation: str, details: Object, raises: bool) -> None:
    play = Play(service(), pod(1), refuse=lambda write: ApiError(403, "no", "Forbidden", details))
    try:
        written = run(play)
    except ApiError:
        assert raises, situation
        text = "Failed to create endpoint for service default/web: no"
        assert play.done() == ["create endpoints web", f"event Warning FailedToCreateEndpoint: {text}"]
    else:
        assert not raises, situation
        assert written == ["create endpoints web"]


READY, UNREADY = pod(1)[1], pod(1, ready=False)[1]
STARTED = {**READY, "status": {**READY["status"], "startTime": TIME}}
OTHER = pod(1, labels={"app": "other"})[1]


@rows(
    "situation, kind, old, new, keys",
    [
        ("a pod is created", PODS, None, READY, ["web"]),
        ("a pod is deleted", PODS, READY, None, ["web"]),
        ("a pod becomes ready", PODS, UNREADY, READY, ["web"]),
        ("a pod changes otherwise", PODS, READY, STARTED, []),
        ("a pod loses its labels", PODS, READY, OTHER, ["web"]),
        ("the pod of another service", PODS, None, OTHER, []),
        ("the service changes", SERVICES, None, service()[1], ["web"]),
        ("endpoints are deleted", ENDPOINTS, OTHERS, None, ["web"]),
        ("endpoints are written", ENDPOINTS, None, OTHERS, []),
    ],
)
def test_what_concerns_a_service(
    situation: str, kind: Kind, old: Object | None, new: Object | None, keys: list[str]
) -> None:
    objects = Objects(
        [service(), service(name="none", selector=None), service(name="third", selector={"app": "third"})]
    )
    assert [key.name for key in controller.affected(objects, kind, old, new)] == keys, situation


def test_all_services_and_what_deleted_ones_have_left() -> None:
    left: Object = {"metadata": {"name": "left", "namespace": "default"}}
    objects = Objects([service(), (ENDPOINTS, OTHERS), (ENDPOINTS, left)])
    assert [key.name for key in controller.keys(objects)] == ["web", "left"]
