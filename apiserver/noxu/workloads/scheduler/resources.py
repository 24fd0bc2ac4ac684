"""What a pod requests of a node, and what a node has: whole numbers, as NodeResourcesFit compares them.

cpu is counted in thousandths and everything else in units (bytes, GPUs), both rounded up: `{"cpu": 500, "memory": 67108864}`.

Containers run at the same time, init containers one after another before them; an init container that is restarted always
(a sidecar) runs beside all that follow it. Requests of the whole pod count instead of the sums of its containers, and its
overhead is added. Sources: component-helpers/resource/helpers.go, pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from noxu.go.quantity import parse, scaled_value
from noxu.values import Object

Amounts = dict[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
_OF_PODS: Final = (CPU, MEMORY)  # and hugepages: what a whole pod may request
NON_ZERO: Final[Amounts] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that requests nothing counts for, where nodes are compared (util.GetNonzeroRequests)."""


@lru_cache(maxsize=4096)
def amount(name: str, text: str) -> int:
    """A quantity of a resource as a whole number."""
    return scaled_value(parse(text), 3 if name == CPU else 0)


def amounts(quantities: Mapping[str, str] | None) -> Amounts:
    return {name: amount(name, text) for name, text in (quantities or {}).items()}


def requests_of(spec: Object, least: Amounts | None = None) -> Amounts:
    """The requests of a pod's spec. `least`: what a container counts for that requests none of a resource."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _of_container(container, least))
    beside: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        requests = _of_container(container, least)
        if container.get("restartPolicy") == "Always":
            add(total, requests)
            add(beside, requests)
            _raise(largest, beside)
        else:
            _raise(largest, {name: beside.get(name, 0) + requests.get(name, 0) for name in {**beside, **requests}})
    _raise(total, largest)
    for name, value in amounts((spec.get("resources") or {}).get("requests")).items():
        if name in _OF_PODS or name.startswith("hugepages-"):
            total[name] = value
    add(total, amounts(spec.get("overhead")))
    return total


def _of_container(container: Object, least: Amounts | None) -> Amounts:
    requests = amounts((container.get("resources") or {}).get("requests"))
    return requests if least is None else {**least, **requests}


def add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def subtract(total: Amounts, less: Mapping[str, int]) -> None:
    for name, value in less.items():
        total[name] = total.get(name, 0) - value


def _raise(total: Amounts, least: Mapping[str, int]) -> None:
    for name, value in least.items():
        if value > total.get(name, 0):
            total[name] = value
