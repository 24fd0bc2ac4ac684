"""Validate stored objects by the current schema of their CRD, and find the fields that pruning hides.

When the schema of a CRD changes, stored objects are not rewritten. A read prunes them and fills in defaults, so fields
that the schema no longer describes are hidden until the next write removes them. Nothing validates them before the next
write, and then ratcheting may ignore errors. Here the object, as a read returns it, is validated like a new object, at its
stored version, or at the storage version if its own version no longer exists.
"""

from __future__ import annotations

from typing import NamedTuple

from noxu.api.field import FieldError, Path
from noxu.registry import stored_object
from noxu.registry.custom import shape_stored
from noxu.registry.draft import Action, WriteRequest, draft_of
from noxu.registry.resource import Resource, Versions
from noxu.registry.strategies import STRATEGIES
from noxu.values import Object


class Revalidation(NamedTuple):
    """The errors of an object, and the paths of the fields that pruning hides."""

    resource: Resource
    errors: list[FieldError]
    hidden: list[Path]


def revalidate(stored: Object, versions: Versions) -> Revalidation:
    """Validate a stored custom resource, which is changed in place."""
    resource = versions.of(stored)
    stored["apiVersion"] = resource.api_version
    hidden = shape_stored(resource, stored)
    stored_object.read(resource, stored)
    draft = draft_of(WriteRequest(Action.CREATE, resource))
    draft.new = stored
    STRATEGIES[resource.type].validate(draft)
    return Revalidation(resource, draft.outcome.errors, hidden)
