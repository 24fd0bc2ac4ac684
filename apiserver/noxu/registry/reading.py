"""The stages of a read, for stored objects that were written before the schema of their version changed.

    storage → decode → PRUNE → default → (convert) → encode

A read returns the fields that the schema describes *now* (the structural-schema article, "pruning on read"). Objects that
were written under the current schema skip these stages: see `registry.entry`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from noxu.api.errors import ApiError
from noxu.registry.resource import Resource
from noxu.values import Object


def prune_stored(resource: Resource, value: Object) -> None:
    """Remove fields that the schema no longer describes, and nulls in fields that are not nullable."""
    resource.behaviour.read(resource, value)


def default_stored(resource: Resource, value: Object) -> None:
    """Fill in defaults that were added to the schema, as far as they do not make the object too large."""
    with suppress(ApiError):
        resource.behaviour.default(resource, value)


READ_STAGES: Final[tuple[Callable[[Resource, Object], None], ...]] = (prune_stored, default_stored)


def read(resource: Resource, value: Object) -> bool:
    """Prune and default a stored object of this version, in place. Whether the fast path has accepted it."""
    if resource.behaviour.accept(resource, value, stored=True):
        return True  # the fast path: nothing to prune, and defaults are filled in
    for stage in READ_STAGES:
        stage(resource, value)
    return False
