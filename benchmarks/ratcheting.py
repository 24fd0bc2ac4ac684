"""Measures what ratcheting adds to an update: `python -m benchmarks.ratcheting`.

Runs the same updates with ratcheting on and off, interleaved: of a valid object (KEP-4008 allows 5 % more), and of one
with an unchanged invalid field, which has to be compared with the old object. Each update passes the stages of a
request: decode, default, own, identify, prepare, validate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.samples import DEFINITION, sample
from noxu.api import codec
from noxu.features import Features
from noxu.registry import custom
from noxu.registry.draft import Action, WriteRequest, draft_for
from noxu.registry.resource import Resource
from noxu.registry.write import arrive, decide
from noxu.schema.validation import validate_update

ROUNDS = 40
RUNS = 25
TARGET = 5.0  # percent
STAGES = (
    arrive.decode, arrive.prune, arrive.check_url, arrive.default, decide.track_managers, decide.set_system_fields, decide.prepare,
    decide.validate,
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
    request = WriteRequest(Action.REPLACE, kind, "default", "sample", features=features)
    draft = draft_for(request)
    draft.new, draft.old = codec.decode_stored(after), codec.decode_stored(before)
    draft.now = "2026-01-01T00:00:00Z"
    for stage in STAGES:
        stage(draft)


def validate(kind: Resource, before: bytes, after: bytes, features: Features) -> None:
    """Validate on the readable path only."""
    assert kind.schema is not None
    new, old = codec.decode_stored(after), codec.decode_stored(before)
    validate_update(new, old, kind.schema, ratcheting=features.ratcheting)


Run = tuple[Callable[[Resource, bytes, bytes, Features], None], bytes, bytes, Features]


def seconds(kind: Resource, *runs: Run) -> list[float]:
    """The processor time of each run, taken in turns."""
    elapsed = [0] * len(runs)
    for _ in range(RUNS):
        for n, (run, before, after, features) in enumerate(runs):
            start = time.process_time_ns()
            run(kind, before, after, features)
            elapsed[n] += time.process_time_ns() - start
    return [nanoseconds / RUNS / 1e9 for nanoseconds in elapsed]


def compare(name: str, kind: Resource, with_: Run, without: Run) -> None:
    rounds = [seconds(kind, with_, without) for _ in range(ROUNDS)]
    ratio = statistics.median(on / off for on, off in rounds)
    fastest = 1e6 * min(off for _, off in rounds)
    print(f"{name:<32} {fastest:>7.0f} µs {100 * (ratio - 1):>+8.1f} %")


def main() -> None:
    kind = resource()
    on, off = Features(ratcheting=True), Features(ratcheting=False)
    valid, invalid = (stored(replicas=1), stored(replicas=2)), (stored(strategy="?"), stored(strategy="?", replicas=2))
    for _ in range(20):  # until the fast path is compiled
        update(kind, *valid, on)
    print(f"{'':<32} {'without':>10} {'with':>10}   target {TARGET:+.0f} %")
    compare("valid object, update", kind, (update, *valid, on), (update, *valid, off))
    compare("valid object, readable path", kind, (validate, *valid, on), (validate, *valid, off))
    ratcheted = [seconds(kind, (update, *invalid, on)) for _ in range(ROUNDS)]
    print(f"{'unchanged invalid field, update':<32} {'refused':>10} {1e6 * min(run for (run,) in ratcheted):>7.0f} µs")


if __name__ == "__main__":
    main()
