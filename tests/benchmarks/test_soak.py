"""The soak: what it calls growth, and what its rounds consist of."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.samples import DEFINITION
from benchmarks.servers import DEFINITIONS
from benchmarks.soak import WATCHED, Call, calls, growth, send, send_round, stored_objects
from noxu.http.request import RequestInfo, Target
from noxu.registry import cache
from noxu.testing.handle import Noxu
from noxu_storage.types import Event, Key, KeyValue

GROWTHS: list[tuple[str, list[int], float]] = [
    ("memory that is constant", [100] * 100, 0.0),
    ("memory that is filled during the first 40 %", [*range(60, 100), *[100] * 60], 0.0),
    ("memory that grows all the time", list(range(101, 201)), 0.206),  # 175.5 on average, after 145.5
    ("memory that grows at the end", [100] * 90 + [200] * 10, 0.2),
    ("memory that shrinks", [200] * 50 + [100] * 50, -0.5),
    ("two samples", [100, 103], 0.03),
]


@pytest.mark.parametrize(("resident", "expected"), [row[1:] for row in GROWTHS], ids=[row[0] for row in GROWTHS])
def test_the_growth_of(resident: list[int], expected: float) -> None:
    assert growth(resident) == pytest.approx(expected, abs=0.001)


def test_a_round_has_all_verbs_and_its_bodies_can_be_sent() -> None:
    found = calls(0)
    assert {call.method for call in found} == {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert {call.status for call in found} >= {200, 201, 400, 404, 406, 409, 422}
    assert all(json.dumps(call.body) for call in found)


def test_one_of_several_rounds_watches() -> None:
    watches = [sum("watch=1" in call.path for call in calls(n)) for n in range(2 * WATCHED)]
    assert watches == 2 * [1, *[0] * (WATCHED - 1)]


def test_stored_objects_are_those_of_all_resources() -> None:
    metrics = "\n".join(
        [
            "# TYPE apiserver_resource_objects gauge",
            'apiserver_resource_objects{group="",resource="namespaces"} 4',
            'apiserver_resource_objects{group="g",resource="things"} 12',
            'apiserver_storage_objects{resource="things.g"} 12',
            "",
        ]
    )
    assert stored_objects(metrics) == 16


ROOT = Path(__file__).parents[2]
WINDOW = {str(kind) for kind in (Event, Key, KeyValue, RequestInfo, Target)}
"""What is kept of the newest changes and paths, however many there were."""
FIRST, WARM, ROUNDS = 1, 3, 5  # none of them has a watch, which lasts a second


def report() -> None:
    """Write how many objects of each kind the process has after WARM rounds, and after ROUNDS more."""
    cache.MAX_RECENT = 10  # type: ignore[misc] # changes, which are soon as many as there may be
    with Noxu() as noxu:
        requests = noxu._requests
        requests._answered, requests._refused = deque(maxlen=10), deque(maxlen=5)
        journal = noxu._server.plane.persistence.journal
        assert journal is not None
        journal.writes, journal.reads = deque(maxlen=10), deque(maxlen=10)
        connection = http.client.HTTPConnection(urlsplit(noxu.url).netloc)
        send(connection, Call(201, "POST", DEFINITIONS, DEFINITION))

        def after(rounds: range) -> Counter[str]:
            for n in rounds:
                send_round(connection, n)
            store = noxu._server.plane.store
            noxu._call(store.compact(store.revision))
            gc.collect()
            kinds = [type(found) for found in gc.get_objects()]
            counted = [kind for kind in kinds if kind is asyncio.Task or f"{kind.__module__}".startswith("noxu.")]
            return Counter(map(str, counted))

        once = after(range(FIRST, FIRST + WARM))
        more = after(range(FIRST + WARM, FIRST + WARM + ROUNDS))
        connection.close()
    sys.stdout.write(json.dumps([once, more]))


@pytest.mark.slow
def test_the_server_has_as_many_objects_after_more_rounds() -> None:
    """Whatever a round leaves for good is there as often as there were rounds. In a process without other tests' objects."""
    code = f"from {__name__} import report; report()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    once, more = map(Counter, json.loads(done.stdout))
    assert once
    grown = {kind: count for kind, count in (more - once).items() if kind not in WINDOW}
    assert {kind: count for kind, count in grown.items() if count >= ROUNDS} == {}
