"""How long the walkers of validation take: `python -m benchmarks.validation`.

Times are the best of several runs. What clean objects cost in whole is in `benchmarks.pipeline`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.api.types import Json
from apiserver.schema import listtype, patterns
from apiserver.schema.ratcheting import validate_update
from apiserver.schema.structural import parse
from apiserver.schema.validation import validate
from benchmarks import samples
from benchmarks.samples import sample

ROUNDS = 7
SCHEMA = parse(samples.SCHEMA)


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
    value = sample()
    walk, lists = [], []
    for _ in range(ROUNDS):
        walk.append(repeated(lambda: validate(value, SCHEMA)))
        lists.append(repeated(lambda: listtype.validate(value, SCHEMA)))
    print(f"clean object of 2 KB: validate {min(walk):.1f} µs, list types {min(lists):.1f} µs")


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
