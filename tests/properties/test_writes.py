"""The law of the write pipeline: with the fast path or without it, a write comes to the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

from apiserver.api.errors import ApiError
from apiserver.api.types import Object
from apiserver.api.values import copy, equal
from apiserver.features import Features
from apiserver.registry import custom, pipeline
from apiserver.registry.custom import CustomResources
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.schema.compiled import Compiled
from apiserver.schema.structural import parse
from tests.properties.structurals import METADATA, roots, wholes

STAGES = (pipeline.decode, pipeline.default, pipeline.own, pipeline.prepare)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STORED = {**METADATA, "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}


@st.composite
def writes(draw: st.DrawFn) -> tuple[Object, Object, Object]:
    """A schema, a stored object, and one that is sent: another one, or the stored one with something changed."""
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
    told: list[str]
    clean: bool


def write(kind: Resource, old: Object | None, new: Object, *, subresource: str, ratcheting: bool) -> Outcome:
    metadata = METADATA if old is None else STORED
    draft = Draft(kind, "CREATE" if old is None else "UPDATE", copy({**new, "metadata": metadata}))
    draft.namespace, draft.name, draft.subresource = "default", "a", subresource
    draft.features = Features(ratcheting=ratcheting)
    if old is not None:
        draft.old = copy({**old, "metadata": STORED})
        pipeline.read(kind, draft.old)
    draft.sources = draft.sources._replace(now=lambda: NOON)
    try:
        for stage in STAGES:
            stage(draft)
        kind.behaviour.validate(draft)
    except ApiError as error:
        return Outcome({}, [error.message], clean=False)
    return Outcome(draft.new, sorted([*map(str, draft.errors), *draft.warnings, *draft.unknown]), draft.clean)


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
    assert fast.told == slow.told
    assert equal(fast.new, slow.new)
    event(f"{verb} on the fast path: {fast.clean}")
