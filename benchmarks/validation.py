"""How long validation takes, and what ratcheting adds: `python -m benchmarks.validation`.

Times are the best of several runs, in one interleaved sequence; the ratio compares an update of a valid object with
plain validation of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.api.types import Json, Object
from apiserver.schema import listtype, patterns
from apiserver.schema.ratcheting import validate_update
from apiserver.schema.structural import parse
from apiserver.schema.validation import validate

ROUNDS = 7
NAME = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
CONDITION: Object = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "message": {"type": "string", "maxLength": 32768},
    },
}
PORT: Object = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": NAME,
        "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        "target": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
SCHEMA = parse(
    {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["template"],
                "properties": {
                    "replicas": {"type": "integer", "format": "int32", "minimum": 0},
                    "template": {
                        "type": "object",
                        "properties": {
                            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                            "image": {"type": "string", "minLength": 1},
                            "args": {"type": "array", "items": {"type": "string"}},
                            "ports": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["name"],
                                "items": PORT,
                            },
                        },
                    },
                    "strategy": {"type": "string", "enum": ["Recreate", "RollingUpdate"]},
                    "ttl": {"type": "string", "format": "duration"},
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "conditions": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["type"],
                        "items": CONDITION,
                    }
                },
            },
        },
    }
)


def sample() -> Object:
    """About 2 KB of a valid object."""
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "Bench",
        "metadata": {
            "name": "sample",
            "namespace": "default",
            "labels": {f"label-{n}": f"value-{n}" for n in range(5)},
        },
        "spec": {
            "replicas": 3,
            "strategy": "RollingUpdate",
            "ttl": "1h30m",
            "template": {
                "image": "registry.example.com/team/app:v1.2.3",
                "labels": {f"app.example.com/label-{n}": f"value-{n}" for n in range(8)},
                "args": [f"--flag-{n}=value" for n in range(10)],
                "ports": [{"name": f"port-{n}", "port": 8000 + n, "target": f"named-{n}"} for n in range(6)],
            },
        },
        "status": {
            "conditions": [
                {
                    "type": f"Condition{n}",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "observedGeneration": 4,
                    "message": "everything is as it should be",
                }
                for n in range(5)
            ]
        },
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def repeated(work: Callable[[], object], times: int = 500) -> float:
    """Microseconds of one of many runs."""

    def run() -> None:
        for _ in range(times):
            work()

    return seconds(run) / times * 1e6


def clean_objects() -> None:
    new, old = sample(), sample()
    old["spec"]["replicas"] = 2
    plain, ratcheted, lists = [], [], []
    for _ in range(ROUNDS):
        plain.append(repeated(lambda: validate(new, SCHEMA)))
        ratcheted.append(repeated(lambda: validate_update(new, old, SCHEMA)))
        lists.append(repeated(lambda: listtype.validate(new, SCHEMA)))
    print(f"clean object of 2 KB: validate {min(plain):.1f} µs, list types {min(lists):.1f} µs")
    print(f"update of it: {min(ratcheted):.1f} µs, ratio to validate {min(ratcheted) / min(plain):.3f}")


def many_errors() -> None:
    schema = parse({"properties": {"l": {"items": {"type": "string", "maxLength": 3}}}})
    wrong: Json = {"l": [1] * 100_000}
    changed: Json = {"l": [1] * 100_000 + ["x"]}
    print(f"100 000 wrong items: {min(seconds(lambda: validate(wrong, schema)) for _ in range(3)):.2f} s")
    update = min(seconds(lambda: validate_update(changed, wrong, schema)) for _ in range(3))
    print(f"the same in an update: {update:.2f} s")


def big_lists() -> None:
    texts = parse({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}
    items = parse({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}, **keys})
    names = [str(n) for n in range(100_000)]
    objects = [{"a": str(n), "b": n} for n in range(100_000)]
    print(f"set of 100 000 strings: {min(seconds(lambda: listtype.validate(names, texts)) for _ in range(3)):.3f} s")
    print(f"map of 100 000 items: {min(seconds(lambda: listtype.validate(objects, items)) for _ in range(3)):.3f} s")


def evil_patterns() -> None:
    text = "a" * 1_000_000 + "!"
    compiled = [patterns.compile(one) for one in ("^(a+)+$", "(a|aa)+$", "(.*)*x", "^(a?){30}a{30}$", "(x+x+)+y")]
    print(f"five evil patterns over 1 MB: {seconds(lambda: [one.search(text) for one in compiled]) * 1e3:.1f} ms")
    name = patterns.compile("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    print(f"an ordinary pattern: {repeated(lambda: name.search('some-name-of-a-resource'), 20_000):.2f} µs")


if __name__ == "__main__":
    clean_objects()
    many_errors()
    big_lists()
    evil_patterns()
