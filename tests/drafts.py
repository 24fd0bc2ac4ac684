"""Drafts of writes without a server: for tests of stages and strategies."""

from __future__ import annotations

from noxu.apiserver.features import Features
from noxu.apiserver.registry.draft import (
    NO_ENVIRONMENT,
    NO_FEATURES,
    NO_OPTIONS,
    Action,
    Draft,
    Environment,
    Options,
    WriteRequest,
)
from noxu.apiserver.registry.draft import draft_of as make_draft
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Object

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
    environment: Environment = NO_ENVIRONMENT,
) -> Draft:
    """An object that is being created, or replaced if there is an old one."""
    action = Action.CREATE if old is None else Action.REPLACE
    request = WriteRequest(
        action, resource, namespace, name, subresource, options=options, features=features, weight=weight
    )
    draft = make_draft(request, environment)
    draft.new, draft.old, draft.now = new, old, NOW
    return draft
