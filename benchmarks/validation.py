"""Measures validation, without the fast path: `python -m benchmarks.validation`.

Prints the minimum of several runs. `benchmarks.pipeline` measures the whole way of a valid object.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks import samples
from benchmarks.samples import sample
from noxu.schema import listtype, patterns
from noxu.schema.structural import parse
from noxu.schema.validation import validate, validate_update
from noxu.values import Json

ROUNDS = 7
SCHEMA = parse(samples.SCHEMA)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def microseconds(work: Callable[[], object], times: int = 500) -> float:
    """The average processor time of a call."""

    def run() -> None:
        for _ in range(times):
            work()

    return seconds(run) / times * 1e6


def valid_objects() -> None:
    value = sample()
    fields, lists = [], []
    for _ in range(ROUNDS):
        fields.append(microseconds(lambda: validate(value, SCHEMA)))
        lists.append(microseconds(lambda: listtype.validate(value, SCHEMA)))
    print(f"valid object of 2 KB: fields {min(fields):.1f} µs, list types {min(lists):.1f} µs")


def many_errors() -> None:
    schema = parse({"properties": {"l": {"items": {"type": "string", "maxLength": 3}}}})
    invalid: Json = {"l": [1] * 100_000}
    changed: Json = {"l": [1] * 100_000 + ["x"]}
    print(f"100 000 invalid items: {min(seconds(lambda: validate(invalid, schema)) for _ in range(3)):.2f} s")
    update = min(seconds(lambda: validate_update(changed, invalid, schema)) for _ in range(3))
    print(f"the same in an update: {update:.2f} s")


def big_lists() -> None:
    texts = parse({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}
    items = parse({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}, **keys})
    names = [str(n) for n in range(100_000)]
    objects = [{"a": str(n), "b": n} for n in range(100_000)]
    print(f"set of 100 000 strings: {min(seconds(lambda: listtype.validate(names, texts)) for _ in range(3)):.3f} s")
    print(f"map of 100 000 items: {min(seconds(lambda: listtype.validate(objects, items)) for _ in range(3)):.3f} s")


def exponential_patterns() -> None:
    text = "a" * 1_000_000 + "!"
    compiled = [
        patterns.compile(pattern) for pattern in ("^(a+)+$", "(a|aa)+$", "(.*)*x", "^(a?){30}a{30}$", "(x+x+)+y")
    ]
    print(
        f"five patterns with exponential backtracking in other engines, over 1 MB: {seconds(lambda: [pattern.search(text) for pattern in compiled]) * 1e3:.1f} ms"
    )
    name = patterns.compile("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    print(f"the pattern of DNS labels: {microseconds(lambda: name.search('some-name-of-a-resource'), 20_000):.2f} µs")


if __name__ == "__main__":
    valid_objects()
    many_errors()
    big_lists()
    exponential_patterns()
