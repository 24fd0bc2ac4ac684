"""Definitions: names accepted or in conflict, established, served, withdrawn."""

from __future__ import annotations

from collections import Counter

import pytest

from noxu.api import codec
from noxu.controllers import definitions as controller
from noxu.crd.types import GROUP, RESOURCE
from noxu.manifests import documents as manifests
from noxu.manifests import loading
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, taken_object
from noxu.values import Json, Object
from noxu_storage.types import Key, Unavailable
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, conditions, copy_of, custom, definition
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

SERVED = {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
NOT_ACCEPTED = ("False", "NotAccepted")


def definitions(world: World) -> Resource:
    return world.resource(RESOURCE, GROUP)


async def status(world: World, name: str) -> Object:
    """The status of a definition."""
    found: Object = (await world.get(definitions(world), name))["status"]
    return found


async def conditions_of(world: World, name: str) -> dict[str, tuple[str, str]]:
    return conditions(await world.get(definitions(world), name))


def served(world: World) -> list[str]:
    """The kinds that are served from definitions."""
    return sorted(versions.storage.kind for versions in world.plane.served_resources.current.defined.values())


async def test_a_definition_is_served_when_its_write_returns(world: World) -> None:
    await world.apply(definition())
    assert served(world) == ["Widget"]
    found = await status(world, "widgets.example.com")
    assert await conditions_of(world, "widgets.example.com") == SERVED
    assert found["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert found["storedVersions"] == ["v1"]
    await world.apply(custom("a"))


# (name, the other definition in the same group, the reason of NamesAccepted)
CONFLICTS: list[tuple[str, dict[str, Json], str]] = [
    ("the kind", {"kind": "Widget", "listKind": "GadgetList"}, "KindConflict"),
    ("the list kind", {"kind": "Gadget", "listKind": "WidgetList"}, "ListKindConflict"),
    ("the singular name", {"kind": "Gadget", "singular": "widget"}, "SingularConflict"),
    ("a short name", {"kind": "Gadget", "shortNames": ["w"]}, "ShortNamesConflict"),
]  # fmt: skip


@pytest.mark.parametrize(("names", "reason"), [row[1:] for row in CONFLICTS], ids=[row[0] for row in CONFLICTS])
async def test_a_name_belongs_to_the_first_definition_of_a_group(
    world: World, names: dict[str, Json], reason: str
) -> None:
    await world.apply(definition(shortNames=["w"]), definition("gadgets", **names))
    await world.apply(definition("gadgets", group="other.example.com", **names))
    found = await conditions_of(world, "gadgets.example.com")
    assert found["NamesAccepted"] == ("False", reason)
    assert found["Established"] == NOT_ACCEPTED
    assert await conditions_of(world, "widgets.example.com") == SERVED
    assert await conditions_of(world, "gadgets.other.example.com") == SERVED
    assert sorted(world.plane.served_resources.current.defined) == ["gadgets.other.example.com", "widgets.example.com"]


async def test_a_deletion_frees_the_names(world: World) -> None:
    await world.apply(definition(), definition("gadgets", kind="Widget"))
    await world.delete(definitions(world), "widgets.example.com")
    await world.until_deleted(definitions(world), "widgets.example.com")
    await world.settled()
    assert await conditions_of(world, "gadgets.example.com") == SERVED
    assert list(world.plane.served_resources.current.defined) == ["gadgets.example.com"]


async def test_an_update_that_resolves_the_conflict_establishes(world: World) -> None:
    await world.apply(definition(), definition("gadgets", kind="Widget"))
    await world.apply(definition("gadgets", kind="Gadget"))
    assert await conditions_of(world, "gadgets.example.com") == SERVED
    assert served(world) == ["Gadget", "Widget"]


async def test_an_established_definition_stays_established_when_new_names_conflict(world: World) -> None:
    await world.apply(definition(shortNames=["w"]), definition("gadgets", kind="Gadget"))
    await world.apply(definition("gadgets", kind="Gadget", shortNames=["w"]))
    found = await conditions_of(world, "gadgets.example.com")
    assert found["NamesAccepted"] == ("False", "ShortNamesConflict")
    assert found["Established"][0] == "True"
    assert "shortNames" not in (await status(world, "gadgets.example.com"))["acceptedNames"]
    assert served(world) == ["Gadget", "Widget"]


def is_definition(key: Key) -> bool:
    return key.collection == f"{GROUP}/{RESOURCE}"


@pytest.mark.parametrize("times", [1, 2, 4])
async def test_conditions_are_set_although_the_store_is_unavailable_at_first(world: World, times: int) -> None:
    world.store.fail("put", is_definition, times, error=Unavailable("planned"))
    await world.apply(definition())
    assert world.store.failures == times
    assert await conditions_of(world, "widgets.example.com") == SERVED
    assert served(world) == ["Widget"]


async def test_a_change_of_the_schema_is_served_when_its_write_returns(world: World) -> None:
    await world.apply(definition())
    changed = definition()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = ["spec"]
    await world.apply(changed)
    resource = world.plane.served_resources.current.find("example.com", "v1", "widgets")
    assert resource is not None
    assert resource.declared_schema is not None
    assert resource.declared_schema["required"] == ["spec"]


async def test_a_definition_is_not_decoded_again_after_its_conditions_were_set(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []
    decode = codec.decode_stored
    monkeypatch.setattr(codec, "decode_stored", lambda body: decoded.append(body) or decode(body))
    await loading.load(world.plane, loading.ready([manifests.Document(definition(), "a.yaml")]))
    await world.settled()
    assert await conditions_of(world, "widgets.example.com") == SERVED
    found = [body for body in decoded if b'"CustomResourceDefinition"' in body]
    assert len(found) == 2, "the body of the request, and the check above"


async def test_the_decoded_form_of_a_written_definition_is_not_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []

    def take(entry: StoredObject, resource: Resource) -> Object:
        taken.append(bool(entry.decoded))
        return taken_object(entry, resource)

    monkeypatch.setattr(controller, "taken_object", take)
    await world.apply(definition(), definition("gadgets", kind="Widget"))
    await world.apply(definition(shortNames=["w"]))
    await world.settled()
    assert taken[0]
    assert Counter(taken)[True] == 3
    entries = (await world.plane.reader.collection(definitions(world))).entries.values()
    assert [entry.decoded for entry in entries] == [None, None]


async def test_a_status_update_does_not_replace_what_is_served(world: World) -> None:
    await world.apply(definition())
    before = world.plane.served_resources.current.defined["widgets.example.com"]
    labelled = definition()
    labelled["metadata"]["labels"] = {"a": "b"}
    await world.apply(labelled)
    assert world.plane.served_resources.current.defined["widgets.example.com"] is before


async def test_a_deleted_definition_is_not_served(world: World) -> None:
    await world.apply(definition())
    await world.delete(definitions(world), "widgets.example.com")
    await world.until_deleted(definitions(world), "widgets.example.com")
    await world.settled()
    assert served(world) == []


async def test_a_definition_that_was_deleted_before_a_reset_is_withdrawn_and_its_names_are_free(world: World) -> None:
    """The cache misses the deletion because of a compaction, so there is no event for it."""
    await world.apply(definition(), definition("gadgets", kind="Widget"))
    key = Key(f"{GROUP}/{RESOURCE}", "", "widgets.example.com")
    stored = await world.store.get(key)
    assert stored is not None
    world.store.watch_fails = RuntimeError("planned")
    await world.store.delete(key, expected=stored.revision)
    await eventually_async(lambda: list(world.plane.served_resources.current.defined) == ["gadgets.example.com"])
    await world.settled()
    assert await conditions_of(world, "gadgets.example.com") == SERVED


async def test_after_a_restart_accepted_names_stay_with_their_definitions(
    store: FlakyStore, clock: ManualClock
) -> None:
    """`a` sorts before `b`, and was refused: it must not get the name because it is read first."""
    async with a_world(store, clock) as world:
        await world.apply(definition("b", kind="Widget"), definition("a", kind="Widget"))
        store = await copy_of(world.store)
    async with a_world(store, clock) as world:
        assert list(world.plane.served_resources.current.defined) == ["b.example.com"]
        assert (await conditions_of(world, "a.example.com"))["NamesAccepted"] == ("False", "ListKindConflict")
        assert await conditions_of(world, "b.example.com") == SERVED


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("https://github.com/kubernetes/kubernetes/pull/1", ("True", "ApprovedAnnotation")),
        ("unapproved, testing", ("False", "UnapprovedAnnotation")),
    ],
)
async def test_the_approval_condition_follows_the_annotation(
    world: World, annotation: str, expected: tuple[str, str]
) -> None:
    def protected(value: str) -> Object:
        crd = definition(group="x.k8s.io")
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": value}
        return crd

    await world.apply(protected("https://github.com/kubernetes/kubernetes/pull/9"))
    await world.apply(protected(annotation))
    await world.settled()
    world.clock.advance(1)
    await world.settled()
    found = await conditions_of(world, "widgets.x.k8s.io")
    assert found["KubernetesAPIApprovalPolicyConformant"] == expected
