"""The addresses of pods: each node gives those of its range in turn, as the CNI plugin host-local does.

A pod of the node's network has the node's address. An address is free again when its pod is gone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from noxu.values import Object
from noxu.workloads.objects import Objects

WITHOUT_RANGE: Final = ipaddress.ip_network("10.243.0.0/16")
"""The addresses of pods on nodes that have no range: persons made them."""
RESERVED: Final = 2  # the network itself and its gateway


_FEW: Final = 16  # addresses that are kept after they are used


class Addresses:
    """It remembers the addresses that it has given until they are in the statuses of their pods."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, str]] = {}  # by node, by the uid of the pod
        self._last: dict[str, int] = {}

    def give(self, pod: Object, node: Object, objects: Objects) -> str:
        """The address of a pod that starts on a node; the same one if it is asked again."""
        name, uid = node["metadata"]["name"], pod["metadata"]["uid"]
        given = self._given.setdefault(name, {})
        if uid not in given:
            pods = objects.on_node(name)
            if len(given) > len(pods) + _FEW:
                self._forget(given, pods)
            used = {(each.get("status") or {}).get("podIP") for each in pods} | set(given.values())
            given[uid] = self._next(name, _network(node), used)
        return given[uid]

    def _forget(self, given: dict[str, str], pods: Sequence[Object]) -> None:
        """Forget the addresses that are in the statuses of their pods, and those of pods that are gone."""
        waiting = {each["metadata"]["uid"] for each in pods if not (each.get("status") or {}).get("podIP")}
        for owner in given.keys() - waiting:
            del given[owner]

    def _next(self, node: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network, used: set[str | None]) -> str:
        size = network.num_addresses - RESERVED - 1  # without the broadcast address
        last = self._last.get(node, -1)
        for step in range(1, size + 1):
            position = (last + step) % size
            address = str(network[RESERVED + position])
            if address not in used:
                self._last[node] = position
                return address
        raise ValueError(f"node {node} has no free address in {network}")


def _network(node: Object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    given = (node.get("spec") or {}).get("podCIDR")
    return ipaddress.ip_network(given, strict=False) if given else WITHOUT_RANGE


def host_addresses(node: Object) -> list[str]:
    """The addresses of a node itself."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    return [each["address"] for each in addresses if each.get("type") == "InternalIP"]
