"""Specs that are known to be valid: the law that a server which skips their walks answers as one that does not."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from conformance import corpus
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.clock import Clock
from noxu.control_plane import running
from noxu.crd import known_definitions, validation
from noxu.crd.known_definitions import ValidSpecs, digest_of_spec, valid_specs_from_json
from noxu.features import Features
from noxu.manifests import loading
from noxu.registry.draft import Outcome
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.optional import needs_data
from tests.registry.world import CountedIdentifiers
from tests.rows import rows

Build = Callable[..., Object]
Answer = tuple[Object | str, list[str]]

RULES = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "x-kubernetes-validations": [{"rule": "self.n > 1"}],
}
SCHEMAS: dict[str, Object] = {
    "without fields": {"type": "object"},
    "with a rule": RULES,
    "with a default": {"type": "object", "properties": {"n": {"type": "number", "default": 1.5}}},
    "with warnings": {"type": "object", "properties": {"s": {"type": "string", "format": "unknown"}}},
    "whose default validation changes": {
        "type": "object",
        "properties": {
            "e": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}},
                "default": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "unknown": 1}},
            }
        },
    },
    "with a huge number": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}},
}  # fmt: skip
INVALID: dict[str, Object] = {
    "that is not structural": {"type": "object", "properties": {"a": {}}},
    "with a wrong rule": {**RULES, "x-kubernetes-validations": [{"rule": "self.m"}]},
    "with a wrong default": {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}},
}


async def answers(crds: Sequence[Object], specs: ValidSpecs | None, features: Features = Features()) -> list[Answer]:
    """What a new server stores of each definition, or its error, and the warnings."""
    clock: Clock = ManualClock()
    found: list[Answer] = []
    plane = assemble(MemoryStore(), clock=clock, identifiers=CountedIdentifiers().identifiers, features=features)
    async with running(plane):
        for crd in copy.deepcopy(crds):
            outcome = Outcome()
            try:
                content = codec.encode(crd, sort_keys=False)
                written, resource = await loading.write(plane, crd, content, outcome=outcome, valid_specs=specs)
                stored = codec.decode_stored(written.body(resource))
            except ApiError as error:
                stored = error.message
            found.append((stored, outcome.warnings))
    return found


async def check_law(crds: Sequence[Object]) -> ValidSpecs:
    """Without known specs, while they become known, and when they are: the answers are equal.

    Each definition is created, and then replaced by itself.
    """
    crds = [*crds, *crds]
    expected = await answers(crds, None)
    specs = ValidSpecs()
    assert await answers(crds, specs) == expected
    again = valid_specs_from_json(specs.as_json())
    assert await answers(crds, again) == expected
    return again


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
async def test_a_known_definition_is_answered_as_an_unknown_one(build: Build, schema: Object) -> None:
    await check_law([build(schema)])


@pytest.mark.parametrize("schema", INVALID.values(), ids=INVALID)
async def test_an_invalid_definition_never_becomes_known(build: Build, schema: Object) -> None:
    known = await check_law([build(schema)])
    assert known.as_json() == {}


def with_bundle(crd: Object, bundle: str) -> Object:
    config = {"url": "https://localhost/convert", "caBundle": base64.b64encode(bundle.encode()).decode()}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    return {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}


async def test_a_ca_bundle_is_looked_at_by_each_update(build: Build) -> None:
    """One that cannot be read may be created, but may not replace another one."""
    crd, specs = with_bundle(build(), "unreadable"), ValidSpecs()
    await answers([crd], specs)
    assert len(specs.as_json()) == 1
    found = await answers([build(), crd], specs)
    assert found == await answers([build(), crd], None)
    assert "unable to load root certificates" in str(found[1][0])


OLD: dict[str, Object] = {
    "a rule": RULES,
    "less strict fields": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@pytest.mark.parametrize("old", OLD.values(), ids=[f"instead of one with {name}" for name in OLD])
@rows("schema", SCHEMAS.values(), ids=SCHEMAS)
async def test_a_known_definition_that_replaces_another(build: Build, schema: Object, old: Object) -> None:
    specs = ValidSpecs()
    await answers([build(schema)], specs)
    assert await answers([build(old), build(schema)], specs) == await answers([build(old), build(schema)], None)


async def test_an_update_to_a_known_spec_does_not_walk_along_it(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, specs = Walks(monkeypatch), ValidSpecs()
    await answers([build(RULES)], specs)
    walks.count = 0
    await answers([build(), build(RULES)], specs)
    once, walks.count = walks.count, 0
    await answers([build(), build(RULES), build(RULES)], specs)
    assert (bool(once), walks.count) == (True, 0), "the first time for the other definition"


@needs_data("crds")
async def test_definitions_of_other_projects_are_answered_alike() -> None:
    crds = [definition.value for definition in list(corpus.definitions())[::40]]
    known = await check_law(crds)
    assert not known.has_new
    assert len(known.as_json()) == len(crds)


async def test_the_metadata_of_a_known_definition_are_validated(build: Build) -> None:
    wrong = {**build(), "metadata": {"name": "other.example.com"}}
    specs = ValidSpecs()
    await answers([build()], specs)
    [(message, _)] = await answers([wrong], specs)
    assert isinstance(message, str)
    assert 'must be spec.names.plural+"."+spec.group' in message
    assert await answers([wrong], None) == [(message, [])]


class Walks:
    """Counts the walks along specs. One that takes too long in the event loop is repeated in a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._walk = validation._spec_errors
        monkeypatch.setattr(validation, "_spec_errors", self._counted)

    def _counted(self, *arguments: Any) -> Any:
        self.count += 1
        return self._walk(*arguments)


KEPT = {name: name != "whose default validation changes" for name in SCHEMAS}


@pytest.mark.parametrize(("name", "is_kept"), KEPT.items(), ids=KEPT)
async def test_the_walks_are_skipped_only_for_what_they_left_unchanged(
    build: Build, name: str, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks, specs = Walks(monkeypatch), ValidSpecs()
    await answers([build(SCHEMAS[name])], specs)
    first, walks.count = walks.count, 0
    await answers([build(SCHEMAS[name])], specs)
    assert first
    assert bool(walks.count) != is_kept


async def test_other_features_and_other_specs_are_validated(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    walks, specs = Walks(monkeypatch), ValidSpecs()
    found = []
    for crd, features in (
        (build(RULES), Features()),
        (build(RULES), Features(ratcheting=False)),
        (build(RULES, scope="Namespaced"), Features()),
    ):
        walks.count = 0
        await answers([crd], specs, features)
        found.append(bool(walks.count))
    assert found == [True, True, True]


def test_specs_that_differ_in_anything_have_other_digests() -> None:
    specs: list[Object] = [
        {},
        {"a": 1},
        {"a": 1.0},
        {"a": -0.0},
        {"a": 0},
        {"a": "1"},
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
    ]
    digests = {digest_of_spec(spec, features) for spec in specs for features in (Features(), Features(cbor=True))}
    assert len(digests) == 2 * len(specs)


def test_a_spec_with_a_huge_integer_is_not_kept() -> None:
    assert digest_of_spec({"a": 2**70}, Features()) == ""


def test_only_the_specs_that_were_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_definitions, "MAX_SPECS", 2)
    specs = valid_specs_from_json({"a": [], "b": ["w"], "c": []})
    assert specs.warnings("a") == []
    specs.add("d", [])
    assert list(specs.as_json()) == ["a", "d"]


@pytest.mark.parametrize("value", [None, [], 1, {"a": 1}, {"a": [1]}, {"a": None}])
def test_anything_else_than_specs_counts_as_none(value: Any) -> None:
    assert valid_specs_from_json(value).as_json() == {}
