"""What field ownership costs: `python -m benchmarks.apply [CRD.json OBJECT.json]`.

Without arguments it measures the sample that all benchmarks of this project share, a 2 KB object of a kind like
cert-manager's Certificate. Processor times, the best of several rounds; the machine may be busy otherwise.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from apiserver.api.types import Object
from apiserver.apply import comparison, typed
from apiserver.apply.compiled import accept
from apiserver.apply.manager import apply, update
from apiserver.apply.tracker import Tracker
from apiserver.apply.types import of_schema
from apiserver.schema.structural import parse

ROUNDS = 9
RUNS = 400
SHARED = Path(__file__).parents[2] / "shared/bench"
NOW = "2024-01-01T00:00:00Z"


def microseconds(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(RUNS):
            run()
        best = min(best, (time.process_time_ns() - start) / RUNS / 1e3)
    return best


def tracker_of(definition: Object) -> Tracker:
    spec = definition["spec"]
    version = spec["versions"][0]
    name = f"{spec['group']}/{version['name']}"
    schema = parse(version["schema"]["openAPIV3Schema"])
    return Tracker(name, spec["names"]["kind"], {name: of_schema(schema)})


def stored(obj: Object) -> Object:
    value = copy.deepcopy(obj)
    value["metadata"]["uid"] = "u"
    return value


def with_other_text(obj: Object) -> Object:
    """The object with the first text in its spec changed."""
    value = copy.deepcopy(obj)
    spec = value["spec"]
    name = next(name for name in spec if isinstance(spec[name], str))
    spec[name] += "0"
    return value


def main(definition: Path, sample: Path) -> None:
    tracker, obj = tracker_of(json.loads(definition.read_text())), json.loads(sample.read_text())
    kind = tracker.types[tracker.version]
    created = stored(update(None, obj, tracker, manager="client", now=NOW))
    changed = with_other_text(created)
    applied = stored(apply(None, obj, tracker, manager="client", now=NOW))
    other = with_other_text(obj)
    size = len(json.dumps(obj, separators=(",", ":")))
    print(f"object of {size} bytes, {len(json.dumps(created['metadata']['managedFields']))} bytes of managedFields")
    for name, run in {
        "create: track": lambda: update(None, obj, tracker, manager="client", now=NOW),
        "  checked, and its set: compiled": lambda: accept(obj, kind),
        "  checked, and its set: walked": lambda: (typed.validate(obj, kind), typed.whole(obj, kind)),
        "update: track, one field changed": lambda: update(created, changed, tracker, manager="other", now=NOW),
        "  the comparison": lambda: comparison.compare(created, changed, kind),
        "apply: create": lambda: apply(None, obj, tracker, manager="client", now=NOW),
        "apply: nothing changed": lambda: apply(applied, obj, tracker, manager="client", now=NOW),
        "apply: one field changed": lambda: apply(applied, other, tracker, manager="client", now=NOW),
    }.items():
        print(f"{name:36} {microseconds(run):8.1f} µs")


if __name__ == "__main__":
    main(*(Path(name) for name in sys.argv[1:] or (SHARED / "crd.json", SHARED / "obj.json")))
