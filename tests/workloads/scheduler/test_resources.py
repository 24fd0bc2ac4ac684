"""What pods request: upstream's tables (component-helpers/resource/helpers_test.go, noderesources/fit_test.go)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.scheduler.resources import NON_ZERO, amount, requests_of
from tests.rows import rows


@rows(
    "name, text, expected",
    [
        ("cpu", "1", 1000),
        ("cpu", "250m", 250),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "1Gi", 2**30),
        ("memory", "1500m", 2),
        ("memory", "1e3", 1000),
        ("pods", "110", 110),
        ("example.com/gpu", "2", 2),
        ("memory", "1e999999999", 2**63 - 1),
        ("cpu", "9e18", 2**63 - 1),
        ("cpu", "0e999999999", 0),
    ],
)
def test_a_quantity_is_a_whole_number_that_is_rounded_up(name: str, text: str, expected: int) -> None:
    assert amount(name, text) == expected


def runs(cpu: str, **more: str) -> Object:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


@rows(
    "what, spec, expected",
    [
        ("nothing", {"containers": [{}]}, {}),
        ("containers are added", {"containers": [runs("1"), runs("500m")]}, {"cpu": 1500}),
        (
            "the largest init container",
            {"containers": [runs("1")], "initContainers": [runs("3"), runs("2")]},
            {"cpu": 3000},
        ),
        (
            "a small init container",
            {"containers": [runs("1"), runs("1")], "initContainers": [runs("1")]},
            {"cpu": 2000},
        ),
        (
            "a sidecar runs beside the containers",
            {"containers": [runs("1")], "initContainers": [runs("2", restartPolicy="Always")]},
            {"cpu": 3000},
        ),
        (
            "a sidecar runs beside the init containers after it",
            {"containers": [runs("1")], "initContainers": [runs("1", restartPolicy="Always"), runs("5")]},
            {"cpu": 6000},
        ),
        (
            "a sidecar does not run beside the init containers before it",
            {"containers": [runs("1")], "initContainers": [runs("5"), runs("1", restartPolicy="Always")]},
            {"cpu": 5000},
        ),
        (
            "overhead is added",
            {"containers": [runs("1")], "overhead": {"cpu": "100m", "memory": "8"}},
            {"cpu": 1100, "memory": 8},
        ),
        (
            "the whole pod's requests count instead",
            {"containers": [runs("1"), runs("1")], "resources": {"requests": {"cpu": "5"}}},
            {"cpu": 5000},
        ),
        (
            "the whole pod requests no devices",
            {"containers": [runs("1")], "resources": {"requests": {"example.com/gpu": "5"}}},
            {"cpu": 1000},
        ),
        (
            "and its overhead",
            {"containers": [runs("1")], "resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "1"}},
            {"cpu": 6000},
        ),
    ],
)
def test_the_requests_of_a_pod(what: str, spec: Object, expected: Object) -> None:
    assert requests_of(spec) == expected


def test_a_container_without_requests_counts_for_something_where_nodes_are_compared() -> None:
    counted = requests_of({"containers": [{}, runs("1")]}, NON_ZERO)
    assert counted == {"cpu": 1100, "memory": 2 * 200 * 2**20}
