"""The resources of a pod: the sums over its containers (pkg/api/v1/resource, PodRequests and PodLimits).

Containers run at the same time, init containers one after another before them; an init container that is restarted
always (a sidecar) runs beside all that follow it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from noxu.go.quantity import Quantity, add, compare, parse
from noxu.values import Json, Object

Resources: TypeAlias = dict[str, Quantity]
Which: TypeAlias = Literal["requests", "limits"]
_POD_LEVEL: Final = ("cpu", "memory")  # and hugepages-*


def quantities(value: Json) -> Resources:
    """A list of resources of an object, such as `requests`."""
    return {name: parse(str(text)) for name, text in (value or {}).items()}


def of_container(container: Object, which: Which) -> Resources:
    return quantities((container.get("resources") or {}).get(which))


def of_pod(spec: Object, which: Which, *, overhead: bool = False) -> Resources:
    """The sum; with `overhead` that of the pod's runtime, too. Raises ValueError if numbers are too large."""
    total: Resources = {}
    for container in spec.get("containers") or ():
        total = plus(total, of_container(container, which))
    sidecars: Resources = {}
    initial: Resources = {}
    for container in spec.get("initContainers") or ():
        own = of_container(container, which)
        if container.get("restartPolicy") == "Always":
            total, sidecars = plus(total, own), plus(sidecars, own)
            initial = _larger(initial, sidecars)
        else:
            initial = _larger(initial, plus(own, sidecars))
    total = _larger(total, initial)
    for name, quantity in quantities((spec.get("resources") or {}).get(which)).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = quantity
    if overhead:
        extra = quantities(spec.get("overhead"))
        if which == "limits":  # only what is limited at all
            extra = {name: quantity for name, quantity in extra.items() if name in total}
        total = plus(total, extra)
    return total


def plus(left: Resources, right: Resources) -> Resources:
    """The sum of each resource. Raises ValueError if numbers are too large."""
    return {**left, **{name: add(left[name], item) if name in left else item for name, item in right.items()}}


def _larger(left: Resources, right: Resources) -> Resources:
    found = dict(left)
    for name, quantity in right.items():
        if name not in found or compare(quantity, found[name]) > 0:
            found[name] = quantity
    return found
