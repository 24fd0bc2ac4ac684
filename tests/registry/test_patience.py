"""Rules that run long: never in the event loop, and never longer than a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from apiserver.api.errors import ApiError
from apiserver.cel import slow
from apiserver.registry import patience, pipeline
from apiserver.registry.custom import versions_of
from apiserver.registry.definition import definitions_resource
from apiserver.registry.heavy import LIGHT
from apiserver.registry.pipeline import Draft, Stage
from apiserver.registry.resource import Resource

NUMBERS = {"type": "array", "items": {"type": "integer"}}
TRIPLES = "self.all(a, self.all(b, self.all(c, a + b >= c || a > 100)))"
SLOW_TRIPLES = "self.all(a, self.all(b, self.transformMap(i, c, a + b >= c).size() > 0))"  # is not generated


def resource(rule: str) -> Resource:
    """Things with a list of numbers and a rule about it."""
    schema = {
        "type": "object",
        "properties": {"numbers": {**NUMBERS, "x-kubernetes-validations": [{"rule": rule}]}},
    }
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return versions_of({"spec": spec, "status": {"acceptedNames": names}}, 0).storage


def draft(of: Resource, count: int, weight: int) -> Draft:
    value = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", "uid": "u", "creationTimestamp": None},
        "numbers": [1] * count,
    }
    return Draft(of, "CREATE", value, weight=weight)


async def said(one: Draft, stages: tuple[Stage, ...] = (pipeline.decode, pipeline.validate)) -> str:
    """The complaint about an object."""
    try:
        await pipeline.run(one, stages)
    except ApiError as error:
        return error.message
    return ""


async def longest_wait(work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes of it, and how long the event loop's thread worked on it at a stretch."""
    longest, done = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not done.is_set():
            before = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - before)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    found = await work()
    done.set()
    await watching
    return found, longest


@pytest.mark.parametrize("weight", [200, LIGHT + 1], ids=["a small object", "a heavy object"])
async def test_the_loop_goes_on_while_a_rule_runs_long(weight: int) -> None:
    one = resource(TRIPLES)
    await said(draft(one, 1, 200))  # the engine is there
    complaint, longest = await longest_wait(lambda: said(draft(one, 80, weight)))
    assert "call cost exceeds limit for rule" in complaint
    assert longest < 0.05


HEAVY = [
    ("sets of each other", "sets.contains(self, self) && self.size() < 5", 900),
    ("sets that cost too much", "sets.equivalent(self, self)", 3000),
    ("all comparisons of a list with itself", "self.map(n, [n]).distinct().size() < 1", 600),
]


@pytest.mark.parametrize(("what", "rule", "count"), HEAVY, ids=[row[0] for row in HEAVY])
async def test_the_loop_goes_on_while_a_function_runs_long(what: str, rule: str, count: int) -> None:
    one = resource(rule)
    await said(draft(one, 1, 200))
    complaint, longest = await longest_wait(lambda: said(draft(one, count, 200)))
    assert "rule" in complaint
    assert longest < 0.05


async def test_rules_are_made_in_a_thread() -> None:
    """With the first object that needs them: the engine is imported, and they are checked and compiled."""
    one = resource("self.size() > 1000")
    first = draft(one, 1, 200)
    assert one.awaits_rules
    complaint, longest = await longest_wait(lambda: said(first))
    assert complaint.count("failed rule") == 1
    assert longest < 0.05
    assert not one.awaits_rules
    assert first.weight > LIGHT
    second = draft(one, 1, 200)
    assert "failed rule" in await said(second)
    assert second.weight == 200


def test_who_is_impatient_imports_nothing_large() -> None:
    patience.Impatience().load("apiserver.cel.errors")  # it is there
    patience.Patience().load("apiserver.cel.nothing")
    with pytest.raises(patience.TakesLong):
        patience.Impatience().load("apiserver.cel.nothing")


async def test_an_update_that_is_judged_again_is_told_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "IN_THE_LOOP", -1.0)
    one = resource("self.all(n, n > 0) && self.size() > 1000")
    assert one.rules
    old = draft(one, 1, 200).new
    new = {**old, "metadata": {**old["metadata"], "uid": "other"}, "numbers": [1, 1]}
    again = Draft(one, "UPDATE", new, old=old, weight=200)
    complaint = await said(again, (pipeline.validate,))
    assert again.weight > LIGHT
    assert (complaint.count("metadata.uid"), complaint.count("failed rule")) == (1, 1)


async def test_what_costs_too_much_is_not_begun() -> None:
    began = time.thread_time()
    assert "call cost exceeds limit" in await said(draft(resource("sets.equivalent(self, self)"), 20_000, LIGHT + 1))
    assert time.thread_time() - began < 0.5


async def test_all_matches_of_an_evil_pattern_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST", 0.05)
    rule = "self.map(n, 'aaaaaaaaaa').join('').findAll('a.*b|a').size() == 0"
    complaint = await said(draft(resource(rule), 10_000, LIGHT + 1))
    assert "operation interrupted" in complaint


async def test_rules_on_defaults_leave_the_loop_too() -> None:
    schema = {**NUMBERS, "default": [1] * 80, "maxItems": 80, "x-kubernetes-validations": [{"rule": TRIPLES}]}
    names = {"plural": "things", "kind": "Thing"}
    root = {"type": "object", "properties": {"numbers": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    one = Draft(definitions_resource().storage, "CREATE", crd, weight=2000)
    stages = (pipeline.decode, pipeline.default, pipeline.prepare, pipeline.validate)
    complaint, longest = await longest_wait(lambda: said(one, stages))
    assert complaint.count("call cost exceeds limit for rule") == 1
    assert longest < 0.05


async def test_what_takes_long_is_told_once() -> None:
    one = resource("self.all(a, self.all(b, self.all(c, a > 0))) && self.size() > 1000")
    assert (await said(draft(one, 40, 200))).count("failed rule") == 1


async def test_a_rule_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST", 0.05)
    began = time.thread_time()
    complaint = await said(draft(resource(SLOW_TRIPLES), 100, LIGHT + 1))
    assert f"operation interrupted evaluating rule: {SLOW_TRIPLES}" in complaint
    assert time.thread_time() - began < 0.5


async def test_a_generated_rule_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    one = resource(TRIPLES)
    for _ in range(10):
        assert not await said(draft(one, 2, 200))
    monkeypatch.setattr(patience, "LONGEST", 0.01)
    monkeypatch.delattr(slow, "evaluate")
    assert "operation interrupted" in await said(draft(one, 200, LIGHT + 1))


async def test_after_a_rule_that_took_too_long_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST", 0.0)
    one = resource(TRIPLES)
    assert one.raw_schema is not None
    one.raw_schema["properties"]["numbers"]["x-kubernetes-validations"].append({"rule": "self.size() < 2"})
    complaint = await said(draft(one, 50, LIGHT + 1))
    assert complaint.count("rule") == 1


async def test_the_loop_goes_on_while_many_rules_are_compiled() -> None:
    one = resource("self.all(a, a >= 0)")
    assert one.raw_schema is not None
    told = one.raw_schema["properties"]["numbers"]["x-kubernetes-validations"]
    told += [{"rule": f"self.all(a, a >= 0 && a < {n} || a == {n}) || self.size() > {n}"} for n in range(300)]
    await said(draft(resource(TRIPLES), 1, 200))  # the engine is there
    for _ in range(6):  # first they are compiled, later they are generated
        complaint, longest = await longest_wait(lambda: said(draft(one, 1, 200)))
        assert complaint == ""
        assert longest < 0.05
