"""What simulated pods and nodes use."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.values import Object
from noxu.workloads import usage
from tests.rows import rows


def pod(containers: Object, annotations: Object | None = None, *, running: str = "a b s") -> Object:
    """A pod whose containers request what a text says, such as `cpu=500m memory=1Gi`; s is a sidecar."""
    specs = {
        name: {"name": name, "resources": {"requests": dict(pair.split("=") for pair in text.split())}}
        for name, text in containers.items()
    }
    statuses = {
        name: {"name": name, "state": {"running" if name in running.split() else "waiting": {}}} for name in specs
    }
    status = {
        "containerStatuses": [statuses[name] for name in specs if name != "s"],
        "initContainerStatuses": [statuses[name] for name in specs if name == "s"],
    }
    spec = {
        "containers": [specs[name] for name in specs if name != "s"],
        "initContainers": [specs[name] for name in specs if name == "s"],
    }
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": spec, "status": status}


MI = 1 << 20
ROWS: list[tuple[str, Object, dict[str, tuple[int, int]]]] = [
    ("a tenth of the requests", pod({"a": "cpu=500m memory=100Mi"}), {"a": (50, 10 * MI)}),
    ("the least", pod({"a": ""}), {"a": (1, 8 * MI)}),
    ("as annotated", pod({"a": "cpu=1"}, {"noxu.dev/cpu": "250m", "noxu.dev/memory": "64Mi"}), {"a": (250, 64 * MI)}),
    ("shared", pod({"a": "", "b": ""}, {"noxu.dev/cpu": "1"}), {"a": (500, 8 * MI), "b": (500, 8 * MI)}),
    ("of one container", pod({"a": "", "b": "cpu=1"}, {"noxu.dev/cpu.a": "2"}), {"a": (2000, 8 * MI), "b": (100, 8 * MI)}),
    ("a sidecar", pod({"a": "", "s": "cpu=1"}), {"a": (1, 8 * MI), "s": (100, 8 * MI)}),
    ("what waits", pod({"a": "cpu=1", "b": "cpu=1"}, running="b"), {"b": (100, 8 * MI)}),
    ("none", pod({"a": "cpu=1"}, running=""), {}),
    ("no status", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}, {}),
    ("no quantity", pod({"a": "cpu=1"}, {"noxu.dev/cpu": "much"}), {"a": (100, 8 * MI)}),
]  # fmt: skip


@rows("value, expected", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_a_pod_uses(value: Object, expected: dict[str, tuple[int, int]]) -> None:
    used = usage.of_pod(value)
    assert {name: (each["cpu"], each["memory"]) for name, each in used.items()} == expected


def test_a_node_uses_what_its_pods_use_and_a_little() -> None:
    first, second = pod({"a": "cpu=1"}), pod({"a": ""}, {"noxu.dev/memory": "1Gi"})
    assert usage.of_node([first, second]) == {"cpu": 151, "memory": (256 + 8 + 1024) * MI}


@rows(
    "resource, text, expected",
    [
        ("cpu", "250m", 250),
        ("cpu", "1", 1000),
        ("cpu", "0.5", 500),
        ("cpu", "1n", 1),
        ("cpu", "2k", 2_000_000),
        ("memory", "1Ki", 1024),
        ("memory", "1500m", 2),
        ("memory", "1e3", 1000),
        ("cpu", "", None),
        ("cpu", "x", None),
        ("cpu", "1e999", None),
        ("memory", None, None),
    ],
)
def test_quantities_are_rounded_up(resource: str, text: Any, expected: int | None) -> None:
    assert usage.amount(resource, text) == expected


@pytest.mark.parametrize(
    ("resource", "number", "expected"), [("cpu", 250, "250m"), ("memory", 65536, "64Ki"), ("memory", 1000, "1000")]
)
def test_quantities_are_written_as_metrics_server_does(resource: str, number: int, expected: str) -> None:
    assert usage.text(resource, number) == expected
