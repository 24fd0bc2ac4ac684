"""Services: defaults, what an update keeps, and validation."""

from __future__ import annotations

import pytest

from noxu.go.structs import decode
from noxu.kinds.kind import Context, prepare, selected, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

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
    ("a port that is none", {"ports": [{"port": 0}]}, ["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"]),
    ("ports without names", {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, ["spec.ports[0].name: Required value"]),
    ("ports of one name", {"ports": [{"port": 1, "name": "b"}, {"port": 2, "name": "b"}]}, ['spec.ports[1].name: Duplicate value: "b"']),
    ("a protocol that is none", {"ports": [{"port": 1, "protocol": "X"}]}, ['spec.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"']),
    ("a type that is none", {**WEB, "type": "X"}, ['spec.type: Unsupported value: "X": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"']),
    ("an affinity that is none", {**WEB, "sessionAffinity": "X"}, ['spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None"']),
]  # fmt: skip


@rows(("spec", "messages"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_services_are_validated(spec: Object, messages: list[str]) -> None:
    new = typed(spec)
    prepare(SERVICE, new, None)
    assert [str(error) for error in SERVICE.validate(new, None, Context())] == messages


ONE = {"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"]}
NODE = {"type": "NodePort", **ONE, "ports": [{"name": "a", "port": 80, "nodePort": 30080}]}
SINGLE = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
CARRIED: list[tuple[str, Object, Object, Object]] = [
    ("a new service has one family", WEB, {}, SINGLE),
    ("a headless one, too", {**WEB, "clusterIP": "None", "selector": {"a": "b"}}, {}, {**SINGLE, "clusterIPs": ["None"]}),
    ("a headless one without selector has both", {"clusterIP": "None"}, {},
     {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}),
    ("a requested address is the first of all", {**WEB, "clusterIP": "10.0.0.5"}, {}, ONE),
    ("an update that does not name the address keeps it", WEB, {**WEB, **ONE}, ONE),
    ("one that only names the first keeps the list", {**WEB, "clusterIP": "10.0.0.5"}, {**WEB, **ONE}, ONE),
    ("node ports stay with their names", {"type": "NodePort", "ports": [{"name": "a", "port": 81}]}, NODE,
     {**ONE, "ports": [{"name": "a", "port": 81, "protocol": "TCP", "targetPort": 81, "nodePort": 30080}]}),
    ("unless another port has it", {"type": "NodePort", "ports": [{"name": "b", "port": 1, "nodePort": 30080}, {"name": "a", "port": 2}]},
     NODE, {"ports": [{"name": "b", "port": 1, "protocol": "TCP", "targetPort": 1, "nodePort": 30080},
                      {"name": "a", "port": 2, "protocol": "TCP", "targetPort": 2}]}),
    ("another type drops them", {**NODE, "type": "ClusterIP"}, NODE,
     {"ports": [{"name": "a", "port": 80, "protocol": "TCP", "targetPort": 80}]}),
    ("and an external name drops the address", {"type": "ExternalName", "externalName": "x", **ONE}, {**WEB, **ONE},
     {"clusterIP": None, "clusterIPs": None, "ipFamilies": None}),
]  # fmt: skip


@rows(("spec", "before", "expected"), [row[1:] for row in CARRIED], ids=[row[0] for row in CARRIED])
def test_addresses_and_ports_are_carried_over(spec: Object, before: Object, expected: Object) -> None:
    new, old = typed(spec), None
    if before:
        old = typed(before)
        prepare(SERVICE, old, None)
    prepare(SERVICE, new, old)
    assert {name: new["spec"].get(name) for name in expected} == expected


UPDATES: list[tuple[str, Object, Object, list[str]]] = [
    ("the same address", {**WEB, **ONE}, {**WEB, **ONE}, []),
    ("another address", {**WEB, "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"]}, {**WEB, **ONE},
     ['spec.clusterIPs[0]: Invalid value: ["10.0.0.9"]: may not change once set']),
    ("none at all", {**WEB, "clusterIP": "None"}, {**WEB, **ONE},
     ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set']),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "before", "messages"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_an_address_cannot_be_changed(spec: Object, before: Object, messages: list[str]) -> None:
    new, old = typed(spec), typed(before)
    prepare(SERVICE, old, None)
    prepare(SERVICE, new, old)
    assert [str(error) for error in SERVICE.validate(new, old, Context())] == messages


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
