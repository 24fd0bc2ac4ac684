"""What ratcheting adds to an update: `python -m benchmarks.ratcheting`.

The same updates with ratcheting on and off, in one interleaved run: of a clean object (KEP-4008 asks for at most 5 %
more), and of one in which something that did not change is invalid, so that it has to be compared with its old self.
The object takes the way of a request: load, decode, default, own, identify, prepare, validate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from apiserver.api import codec
from apiserver.features import Features
from apiserver.registry import custom, pipeline
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.schema.ratcheting import validate_update
from benchmarks.samples import DEFINITION, sample

ROUNDS = 40
RUNS = 25
BAR = 5.0  # percent
STAGES = (
    pipeline.decode, pipeline.address, pipeline.default, pipeline.own, pipeline.identify, pipeline.prepare,
    pipeline.validate,
)  # fmt: skip


def resource() -> Resource:
    status = {"acceptedNames": DEFINITION["spec"]["names"]}
    return custom.versions_of({**DEFINITION, "status": status}, since=1).storage


def stored(**spec: object) -> bytes:
    value = sample()
    metadata = {**value["metadata"], "uid": "1", "resourceVersion": "1", "generation": 1}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return codec.encode({**value, "metadata": metadata, "spec": value["spec"] | spec}, sort_keys=True)


def update(kind: Resource, before: bytes, after: bytes, features: Features) -> None:
    draft = Draft(kind, "UPDATE", codec.decode_stored(after), features=features, namespace="default", name="sample")
    draft.old = codec.decode_stored(before)
    for stage in STAGES:
        stage(draft)


def judge(kind: Resource, before: bytes, after: bytes, features: Features) -> None:
    """Validation by the walker alone."""
    assert kind.schema is not None
    new, old = codec.decode_stored(after), codec.decode_stored(before)
    validate_update(new, old, kind.schema, ratcheting=features.ratcheting)


Run = tuple[Callable[[Resource, bytes, bytes, Features], None], bytes, bytes, Features]


def seconds(kind: Resource, *runs: Run) -> list[float]:
    """Of one of each, in turns."""
    spent = [0] * len(runs)
    for _ in range(RUNS):
        for n, (do, before, after, features) in enumerate(runs):
            began = time.process_time_ns()
            do(kind, before, after, features)
            spent[n] += time.process_time_ns() - began
    return [one / RUNS / 1e9 for one in spent]


def compare(what: str, kind: Resource, with_: Run, without: Run) -> None:
    rounds = [seconds(kind, with_, without) for _ in range(ROUNDS)]
    ratio = statistics.median(one / other for one, other in rounds)
    least = 1e6 * min(other for _, other in rounds)
    print(f"{what:<32} {least:>7.0f} µs {100 * (ratio - 1):>+8.1f} %")


def main() -> None:
    kind = resource()
    on, off = Features(ratcheting=True), Features(ratcheting=False)
    clean, wrong = (stored(replicas=1), stored(replicas=2)), (stored(strategy="?"), stored(strategy="?", replicas=2))
    for _ in range(20):  # until the fast path is there
        update(kind, *clean, on)
    print(f"{'':<32} {'without':>10} {'with':>10}   bar {BAR:+.0f} %")
    compare("clean object, update", kind, (update, *clean, on), (update, *clean, off))
    compare("clean object, walker alone", kind, (judge, *clean, on), (judge, *clean, off))
    excused = [seconds(kind, (update, *wrong, on)) for _ in range(ROUNDS)]
    print(f"{'an unchanged error, update':<32} {'refused':>10} {1e6 * min(one for (one,) in excused):>7.0f} µs")


if __name__ == "__main__":
    main()
