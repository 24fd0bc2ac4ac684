"""Deleted definitions leave nothing in memory: neither their schemas nor what was derived from them."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import filterfalse
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from yarl import URL

from noxu.control.recorded_requests import RecordedRequest
from noxu.http.request import RequestInfo
from noxu.http.request import Target as ParsedTarget
from noxu.kinds import endpoints
from noxu.registry.cache import Change
from noxu.registry.resource import Rendering
from noxu.registry.stored_object import StoredObject
from noxu.schema.structural import Structural
from noxu.testing.handle import Noxu
from noxu_storage.types import Event, Key, KeyValue
from tests.hostile.raw_http import Target, custom_resource, definition, path_of
from tests.timing import eventually
from tests.unchanged import NotedSets

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PER_CYCLE = 10
PLAIN = {tuple, list, dict}
PER_DEFINITION = 60
"""Plain containers: thirty for the metrics of its requests, and a few for those of its writes, which are kept for a limited
number of kinds of each. Those that are noted by libraries, up to a limit, come on top."""
KEPT = {
    Change,
    StoredObject,
    Event,
    Key,
    KeyValue,
    RecordedRequest,
    Rendering,
    ParsedTarget,
    RequestInfo,
    URL,
    NotedSets,
}
"""What is kept of the newest changes, however many there were: by the tail of the log, and by the definitions' collection.
And the newest requests, which the handle shows, their targets, and their addresses; and what the tests note themselves.
"""
METRICS = "noxu.http.metrics"
"""The module of the numbers of requests for each resource, which are kept for a limited number of resources."""


def spec(number: int) -> dict[str, Any]:
    """A schema with a bit of everything. Its texts, which are cached by themselves, are the same in each cycle."""
    item = {
        "type": "object",
        "required": ["k"],
        "properties": {
            "k": {"type": "string", "pattern": f"^a{{{number}}}"},
            "n": {"type": "integer", "default": number},
        },
    }
    template = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    return {
        "type": "object",
        "properties": {
            "list": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "template": template,
        },
        "x-kubernetes-validations": [{"rule": f"!has(self.list) || size(self.list) < {100 + number}"}],
    }


@pytest.mark.slow
def test_what_remains_does_not_grow_with_the_definitions_that_were_deleted(tmp_path: Path) -> None:
    """Compared within one run: after two and four cycles of creating and deleting."""
    with Noxu(tmp_path, history="off") as noxu:  # whose notes of reads and writes are limited by themselves
        target, cycles = Target(noxu.url), 0

        def after(count: int) -> Counter[type]:
            nonlocal cycles
            while cycles < count:
                cycles += 1
                cycle(noxu, target, cycles)
            gc.collect()
            return Counter(map(type, filterfalse(is_plain, gc.get_objects())))

        assert endpoints.__doc__  # imported by a write of the server's own address, which may come at any time
        after(1)  # which imports the other modules
        once, twice = after(2), after(4)
    assert twice[Structural] == once[Structural]
    grown = twice - once
    definitions = 2 * PER_CYCLE
    assert sum(grown[kind] for kind in PLAIN) <= definitions * PER_DEFINITION, grown
    others = {kind: n for kind, n in grown.items() if kind not in PLAIN | KEPT and kind.__module__ != METRICS}
    assert max(others.values(), default=0) < definitions, others  # a kind that each definition leaves has as many


def is_plain(value: object) -> bool:
    """Whether this is a dict without containers, which the collector lists since Python 3.14 only."""
    return type(value) is dict and not any(map(gc.is_tracked, value.values()))


def cycle(noxu: Noxu, target: Target, number: int) -> None:
    plurals = [f"c{number}d{n}s" for n in range(PER_CYCLE)]
    for n, plural in enumerate(plurals):
        template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        kind = plural.removesuffix("s").capitalize()
        noxu.apply(
            definition(plural, spec(n)), custom_resource(kind, "x", {"list": [{"k": "a" * 20}], "template": template})
        )
        assert target.send("GET", path_of(plural)).status == 200
        for path in (path_of(plural), f"{path_of(plural)}/x"):
            assert target.send("GET", path, headers={"Accept": TABLE}).status == 200
    for plural in plurals:
        assert target.send("DELETE", f"{DEFINITIONS}/{plural}.hostile.example.com").status == 200
    eventually(lambda: target.send("GET", DEFINITIONS).json["items"] == [])
    store = noxu._server.plane.store
    noxu._call(store.compact(store.revision))


@pytest.mark.slow
def test_documents_that_were_made_before_do_not_keep_it(tmp_path: Path) -> None:
    """They are made again at their next request, which may never come."""
    with Noxu(tmp_path) as noxu:
        target = Target(noxu.url)
        noxu.apply(definition("olds", spec(1)))
        for path in ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/hostile.example.com/v1", path_of("olds"), "/apis"):
            assert target.send("GET", path, headers={"Accept": f"{TABLE}, {DISCOVERY}, application/json"}).status == 200
        name = "olds.hostile.example.com"
        kept = [ref(resource) for resource in noxu._server.plane.served_resources.current.defined[name].all]
        assert target.send("DELETE", f"{DEFINITIONS}/{name}").status == 200
        eventually(lambda: target.send("GET", f"{DEFINITIONS}/{name}").status == 404)

        def is_gone() -> bool:
            gc.collect()
            return [resource() for resource in kept] == [None]

        eventually(is_gone)
        eventually(lambda: "hostile.example.com/olds" not in noxu._server.plane.reader.cache.collections)
