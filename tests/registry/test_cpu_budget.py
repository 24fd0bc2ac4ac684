"""Rules that take long are never evaluated in the event loop, and never for longer than a second."""

from __future__ import annotations

import time

import pytest

from noxu.api.errors import ApiError
from noxu.cel.evaluation import interpreter
from noxu.cpu_budget import limited_by, require_imported
from noxu.registry import turns, write
from noxu.registry.builtin import definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.draft import Draft, Stage
from noxu.registry.offload import LOOP_LIMIT
from noxu.registry.resource import Resource
from noxu.registry.write.arrive import decode, default, prune
from noxu.registry.write.decide import prepare, validate
from tests.drafts import draft_of
from tests.timing import longest_block

NUMBERS = {"type": "array", "items": {"type": "integer"}}
TRIPLES = "self.all(a, self.all(b, self.all(c, a + b >= c || a > 100)))"
INTERPRETED_TRIPLES = "self.all(a, self.all(b, self.transformMap(i, c, a + b >= c).size() > 0))"  # is never generated
LONGEST_BLOCK = 0.15  # seconds of processor time: three times the limit that is documented


def resource(rule: str) -> Resource:
    """Things with a list of numbers, and a rule on the list."""
    schema = {
        "type": "object",
        "properties": {"numbers": {**NUMBERS, "x-kubernetes-validations": [{"rule": rule}]}},
    }
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return versions_of({"spec": spec, "status": {"acceptedNames": names}}, 0).storage


def draft(things: Resource, count: int, weight: int) -> Draft:
    value = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", "uid": "u", "creationTimestamp": None},
        "numbers": [1] * count,
    }
    return draft_of(things, value, weight=weight)


async def error_of(thing: Draft, stages: tuple[Stage, ...] = (decode, prune, validate)) -> str:
    """The message of the error of an object, "" if it is valid."""
    try:
        await write.run(thing, stages)
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("weight", [200, LOOP_LIMIT + 1], ids=["a light object", "a heavy object"])
async def test_the_loop_is_not_blocked_while_a_rule_runs(weight: int) -> None:
    things = resource(TRIPLES)
    await error_of(draft(things, 1, 200))  # imports the engine
    message, longest = await longest_block(lambda: error_of(draft(things, 80, weight)))
    assert "call cost exceeds limit for rule" in message
    assert longest < LONGEST_BLOCK


LONG_CALLS = [
    ("sets of each other", "sets.contains(self, self) && self.size() < 5", 900),
    ("sets that cost too much", "sets.equivalent(self, self)", 3000),
    ("all comparisons of a list with itself", "self.map(n, [n]).distinct().size() < 1", 600),
]


@pytest.mark.parametrize(("rule", "count"), [row[1:] for row in LONG_CALLS], ids=[row[0] for row in LONG_CALLS])
async def test_the_loop_is_not_blocked_while_a_function_runs(rule: str, count: int) -> None:
    things = resource(rule)
    await error_of(draft(things, 1, 200))
    message, longest = await longest_block(lambda: error_of(draft(things, count, 200)))
    assert "rule" in message
    assert longest < LONGEST_BLOCK


async def test_rules_are_compiled_in_a_thread() -> None:
    """For the first object that needs them: the engine is imported, and the rules are checked and compiled."""
    things = resource("self.size() > 1000")
    first = draft(things, 1, 200)
    assert "rules" not in vars(things)
    message, longest = await longest_block(lambda: error_of(first))
    assert message.count("failed rule") == 1
    assert longest < LONGEST_BLOCK
    assert "rules" in vars(things)
    assert first.weight > LOOP_LIMIT
    second = draft(things, 1, 200)
    assert "failed rule" in await error_of(second)
    assert second.weight == 200


@pytest.mark.parametrize("budget", [turns.ThreadBudget, turns.RuleBudget])
def test_the_loop_imports_nothing_that_no_thread_has_imported(
    budget: type[turns.ThreadBudget | turns.RuleBudget], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_imported", set())
    with limited_by(turns.LoopBudget()), pytest.raises(turns.LoopBudgetExceeded):
        require_imported("noxu.cel", "SchemaRules")
    with limited_by(budget()):
        require_imported("noxu.cel", "SchemaRules")
    with limited_by(turns.LoopBudget()):
        require_imported("noxu.cel", "SchemaRules")
        with pytest.raises(turns.LoopBudgetExceeded):
            require_imported("noxu.cel", "Validator")


def test_the_loop_does_not_begin_what_costs_much() -> None:
    turns.LoopBudget().check(turns.MAX_LOOP_COST)
    turns.RuleBudget().begin()
    with pytest.raises(turns.LoopBudgetExceeded):
        turns.LoopBudget().check(turns.MAX_LOOP_COST + 1)


async def test_a_validation_repeated_in_a_thread_reports_each_error_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_LOOP_SECONDS", -1.0)
    things = resource("self.all(n, n > 0) && self.size() > 1000")
    assert things.rules
    old = draft(things, 1, 200).new
    new = {**old, "metadata": {**old["metadata"], "uid": "other"}, "numbers": [1, 1]}
    update = draft_of(things, new, old, weight=200)
    message = await error_of(update, (validate,))
    assert update.weight > LOOP_LIMIT
    assert (message.count("metadata.uid"), message.count("failed rule")) == (1, 1)


async def test_a_call_that_costs_too_much_is_not_begun() -> None:
    began = time.thread_time()
    assert "call cost exceeds limit" in await error_of(
        draft(resource("sets.equivalent(self, self)"), 20_000, LOOP_LIMIT + 1)
    )
    assert time.thread_time() - began < 0.5


async def test_finding_all_matches_of_a_pattern_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each match of this pattern takes a pass over the rest of the text."""
    monkeypatch.setattr(turns, "MAX_RULE_SECONDS", 0.05)
    rule = "self.map(n, 'aaaaaaaaaa').join('').findAll('a.*b|a').size() == 0"
    assert "operation interrupted" in await error_of(draft(resource(rule), 10_000, LOOP_LIMIT + 1))


async def test_the_loop_is_not_blocked_by_rules_on_defaults() -> None:
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
    definition = draft_of(definitions_resource().storage, crd, weight=2000)
    stages = (decode, default, prepare, validate)
    message, longest = await longest_block(lambda: error_of(definition, stages))
    assert message.count("call cost exceeds limit for rule") == 1
    assert longest < LONGEST_BLOCK


async def test_a_rule_repeated_in_a_thread_fails_once() -> None:
    things = resource("self.all(a, self.all(b, self.all(c, a > 0))) && self.size() > 1000")
    assert (await error_of(draft(things, 40, 200))).count("failed rule") == 1


async def test_an_interpreted_rule_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_RULE_SECONDS", 0.05)
    began = time.thread_time()
    message = await error_of(draft(resource(INTERPRETED_TRIPLES), 100, LOOP_LIMIT + 1))
    assert f"operation interrupted evaluating rule: {INTERPRETED_TRIPLES}" in message
    assert time.thread_time() - began < 0.5


async def test_a_generated_rule_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    things = resource(TRIPLES)
    for _ in range(10):
        assert not await error_of(draft(things, 2, 200))
    monkeypatch.setattr(turns, "MAX_RULE_SECONDS", 0.0)
    monkeypatch.delattr(interpreter, "evaluate")
    assert "operation interrupted" in await error_of(draft(things, 200, LOOP_LIMIT + 1))


async def test_no_rule_is_evaluated_after_one_that_took_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_RULE_SECONDS", 0.0)
    things = resource(TRIPLES)
    assert things.raw_schema is not None
    things.raw_schema["properties"]["numbers"]["x-kubernetes-validations"].append({"rule": "self.size() < 2"})
    message = await error_of(draft(things, 50, LOOP_LIMIT + 1))
    assert message.count("rule") == 1


async def test_the_loop_is_not_blocked_while_many_rules_are_compiled() -> None:
    things = resource("self.all(a, a >= 0)")
    assert things.raw_schema is not None
    rules = things.raw_schema["properties"]["numbers"]["x-kubernetes-validations"]
    rules += [{"rule": f"self.all(a, a >= 0 && a < {n} || a == {n}) || self.size() > {n}"} for n in range(300)]
    await error_of(draft(resource(TRIPLES), 1, 200))  # imports the engine
    for _ in range(6):  # they are compiled at first, and generated later
        message, longest = await longest_block(lambda: error_of(draft(things, 1, 200)))
        assert message == ""
        assert longest < LONGEST_BLOCK
