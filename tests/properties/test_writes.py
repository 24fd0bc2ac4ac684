"""The law of the write pipeline: a write has the same result with and without the fast path."""

from __future__ import annotations

from typing import NamedTuple
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.features import Features
from noxu.apiserver.registry import custom, reading, stages
from noxu.apiserver.registry.custom import CustomResources
from noxu.apiserver.registry.entry import key_of, new_entry
from noxu.apiserver.registry.resource import CUSTOM, Resource
from noxu.apiserver.registry.strategies import STRATEGIES
from noxu.apiserver.schema.compiled import Compiled
from noxu.apiserver.schema.structural import parse
from noxu.apiserver.values import Object, copy, equal
from tests.drafts import draft_of
from tests.properties.structurals import METADATA, roots, wholes

STAGES = (stages.decode, stages.prune, stages.default, stages.own, stages.prepare, STRATEGIES[CUSTOM].validate)
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
    found.__dict__["compiled"] = Compiled(parse(schema), warm_up=0)
    return found


class Outcome(NamedTuple):
    new: Object
    messages: list[str]
    clean: bool


def write(kind: Resource, old: Object | None, new: Object, *, subresource: str, ratcheting: bool) -> Outcome:
    metadata = METADATA if old is None else STORED
    before = shown = None
    if old is not None:
        before = copy({**old, "metadata": STORED})
        valid = reading.read(kind, before)
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
    draft.shown = shown
    try:
        for stage in STAGES:
            stage(draft)
    except ApiError as error:
        return Outcome({}, [error.message], clean=False)
    return Outcome(
        draft.new,
        sorted([*map(str, draft.outcome.errors), *draft.outcome.warnings, *draft.outcome.unknown]),
        draft.clean,
    )


@given(writes(), st.sampled_from(["create", "update", "status"]), st.booleans(), st.booleans())
def test_the_fast_path_makes_no_difference(
    case: tuple[Object, Object, Object], verb: str, has_status: bool, ratcheting: bool
) -> None:
    schema, old, new = case
    before = None if verb == "create" else old
    subresource = "status" if verb == "status" else ""
    has_status = has_status or verb == "status"
    fast = write(resource(schema, has_status=has_status), before, new, subresource=subresource, ratcheting=ratcheting)
    with mock.patch.object(CustomResources, "accept", return_value=False):
        kind = resource(schema, has_status=has_status)
        slow = write(kind, before, new, subresource=subresource, ratcheting=ratcheting)
    assert fast.messages == slow.messages
    assert equal(fast.new, slow.new)
    event(f"{verb} on the fast path: {fast.clean}")
