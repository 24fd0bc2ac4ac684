"""What simulated pods and nodes use of CPU and memory, as annotations of pods say; else a small part of what they request.

    noxu.dev/cpu: 250m          of the pod, which its containers share equally
    noxu.dev/cpu.NAME: 200m     of the container NAME
    noxu.dev/memory: 64Mi       likewise

Only containers that run use anything. A node uses what its pods use, and a little itself. Numbers are thousandths of a CPU, and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from noxu.go import quantity
from noxu.values import MAX_INT64, MIN_INT64, Object

RESOURCES: Final = ("cpu", "memory")
Usage = Mapping[str, int]
"""By resource: thousandths of a CPU, bytes."""

PART_OF_REQUESTS: Final = 10  # a tenth
LEAST: Final[Usage] = {"cpu": 1, "memory": 8 << 20}
"""Of a container that requests nothing."""
OF_A_NODE: Final[Usage] = {"cpu": 50, "memory": 256 << 20}
_PLACES: Final = {"cpu": 3}  # thousandths; anything else is counted in bytes


def amount(resource: str, text: object) -> int | None:
    """A quantity as a number, rounded up; None: it is none, or no int64 holds it."""
    try:
        found = quantity.parse(str(text))
    except ValueError:
        return None
    value = quantity.scaled_value(found, _PLACES.get(resource, 0))
    return value if MIN_INT64 < value < MAX_INT64 else None


def annotation(resource: str, container: str = "") -> str:
    return f"noxu.dev/{resource}.{container}" if container else f"noxu.dev/{resource}"


def of_pod(pod: Object) -> dict[str, Usage]:
    """What the containers of a pod that run use, by their names; empty: none runs."""
    running = list(_running(pod))
    return {
        container["name"]: {resource: _of_container(pod, container, resource, len(running)) for resource in RESOURCES}
        for container in running
    }


def total(usages: Iterable[Usage]) -> dict[str, int]:
    listed = list(usages)
    return {resource: sum(each[resource] for each in listed) for resource in RESOURCES}


def of_node(pods: Iterable[Object]) -> Usage:
    """What a node with these pods uses."""
    return total([OF_A_NODE, *(each for pod in pods for each in of_pod(pod).values())])


def text(resource: str, number: int) -> str:
    """A quantity, as metrics-server writes it."""
    if resource == "cpu":
        return f"{number}m"
    return str(number) if number % 1024 else f"{number // 1024}Ki"


def requested(container: Object, resource: str) -> int | None:
    """None: nothing."""
    asked = ((container.get("resources") or {}).get("requests") or {}).get(resource)
    return None if asked is None else amount(resource, asked)


def _of_container(pod: Object, container: Object, resource: str, sharing: int) -> int:
    annotations = pod["metadata"].get("annotations") or {}
    own = amount(resource, annotations.get(annotation(resource, container["name"]), ""))
    if own is not None:
        return own
    shared = amount(resource, annotations.get(annotation(resource), ""))
    if shared is not None:
        return shared // sharing
    asked = requested(container, resource)
    return LEAST[resource] if asked is None else asked // PART_OF_REQUESTS


def _running(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    for part in ("containers", "initContainers"):
        statuses = status.get(f"{part[:-1]}Statuses") or ()
        running = {each["name"] for each in statuses if "running" in (each.get("state") or {})}
        yield from (container for container in pod["spec"].get(part) or () if container["name"] in running)
