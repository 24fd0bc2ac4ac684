"""The law of the write pipeline: a write has the same result with and without the fast path."""

from __future__ import annotations

from typing import NamedTuple
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.features import Features
from noxu.registry import custom, stored_object
from noxu.registry.custom import CustomCodec
from noxu.registry.draft import EXACT, UNKNOWN, Body, Stored
from noxu.registry.resource import CUSTOM, JSON_PATCH, MERGE_PATCH, Resource
from noxu.registry.stored_object import key_of, new_entry, object_at
from noxu.registry.strategies import STRATEGIES
from noxu.registry.write import arrive, decide
from noxu.values import Json, Object, copy, equal
from tests.drafts import draft_of, draft_of_patch, warm
from tests.properties.structurals import METADATA, roots, wholes

STAGES = (
    arrive.decode,
    arrive.prune,
    arrive.default,
    decide.track_managers,
    decide.prepare,
    STRATEGIES[CUSTOM].validate,
)
STORED = {**METADATA, "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}


@st.composite
def writes(draw: st.DrawFn) -> tuple[Object, Object, Object]:
    """A schema, a stored object, and the object of a write, which may share some fields with the stored one."""
    schema = draw(roots())
    old, new = draw(wholes(schema)), draw(wholes(schema))
    changed = draw(st.sampled_from([("spec", "status"), ("spec",), ("status",), ()]))
    sent = {name: item for name, item in old.items() if name not in changed}
    return schema, old, sent | {name: new[name] for name in changed if name in new}


def resource(schema: Object, *, has_status: bool) -> Resource:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "examples", "kind": "Example"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    if has_status:
        version["subresources"] = {"status": {}}
    found = custom.versions_of({"spec": spec, "status": {"acceptedNames": names}}, since=1).storage
    warm(found)
    return found


class Outcome(NamedTuple):
    new: Object
    messages: list[str]
    clean: bool
    stored: bytes = b""


def write(kind: Resource, old: Object | None, new: Object, *, subresource: str, ratcheting: bool) -> Outcome:
    metadata = METADATA if old is None else STORED
    before = shown = None
    if old is not None:
        before = copy({**old, "metadata": STORED})
        valid = stored_object.read(kind, before)
        shown = new_entry(key_of(kind, "default", "a"), kind, before, valid=valid)
    draft = draft_of(
        kind,
        copy({**new, "metadata": metadata}),
        before,
        namespace="default",
        name="a",
        subresource=subresource,
        features=Features(ratcheting=ratcheting),
    )
    draft.stored = None if shown is None else Stored(shown, shown)
    try:
        for stage in STAGES:
            stage(draft)
    except ApiError as error:
        return Outcome({}, [error.message], clean=False)
    exact = draft.form is EXACT  # as in `encode`
    stored = (
        b"" if draft.outcome.errors else new_entry(key_of(kind, "default", "a"), kind, draft.new, exact=exact).stored
    )
    return Outcome(
        draft.new,
        sorted([*map(str, draft.outcome.errors), *draft.outcome.warnings, *draft.outcome.unknown]),
        draft.form is not UNKNOWN,
        stored,
    )


@given(writes(), st.sampled_from(["create", "update", "status"]), st.booleans(), st.booleans())
def test_the_fast_path_makes_no_difference(
    case: tuple[Object, Object, Object], verb: str, has_status: bool, ratcheting: bool
) -> None:
    schema, old, new = case
    before = None if verb == "create" else old
    subresource = "status" if verb == "status" else ""
    has_status = has_status or verb == "status"
    kind = resource(schema, has_status=has_status)
    write(kind, before, new, subresource=subresource, ratcheting=ratcheting)  # sets of fields recur the second time
    fast = write(kind, before, new, subresource=subresource, ratcheting=ratcheting)
    with mock.patch.object(CustomCodec, "accept", return_value=False):
        kind = resource(schema, has_status=has_status)
        slow = write(kind, before, new, subresource=subresource, ratcheting=ratcheting)
    assert fast.messages == slow.messages
    assert equal(fast.new, slow.new)
    assert fast.stored == slow.stored
    event(f"{verb} on the fast path: {fast.clean}")


# -- patches ----------------------------------------------------------------------------------------------------------

PATCH_STAGES = (
    arrive.patch, arrive.decode, arrive.prune, arrive.check_url, arrive.default, decide.drop_duplicate_owners, decide.track_managers,
    decide.check_resource_version, decide.set_system_fields, decide.prepare, decide.validate, decide.keep_times,
)  # fmt: skip


def pointers(value: Json) -> list[str]:
    """The JSON pointers of the fields of an object, and of what is in them. Names have no slashes here."""
    found: list[str] = []
    todo: list[tuple[str, Json]] = [("", value)]
    for pointer, inside in todo:  # the list grows meanwhile
        members = inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
        for name, item in members:
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            found.append(f"{pointer}/{escaped}")
            todo.append((found[-1], item))
    return found


@st.composite
def patched_objects(draw: st.DrawFn) -> tuple[Object, Object, str, Json]:
    """A schema, a stored object, the media type of a patch, and a patch that may move what is in the object."""
    schema, old, new = draw(writes())
    parts = [new.get("spec"), new.get("status"), None, 1]
    changes = {"labels": {"c": "d"}, "ownerReferences": [OWNER, OWNER], "annotations": {"a": "b"}}
    if draw(st.booleans()):
        metadata = {name: changes[name] for name in draw(st.lists(st.sampled_from(sorted(changes)), max_size=2))}
        fields = {name: draw(st.sampled_from(parts)) for name in draw(st.lists(st.sampled_from(["spec", "status"])))}
        return schema, old, MERGE_PATCH, fields | ({"metadata": metadata} if metadata else {})
    places = st.sampled_from([*pointers({name: old[name] for name in ("spec", "status") if name in old}), "/spec/a"])
    operations = st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "remove", "move", "copy"]),
            "path": places,
            "from": places,
            "value": st.sampled_from(parts),
        }
    )
    return schema, old, JSON_PATCH, draw(st.lists(operations, max_size=2))


OWNER: Object = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "x"}


def patch(kind: Resource, old: Object, media_type: str, change: Json, *, subresource: str) -> Outcome:
    """Patch an object in all stages. Asserts that they do not change the old one."""
    value = copy({**old, "metadata": STORED})
    valid = stored_object.read(kind, value)
    shown = new_entry(key_of(kind, "default", "a"), kind, value, valid=valid)
    shown.revision = 1
    body = Body(codec.encode(change, sort_keys=False), media_type)
    draft = draft_of_patch(shown, kind, body, namespace="default", subresource=subresource)
    messages: list[str] = []
    try:
        for stage in (arrive.read_patch, *PATCH_STAGES):
            stage(draft)
    except ApiError as error:
        messages.append(error.message)
    assert equal(draft.old, object_at(shown, kind))
    new = {} if messages else draft.new
    return Outcome(new, messages + draft.outcome.warnings + sorted(draft.outcome.unknown), draft.form is not UNKNOWN)


@given(patched_objects(), st.booleans())
def test_a_patched_object_that_shares_parts_with_the_stored_one_is_the_same(
    case: tuple[Object, Object, str, Json], is_status: bool
) -> None:
    schema, old, media_type, change = case
    subresource = "status" if is_status else ""
    fast = patch(resource(schema, has_status=is_status), old, media_type, change, subresource=subresource)
    with mock.patch.object(CustomCodec, "accept", return_value=False):  # then nothing is shared
        kind = resource(schema, has_status=is_status)
        slow = patch(kind, old, media_type, change, subresource=subresource)
    assert fast.messages == slow.messages
    assert equal(fast.new, slow.new)
    event(f"{media_type} on the fast path: {fast.clean}")
