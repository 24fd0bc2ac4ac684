"""The addresses of pods."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.kubelet.addresses import Addresses
from noxu.workloads.nodes import node
from noxu.workloads.objects import PODS, Objects
from noxu.workloads.writes import NamespacedName

NODE = node("node-1", 1)


def pod(name: str, address: str = "") -> Object:
    status = {"podIP": address} if address else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}


def objects(*pods: Object) -> Objects:
    return Objects((PODS, each) for each in pods)


def test_pods_that_start_at_the_same_time_have_different_addresses() -> None:
    addresses, there = Addresses(), objects(pod("a"), pod("b"))
    assert [addresses.give(pod(name), NODE, there) for name in "aba"] == ["10.244.0.2", "10.244.0.3", "10.244.0.2"]


def test_an_address_of_a_status_is_not_given_again() -> None:
    assert Addresses().give(pod("b"), NODE, objects(pod("a", "10.244.0.2"), pod("b"))) == "10.244.0.3"


def test_the_addresses_of_pods_that_are_gone_are_given_again_when_all_others_were_given() -> None:
    addresses, there = Addresses(), objects()
    given = []
    for number in range(260):
        there.put(PODS, pod(f"p{number}"))
        given.append(addresses.give(pod(f"p{number}"), NODE, there))
        there.remove(PODS, NamespacedName("default", f"p{number}"))
    assert len(set(given)) == 253
    assert given[0] == given[253] == "10.244.0.2"


def test_a_node_without_a_range_takes_another_one() -> None:
    made_by_hand: Object = {"metadata": {"name": "node-1"}, "spec": {}}
    assert Addresses().give(pod("a"), made_by_hand, objects(pod("a"))) == "10.243.0.2"
