"""Drafts of writes without a server: for tests of stages and strategies."""

from __future__ import annotations

from noxu.features import Features
from noxu.registry.draft import (
    NO_ENVIRONMENT,
    NO_FEATURES,
    NO_OPTIONS,
    Action,
    Body,
    Draft,
    Options,
    Stored,
    WriteEnvironment,
    WriteRequest,
    draft_for,
)
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, object_at
from noxu.schema.compiled import Compiled
from noxu.values import Object

NOW = "2026-01-02T03:04:05Z"


def draft_of(
    resource: Resource,
    new: Object,
    old: Object | None = None,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    options: Options = NO_OPTIONS,
    features: Features = NO_FEATURES,
    weight: int = 0,
    environment: WriteEnvironment = NO_ENVIRONMENT,
) -> Draft:
    """An object that is being created, or replaced if there is an old one."""
    action = Action.CREATE if old is None else Action.REPLACE
    request = WriteRequest(
        action, resource, namespace, name, subresource, options=options, features=features, weight=weight
    )
    draft = draft_for(request, environment)
    draft.new, draft.old, draft.now = new, old, NOW
    return draft


def draft_of_patch(
    shown: StoredObject, resource: Resource, body: Body, *, namespace: str = "", subresource: str = ""
) -> Draft:
    """A patch of the stored object `a`, which has been found."""
    draft = draft_for(WriteRequest(Action.PATCH, resource, namespace, "a", subresource, body=body))
    draft.now, draft.stored, draft.old = NOW, Stored(shown, shown), object_at(shown, resource)
    return draft


def warm(resource: Resource) -> None:
    """Use the fast path at once."""
    assert resource.schema is not None
    resource.__dict__["compiled"] = Compiled(resource.schema, warm_up=0)
