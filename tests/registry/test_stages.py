"""Single stages of a write: their effect on a draft, and their refusals."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.api.errors import ApiError
from noxu.registry.builtin import built_in_versions
from noxu.registry.draft import Action, Body, Draft, Options, Stage, Stored, WriteRequest, draft_for
from noxu.registry.resource import Resource
from noxu.registry.stored_object import new_entry
from noxu.registry.write import arrive, decide
from noxu.registry.write.store import MAX_REQUEST
from noxu.values import Object, copy
from tests.drafts import NOW, draft_of
from tests.registry.world import GROUP, Hooks, World, error_of, version, widget, widgets, world_of

WIDGETS: Final = widgets().storage
CLUSTER: Final = widgets(scope="Cluster").storage
CONFIG_MAPS: Final = next(found.storage for found in built_in_versions() if found.collection == "/configmaps")
OWNER: Final[Object] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "x"}


def refusal(stage: Stage, draft: Draft) -> str:
    """The message of the ApiError of a stage, "" if it does not refuse."""
    try:
        assert stage(draft) is None
    except ApiError as error:
        return error.message
    return ""


def with_body(action: Action, content: bytes | Object, resource: Resource = WIDGETS, **options: Any) -> Draft:
    return draft_for(WriteRequest(action, resource, "default", "a", body=Body(content), options=Options(**options)))


# -- the body ---------------------------------------------------------------------------------------------------------

BODIES: Final[dict[str, tuple[bytes, str, list[str]]]] = {
    "an object": (b'{"apiVersion":"example.com/v1","kind":"Widget"}', "Warn", []),
    "a repeated field": (
        b'{"kind":"Widget","apiVersion":"example.com/v1","a":1,"a":2}',
        "Warn",
        ['duplicate field "a"'],
    ),
    "a repeated field that is ignored": (b'{"kind":"Widget","apiVersion":"example.com/v1","a":1,"a":2}', "Ignore", []),
    "a repeated field, strictly": (
        b'{"kind":"Widget","apiVersion":"example.com/v1","a":1,"a":2}',
        "Strict",
        ['duplicate field "a"'],
    ),
}


@pytest.mark.parametrize(("content", "validation", "complaints"), BODIES.values(), ids=BODIES)
def test_repeated_fields_in_a_body_are_noted(content: bytes, validation: Any, complaints: list[str]) -> None:
    draft = with_body(Action.CREATE, content, field_validation=validation)
    arrive.read_body(draft)
    assert (draft.new["kind"], draft.outcome.complaints) == ("Widget", complaints)


def test_a_decoded_body_is_copied() -> None:
    """A manifest is applied again after a conflict, and must not contain the parts of the object by then."""
    value = widget()
    draft = with_body(Action.CREATE, value)
    draft.request = draft.request._replace(body=Body(value, complaints=("a complaint",)))
    arrive.read_body(draft)
    draft.new["metadata"]["uid"] = "u"
    assert value == widget()
    assert draft.outcome.complaints == ["a complaint"]


def test_a_body_without_a_kind_gets_that_of_its_built_in_resource() -> None:
    draft = with_body(Action.CREATE, b'{"metadata":{"name":"a"}}', CONFIG_MAPS)
    arrive.read_body(draft)
    assert (draft.new["apiVersion"], draft.new["kind"]) == ("v1", "ConfigMap")
    assert "Object 'Kind' is missing" in refusal(arrive.read_body, with_body(Action.CREATE, b"{}"))


@pytest.mark.parametrize(("terminating", "refused"), [(True, True), (False, False)])
def test_no_custom_resource_is_created_while_its_definition_is_deleted(terminating: bool, refused: bool) -> None:
    resource = widgets().storage
    resource.versions.terminating = terminating
    message = refusal(decide.refuse_terminating, draft_of(resource, widget("b")))
    why = "create not allowed while custom resource definition is terminating"
    assert message == (f'widgets.{GROUP} "b" is forbidden: {why}' if refused else "")


# -- address ----------------------------------------------------------------------------------------------------------

ADDRESSES: Final[dict[str, tuple[Resource, Object, str, Object | None]]] = {
    # the resource; the object; the refusal, or the metadata afterwards
    "a namespace is filled in": (WIDGETS, widget(), "", {"name": "a", "namespace": "default"}),
    "the same namespace": (
        WIDGETS,
        widget(metadata={"namespace": "default"}),
        "",
        {"name": "a", "namespace": "default"},
    ),
    "another namespace": (WIDGETS, widget(metadata={"namespace": "b"}), "the namespace of the provided object", None),
    "a namespace of a cluster-scoped object": (CLUSTER, widget(metadata={"namespace": "b"}), "", {"name": "a"}),
    "another version": (
        WIDGETS,
        widget(api_version="example.com/v2"),
        "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)",
        None,
    ),
    "another name": (WIDGETS, widget("b"), "the name of the object (b) does not match the name on the URL (a)", None),
    "no name": (
        WIDGETS,
        widget(""),
        "the name of the object (a based on URL) was undeterminable: name must be provided",
        None,
    ),
}


@pytest.mark.parametrize(("resource", "new", "message", "metadata"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_update_has_the_address_of_its_url(
    resource: Resource, new: Object, message: str, metadata: Object | None
) -> None:
    namespace = "default" if resource.namespaced else ""
    draft = draft_of(resource, copy(new), {}, namespace=namespace, name="a")
    found = refusal(arrive.check_url, draft)
    assert found.startswith(message)
    assert bool(found) is bool(message)
    if metadata is not None:
        assert draft.new["metadata"] == metadata


def test_a_create_ignores_fields_of_the_system_and_keeps_its_own_name() -> None:
    system = {
        "uid": "u",
        "creationTimestamp": NOW,
        "deletionTimestamp": NOW,
        "deletionGracePeriodSeconds": 0,
        "selfLink": "/",
        "resourceVersion": "5",
    }
    draft = draft_of(WIDGETS, widget("b", metadata=system), namespace="default")
    assert refusal(arrive.check_url, draft) == ""
    assert draft.new["metadata"] == {"name": "b", "namespace": "default", "resourceVersion": "5"}


# -- unknown fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "warnings", "message"),
    [
        ("Ignore", [], ""),
        ("Warn", ['duplicate field "a"', 'unknown field "b"'], ""),
        ("Strict", [], 'strict decoding error: duplicate field "a", unknown field "b"'),
    ],
)
def test_what_field_validation_makes_of_repeated_and_unknown_fields(
    mode: Any, warnings: list[str], message: str
) -> None:
    draft = draft_of(WIDGETS, widget(), options=Options(field_validation=mode))
    draft.outcome.complaints, draft.outcome.unknown = ['duplicate field "a"'], ["b"]
    assert refusal(arrive.refuse_unknown, draft).endswith(message)
    assert draft.outcome.warnings == warnings


@pytest.mark.parametrize("mode", ["Ignore", "Warn", "Strict"])
def test_an_object_without_such_fields_is_accepted(mode: Any) -> None:
    draft = draft_of(WIDGETS, widget(), options=Options(field_validation=mode))
    assert refusal(arrive.refuse_unknown, draft) == ""
    assert draft.outcome.warnings == []


# -- decode, prune, default: with the fast path and without -----------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mutated", [False, True])
def test_an_object_is_pruned_and_defaulted_when_it_arrives_and_after_admission(traced: bool, mutated: bool) -> None:
    draft = draft_of(WIDGETS, widget(metadata={"bad": 1}, color="red", unknown=1), namespace="default")
    draft.outcome.trace = [] if traced else None
    draft.mutated = True
    for stage in (
        (decide.prune_mutated, decide.default_mutated) if mutated else (arrive.decode, arrive.prune, arrive.default)
    ):
        assert refusal(stage, draft) == ""
    assert draft.new["spec"] == {"color": "red", "size": 1}
    assert "bad" not in draft.new["metadata"]
    assert draft.outcome.unknown == ([] if mutated else ["metadata.bad", "spec.unknown"])


def test_the_namespace_and_the_owners_are_put_right_after_admission() -> None:
    draft = draft_of(WIDGETS, widget(metadata={"ownerReferences": [OWNER, OWNER]}), namespace="default")
    draft.mutated = True
    assert refusal(decide.default_mutated, draft) == ""
    assert draft.new["metadata"] == {"name": "a", "namespace": "default", "ownerReferences": [OWNER]}
    assert len(draft.outcome.warnings) == 1


def test_an_object_that_admission_did_not_change_is_not_pruned_again() -> None:
    draft = draft_of(WIDGETS, widget(unknown=1))
    for stage in (decide.prune_mutated, decide.default_mutated):
        assert refusal(stage, draft) == ""
    assert draft.new == widget(unknown=1)


def test_metadata_of_the_wrong_type_is_refused_when_it_arrives() -> None:
    draft = draft_of(WIDGETS, {**widget(), "metadata": {"labels": 5}})
    assert "json: cannot unmarshal number into Go struct field ObjectMeta.labels" in refusal(arrive.decode, draft)


MUTATED: Final[dict[str, tuple[Any, Object | None, str]]] = {
    # the metadata, the old object, the refusal
    "no map": (5, None, "Internal error occurred: system metadata was not initialized"),
    "labels of the wrong type": (
        {"name": "a", "labels": 5},
        None,
        'Widget.example.com "a" is invalid: metadata: Invalid value',
    ),
    "no map, in an update": (
        5,
        widget(),
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    ),
    "a resourceVersion that is a number": (
        {"name": "a", "resourceVersion": 5},
        widget(),
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    ),
    "a creation time that is repaired": ({"name": "a", "creationTimestamp": 5}, None, ""),
}


@pytest.mark.parametrize(("metadata", "old", "message"), MUTATED.values(), ids=MUTATED)
async def test_metadata_that_admission_malformed(world: World, metadata: Any, old: Object | None, message: str) -> None:
    draft = draft_of(WIDGETS, {**widget(), "metadata": copy(metadata)}, old, name="a", environment=world.environment)
    draft.mutated = True
    found = refusal(decide.prune_mutated, draft)
    assert message in found
    assert bool(found) is bool(message)


@pytest.mark.parametrize("changed", [{"kind": "Gadget"}, {"apiVersion": "example.com/v2"}])
def test_defaults_of_an_object_of_another_kind_or_version_are_not_filled_in(changed: Object) -> None:
    draft = draft_of(WIDGETS, {**widget(), **changed})
    assert refusal(arrive.default, draft) == ""
    assert draft.new["spec"] == {}


# -- owners -----------------------------------------------------------------------------------------------------------


def test_duplicate_owners_are_dropped_with_a_warning() -> None:
    draft = draft_of(WIDGETS, widget(metadata={"ownerReferences": [OWNER, {**OWNER, "uid": "y"}, OWNER]}))
    assert refusal(decide.drop_duplicate_owners, draft) == ""
    assert [owner["uid"] for owner in draft.new["metadata"]["ownerReferences"]] == ["x", "y"]
    assert len(draft.outcome.warnings) == 1


# -- locking and identity ---------------------------------------------------------------------------------------------

LOCKS: Final[dict[str, tuple[Resource, str | None, str]]] = {
    "the same": (WIDGETS, "7", ""),
    "an older one": (WIDGETS, "6", "the object has been modified"),
    "a newer one": (WIDGETS, "8", "the object has been modified"),
    "none": (WIDGETS, None, "metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
    "empty": (WIDGETS, "", "must be specified for an update"),
    "zero": (WIDGETS, "0", "must be specified for an update"),
    "no number": (WIDGETS, "x", 'strconv.ParseUint: parsing "x": invalid syntax'),
    "a digit of another script": (WIDGETS, "٣", "invalid syntax"),
    "none of a ConfigMap": (CONFIG_MAPS, None, ""),
    "an older one of a ConfigMap": (CONFIG_MAPS, "6", "the object has been modified"),
}


@pytest.mark.parametrize(("resource", "given", "message"), LOCKS.values(), ids=LOCKS)
async def test_an_update_has_the_resource_version_of_the_stored_object(
    world: World, resource: Resource, given: str | None, message: str
) -> None:
    value = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a", "uid": "u"}}
    found = new_entry(world.key(), resource, value)
    found.revision = 7
    new = copy(value)
    if given is not None:
        new["metadata"]["resourceVersion"] = given
    draft = draft_of(resource, new, value, name="a")
    draft.stored = Stored(found, found)
    result = refusal(decide.check_resource_version, draft)
    assert message in result
    assert bool(result) is bool(message)
    if not message:
        assert draft.new["metadata"]["resourceVersion"] == "7"


async def test_a_new_object_gets_its_identity(world: World) -> None:
    draft = draft_of(WIDGETS, widget(metadata={"uid": "mine"}), environment=world.environment)
    assert refusal(decide.set_system_fields, draft) == ""
    assert draft.new["metadata"] == {"name": "a", "uid": "uid-1", "creationTimestamp": NOW, "generation": 1}


async def test_an_updated_object_keeps_its_identity(world: World) -> None:
    old = {
        "name": "a",
        "uid": "u",
        "creationTimestamp": "then",
        "generation": 4,
        "deletionTimestamp": "t",
        "deletionGracePeriodSeconds": 0,
    }
    new = {"name": "a", "creationTimestamp": "now", "generation": 9, "deletionTimestamp": "later"}
    draft = draft_of(WIDGETS, widget(metadata=new), widget(metadata=old), environment=world.environment)
    assert refusal(decide.set_system_fields, draft) == ""
    assert draft.new["metadata"] == old
    changed = draft_of(WIDGETS, widget(metadata={"uid": "other"}), widget(metadata={"uid": "u", "generation": 1}))
    assert refusal(decide.set_system_fields, changed) == ""
    assert changed.new["metadata"]["uid"] == "other"  # refused by validation


async def test_times_of_managers_are_kept_if_nothing_else_changes(world: World) -> None:
    def managed(time: str, size: int = 1) -> Object:
        entry = {"manager": "m", "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": {}}
        return widget(metadata={"managedFields": [entry]}, size=size)

    unchanged, changed = (draft_of(WIDGETS, managed("new", size), managed("old")) for size in (1, 2))
    for draft in (unchanged, changed):
        assert refusal(decide.keep_times, draft) == ""
    assert unchanged.new["metadata"]["managedFields"][0]["time"] == "old"
    assert changed.new["metadata"]["managedFields"][0]["time"] == "new"


# -- finding and storing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uid", "message"),
    [("uid-1", ""), ("", ""), ("other", "Precondition failed: UID in precondition: other, UID in object meta: uid-1")],
)
async def test_a_replacement_with_another_uid_conflicts(world: World, uid: str, message: str) -> None:
    value = await world.create()
    metadata = {**value["metadata"], "uid": uid}
    found = await error_of(world.replace({**value, "metadata": metadata, "spec": {"size": 2}}))
    assert message in found
    assert bool(found) is bool(message)


CREATING: Final[dict[str, tuple[Action, str, str, bool]]] = {
    "a replacement of a custom resource": (Action.REPLACE, "widgets", "", False),
    "an apply": (Action.APPLY, "widgets", "", True),
    "an apply of the status": (Action.APPLY, "widgets", "status", False),
    "a replacement of a Lease": (Action.REPLACE, "leases", "", True),
    "a replacement of a ConfigMap": (Action.REPLACE, "configmaps", "", False),
}


@pytest.mark.parametrize(("action", "plural", "subresource", "creates"), CREATING.values(), ids=CREATING)
async def test_a_write_to_an_object_that_does_not_exist(
    world: World, action: Action, plural: str, subresource: str, creates: bool
) -> None:
    resource = {
        "widgets": world.widgets,
        "leases": world.resource("leases", "coordination.k8s.io"),
        "configmaps": world.resource("configmaps"),
    }[plural]
    value = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}}
    media_type = "application/apply-patch+yaml" if action is Action.APPLY else "application/json"
    call = world.write(action, value, resource=resource, name="a", subresource=subresource, media_type=media_type)
    message = await error_of(call)
    assert (message == "") is creates
    assert await world.exists(resource=resource) is creates
    if not creates:
        assert message.endswith('"a" not found')


async def test_an_apply_with_a_uid_does_not_create(world: World) -> None:
    value = widget(metadata={"uid": "u"})
    message = await error_of(world.write(Action.APPLY, value, name="a", media_type="application/apply-patch+yaml"))
    assert "uid mismatch: the provided object specified uid u, and no existing object was found" in message
    assert not await world.exists()


async def test_a_new_object_has_no_resource_version(world: World) -> None:
    for given in ("", "0"):
        await world.create(widget(f"a{given}", metadata={"resourceVersion": given}))
    message = await error_of(world.create(widget("b", metadata={"resourceVersion": "1"})))
    assert message == "resourceVersion should not be set on objects to be created"


@pytest.mark.parametrize(("more", "message"), [(0, ""), (1, "etcdserver: request is too large")])
async def test_an_object_is_as_large_as_etcd_allows(world: World, more: int, message: str) -> None:
    await world.create()
    await world.patch({"spec": {"color": "x"}})
    stored = (await world.entry()).stored
    key = "/registry/apiextensions.kubernetes.io/example.com/widgets/default/a"
    room = MAX_REQUEST - 3 * len(key) - 49 - len(stored)
    assert await error_of(world.patch({"spec": {"color": "x" * (1 + room + more)}})) == message
    assert len((await world.entry()).stored) == (len(stored) if message else len(stored) + room)


async def test_a_new_object_is_not_larger_than_etcd_allows(world: World) -> None:
    message = await error_of(world.create(widget(color="x" * MAX_REQUEST)))
    assert message == "etcdserver: request is too large"
    assert not await world.exists()


@pytest.mark.parametrize(("at_version", "kept"), [("v1", {"size": 2}), ("v2", {"size": 2})])
async def test_an_object_is_stored_at_the_storage_version(at_version: str, kept: Object) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "shade": {"type": "string"}}}
    color = {"type": "object", "properties": {"spec": spec}}
    async with world_of(defined=widgets(version(), version("v2", color))) as world:
        resource = world.resource("widgets", GROUP, at_version)
        extra: dict[str, Any] = {"shade": "dark"} if at_version == "v2" else {}
        await world.create(widget(api_version=resource.api_version, size=2, **extra), resource=resource)
        stored = await world.stored()
        assert (stored["apiVersion"], stored["spec"]) == (f"{GROUP}/v1", kept)
        assert b'"apiVersion":"example.com/v1","kind"' in (await world.entry()).stored


async def test_admission_sees_the_object_before_and_after_the_change(world: World) -> None:
    seen: list[tuple[str, Object | None, Object]] = []

    def record(draft: Draft) -> None:
        seen.append((draft.operation, copy(draft.old and draft.old["spec"]), copy(draft.new.get("spec", {}))))

    world.use(admission=Hooks(None, record))
    await world.create()
    await world.patch({"spec": {"size": 2}})
    await world.write(Action.DELETE, name="a")
    assert seen == [
        ("CREATE", None, {"size": 1}),
        ("UPDATE", {"size": 1}, {"size": 2}),
        ("DELETE", {"size": 2}, {}),
    ]
