"""Measures field ownership: `python -m benchmarks.apply [CRD.json OBJECT.json]`.

The default is the sample in `shared/bench` next to the checkout: a 2 KB object like a Certificate of cert-manager.
Prints processor times, the minimum of several rounds, so a busy machine changes them little.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.calls import seconds
from noxu.apply import comparison, typed
from noxu.apply.manager import apply, update
from noxu.apply.tracker import Tracker
from noxu.apply.typed import accept
from noxu.apply.types import of_schema
from noxu.schema.structural import parse
from noxu.values import Object

ROUNDS = 9
RUNS = 400
SHARED = Path(__file__).parents[2] / "shared/bench"
NOW = "2024-01-01T00:00:00Z"


def microseconds(run: Callable[[], object]) -> float:
    return seconds(run, calls=RUNS, rounds=ROUNDS) * 1e6


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


def with_changed_text(obj: Object) -> Object:
    """A copy with the first string of its spec changed."""
    value = copy.deepcopy(obj)
    spec = value["spec"]
    name = next(name for name in spec if isinstance(spec[name], str))
    spec[name] += "0"
    return value


def main(definition: Path, sample: Path) -> None:
    tracker, obj = tracker_of(json.loads(definition.read_text())), json.loads(sample.read_text())
    kind = tracker.types[tracker.version]
    created = stored(update(None, obj, tracker, manager="client", now=NOW))
    changed = with_changed_text(created)
    applied = stored(apply(None, obj, tracker, manager="client", now=NOW).value)
    edited = with_changed_text(obj)
    size = len(json.dumps(obj, separators=(",", ":")))
    print(f"object of {size} bytes, {len(json.dumps(created['metadata']['managedFields']))} bytes of managedFields")
    for name, run in {
        "create": lambda: update(None, obj, tracker, manager="client", now=NOW),
        "  validation and field set, compiled": lambda: accept(obj, kind),
        "  validation and field set, readable": lambda: (typed.validate(obj, kind), typed.whole(obj, kind)),
        "update: one field changed": lambda: update(created, changed, tracker, manager="other", now=NOW),
        "  comparison": lambda: comparison.compare(created, changed, kind),
        "apply: create": lambda: apply(None, obj, tracker, manager="client", now=NOW),
        "apply: nothing changed": lambda: apply(applied, obj, tracker, manager="client", now=NOW),
        "apply: one field changed": lambda: apply(applied, edited, tracker, manager="client", now=NOW),
    }.items():
        print(f"{name:38} {microseconds(run):8.1f} µs")


if __name__ == "__main__":
    main(*(Path(name) for name in sys.argv[1:] or (SHARED / "crd.json", SHARED / "obj.json")))
