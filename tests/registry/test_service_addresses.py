"""The addresses and node ports of services: unique, chosen or as requested, and free again when a service is gone."""

from __future__ import annotations

import pytest

from noxu.api.errors import ApiError
from noxu.go.structs import decode
from noxu.kinds.kind import prepare
from noxu.kinds.scheme import by_group_kind
from noxu.registry.service_addresses import NOTHING, Allocated, Pool, allocated
from noxu.values import Object

SERVICE = by_group_kind()["v1", "Service"]
FIRST = {f"10.0.0.{n}" for n in range(1, 17)}


def service(name: str = "s", old: Object | None = None, **spec: object) -> Object:
    value: Object = decode(
        SERVICE.struct, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
    ).value
    SERVICE.default(value)
    prepare(SERVICE, value, old)
    return value


def create(pool: Pool, value: Object) -> Object:
    """Write a service: allocate, store, end the reservation."""
    end = pool.allocate(value, None, value["metadata"]["name"])
    pool.hold(value["metadata"]["name"], allocated(value))
    end()
    return value


def refusal(pool: Pool, value: Object, old: Object | None = None) -> str:
    with pytest.raises(ApiError) as raised:
        pool.allocate(value, old, "other")
    return str(raised.value)


def test_every_service_has_an_address_of_its_own() -> None:
    pool = Pool(seed=1)
    addresses = [create(pool, service(f"s{n}"))["spec"]["clusterIP"] for n in range(200)]
    assert len(set(addresses)) == 200
    assert not FIRST & set(addresses), "The lower part of the range is for addresses that clients choose."


def test_when_the_upper_part_is_full_the_lower_part_is_used_and_then_the_range_is_full() -> None:
    pool = Pool(seed=1)
    addresses = {create(pool, service(f"s{n}"))["spec"]["clusterIP"] for n in range(254)}
    assert addresses == {f"10.0.0.{n}" for n in range(1, 255)}
    message = 'Internal error occurred: failed to allocate a serviceIP for Service "more": range is full'
    assert refusal(pool, service("more")) == message
    pool.hold("s7", NOTHING)
    assert create(pool, service("more"))["spec"]["clusterIP"]


def test_a_large_range_is_not_listed() -> None:
    pool = Pool("10.0.0.0/8", seed=1)
    assert create(pool, service())["spec"]["clusterIP"].startswith("10.")


def test_two_writes_at_the_same_time_get_different_addresses() -> None:
    pool = Pool("10.0.0.0/30", seed=1)
    one, two = service("one"), service("two")
    end = pool.allocate(one, None, "one")
    pool.allocate(two, None, "two")
    assert one["spec"]["clusterIP"] != two["spec"]["clusterIP"]
    assert "range is full" in refusal(pool, service("three"))
    end()  # the first has been refused
    assert create(pool, service("three"))["spec"]["clusterIP"] == one["spec"]["clusterIP"]


def test_what_an_allocation_that_fails_has_reserved_is_free_again() -> None:
    pool = Pool("10.0.0.0/30", seed=1)
    for _ in range(3):
        assert "not in the valid range" in refusal(pool, service(type="NodePort", ports=[{"port": 1, "nodePort": 1}]))
    create(pool, service("one"))
    create(pool, service("two"))


REFUSED = [
    ("an address that is taken", {"clusterIP": "10.0.0.1"},
     'Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: provided IP is '
     "already allocated"),
    ("an address outside the range", {"clusterIP": "1.2.3.4"},
     'Service "s" is invalid: spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided '
     "network does not match the current range"),
    ("a node port that is taken", {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30080}]},
     'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated'),
    ("a node port outside the range", {"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]},
     'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range '
     "of valid ports is 30000-32767"),
    ("two families", {"ipFamilyPolicy": "RequireDualStack"},
     'Service "s" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for '
     "dual-stack services"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(spec: Object, message: str) -> None:
    pool = Pool(seed=1)
    pool.hold("other service", Allocated(frozenset({"10.0.0.1"}), frozenset({30080})))
    assert refusal(pool, service(**spec)) == message


WITHOUT = [
    ("a headless service", {"clusterIP": "None"}, "None"),
    ("an external name", {"type": "ExternalName", "externalName": "x", "ports": []}, ""),
]


@pytest.mark.parametrize(("spec", "address"), [row[1:] for row in WITHOUT], ids=[row[0] for row in WITHOUT])
def test_services_without_an_address(spec: Object, address: str) -> None:
    pool = Pool(seed=1)
    value = create(pool, service(**spec))
    assert value["spec"].get("clusterIP", "") == address
    assert pool.owners() == set()


PORTS = [
    ("a cluster address has none", {}, 0, 0),
    ("each port of a node port has one", {"type": "NodePort", "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}, 2, 0),
    ("those of a load balancer, too", {"type": "LoadBalancer"}, 1, 0),
    ("unless it wants none", {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, 0, 0),
    ("a local load balancer has one for its health checks", {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "ports", "checks"), [row[1:] for row in PORTS], ids=[row[0] for row in PORTS])
def test_node_ports(spec: Object, ports: int, checks: int) -> None:
    pool = Pool(seed=1)
    value = create(pool, service(**spec))["spec"]
    numbers = [port["nodePort"] for port in value["ports"] if port.get("nodePort")]
    assert (len(set(numbers)), bool(value.get("healthCheckNodePort"))) == (ports, bool(checks))
    assert all(30_000 <= number <= 32_767 for number in numbers)


def test_an_update_keeps_its_own_address_and_ports() -> None:
    pool = Pool(seed=1)
    old = create(pool, service(type="NodePort"))
    new = service(old=old, type="NodePort", ports=[{"port": 81}])
    pool.allocate(new, old, "s")()
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]


def test_a_service_that_becomes_an_external_name_gives_its_address_back() -> None:
    pool = Pool("10.0.0.0/30", seed=1)
    old = create(pool, service("one"))
    new = service("one", old=old, type="ExternalName", externalName="x", ports=[])
    pool.allocate(new, old, "one")()
    pool.hold("one", allocated(new))
    assert pool.owners() == set()
    back = service("one", old=new)
    pool.allocate(back, new, "one")
    assert back["spec"]["clusterIP"]
