"""Services: defaults and validation. (The server only stores them.)"""

from __future__ import annotations

import pytest

from noxu.apiserver.go.structs import decode
from noxu.apiserver.kinds.kind import Context, prepare, selected, written
from noxu.apiserver.kinds.scheme import by_group_kind
from noxu.apiserver.values import Object

SERVICE = by_group_kind()["v1", "Service"]
WEB = {"ports": [{"port": 80}]}


def typed(spec: Object, **more: Object) -> Object:
    decoded = decode(SERVICE.struct, {"metadata": {"name": "x"}, "spec": spec, **more})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    SERVICE.default(value)
    return value


PORT = {"port": 80, "protocol": "TCP", "targetPort": 80}
INSIDE = {"sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
FILLED_IN: list[tuple[str, Object, Object]] = [
    ("next to nothing", WEB, {**INSIDE, "type": "ClusterIP", "ports": [PORT]}),
    (
        "a port of another name",
        {"ports": [{"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
        {**INSIDE, "type": "ClusterIP", "ports": [{"port": 53, "protocol": "UDP", "targetPort": "dns"}]},
    ),
    (
        "a load balancer",
        {**WEB, "type": "LoadBalancer"},
        {**INSIDE, "type": "LoadBalancer", "ports": [PORT], "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True},
    ),
    (
        "clients that stay",
        {**WEB, "sessionAffinity": "ClientIP"},
        {
            "type": "ClusterIP", "ports": [PORT], "sessionAffinity": "ClientIP", "internalTrafficPolicy": "Cluster",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        },
    ),
    (
        "another name",
        {"type": "ExternalName", "externalName": "example.com"},
        {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "filled"), [row[1:] for row in FILLED_IN], ids=[row[0] for row in FILLED_IN])
def test_services_are_defaulted(given: Object, filled: Object) -> None:
    value = typed(given)
    assert value["spec"] == filled
    SERVICE.default(value)
    assert value["spec"] == filled, "and stays"


REFUSED: list[tuple[str, Object, list[str]]] = [
    ("a port", WEB, []),
    ("no ports", {}, ["spec.ports: Required value"]),
    ("no ports, and no address", {"clusterIP": "None"}, []),
    ("no other name", {"type": "ExternalName"}, ["spec.externalName: Required value"]),
    ("a port that is none", {"ports": [{"port": 0}]}, ["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
    ("ports without names", {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, ["spec.ports[0].name: Required value"]),
    ("ports of one name", {"ports": [{"port": 1, "name": "b"}, {"port": 2, "name": "b"}]}, ['spec.ports[1].name: Duplicate value: "b"']),
    ("a protocol that is none", {"ports": [{"port": 1, "protocol": "X"}]}, ['spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"']),
    ("a type that is none", {**WEB, "type": "X"}, ['spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"']),
    ("an affinity that is none", {**WEB, "sessionAffinity": "X"}, ['spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None"']),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "messages"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_services_are_validated(spec: Object, messages: list[str]) -> None:
    assert [str(error) for error in SERVICE.validate(typed(spec), None, Context())] == messages


ADDRESSES: list[tuple[str, Object, Object, str]] = [
    ("a new one is headless", WEB, {}, "None"),
    ("a requested address is assigned", {**WEB, "clusterIP": "10.0.0.1"}, {}, "10.0.0.1"),
    ("an update that does not name the address keeps it", WEB, {**WEB, "clusterIP": "10.0.0.1"}, "10.0.0.1"),
    ("another name has none", {"type": "ExternalName", "externalName": "x"}, {}, ""),
]


@pytest.mark.parametrize(
    ("spec", "before", "address"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES]
)
def test_addresses(spec: Object, before: Object, address: str) -> None:
    new = typed(spec)
    prepare(SERVICE, new, typed(before) if before else None)
    assert new["spec"].get("clusterIP", "") == address
    assert new["spec"].get("clusterIPs", []) == ([address] if address else [])


def test_its_status_has_an_endpoint_of_its_own() -> None:
    ready = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    old, new = typed(WEB), typed({"ports": [{"port": 81}]}, status=ready)
    prepare(SERVICE, new, old, Context("status"))
    assert (new["spec"]["ports"][0]["port"], new["status"]) == (80, ready)
    new = typed(WEB, status=ready)
    prepare(SERVICE, new, None)
    assert written(SERVICE, new)["status"] == {"loadBalancer": {}}


def test_field_selectors() -> None:
    assert selected(SERVICE, typed(WEB)) == {"spec.clusterIP": "", "spec.type": "ClusterIP"}
