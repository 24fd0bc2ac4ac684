"""Pods by their labels."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.objects import PODS, Objects
from noxu.workloads.writes import NamespacedName
from tests.rows import rows


def pod(name: str, namespace: str = "default", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {}}


def there() -> Objects:
    pods = [
        pod("a", app="web", tier="front"),
        pod("b", app="web"),
        pod("c", app="db"),
        pod("d", "other", app="web"),
        pod("e"),
    ]
    return Objects((PODS, value) for value in pods)


def names(objects: Objects, **labels: str) -> str:
    return " ".join(value["metadata"]["name"] for value in objects.pods_with("default", labels))


@rows(
    "labels, expected",
    [
        ({"app": "web"}, "a b"),
        ({"app": "web", "tier": "front"}, "a"),
        ({"app": "web", "tier": "back"}, ""),
        ({"nope": "web"}, ""),
        ({}, "a b c e"),
    ],
)
def test_pods_with_labels(labels: dict[str, str], expected: str) -> None:
    assert names(there(), **labels) == expected


def test_pods_change_their_labels_and_go() -> None:
    objects = there()
    objects.put(PODS, pod("a", app="db", tier="front"))
    objects.put(PODS, {**pod("b", app="web"), "spec": {"nodeName": "node-1"}})
    assert (names(objects, app="web"), names(objects, app="db")) == ("b", "c a")
    assert objects.pods_with("default", {"app": "web"})[0]["spec"] == {"nodeName": "node-1"}, "the newest state"
    objects.remove(PODS, NamespacedName("default", "c"))
    objects.remove(PODS, NamespacedName("default", "a"))
    assert names(objects, app="db") == ""
    objects.clear()
    assert names(objects, app="web") == ""
