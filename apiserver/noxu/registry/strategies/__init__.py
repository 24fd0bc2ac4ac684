"""The strategies of resource types: which fields a write may set, and its validation (upstream's RESTCreateStrategy)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.registry.draft import Draft
from noxu.registry.resource import BUILT_IN, CUSTOM, DEFINITION, VIRTUAL, Resource, ResourceType
from noxu.registry.strategies import builtin, custom, definition
from noxu.values import Object


class Strategy(NamedTuple):
    """`prepare` resets fields that clients cannot set; `validate` adds errors and warnings to the outcome."""

    prepare: Callable[[Draft], None]
    validate: Callable[[Draft], None]


STRATEGIES: Final[dict[ResourceType, Strategy]] = {
    CUSTOM: Strategy(custom.prepare, custom.validate),
    DEFINITION: Strategy(definition.prepare, definition.validate),
    BUILT_IN: Strategy(builtin.prepare, builtin.validate),
    VIRTUAL: Strategy(builtin.prepare, builtin.validate),
}


class Finalization(NamedTuple):
    """The deletion of objects that a controller has to finalize.

    `begin_delete(object, now, finalizers)` marks an object as being deleted, with the finalizers in its metadata that follow
    from the propagation policy; whether it has to wait for the controller.
    `held(object)`: whether an object that is being deleted remains even without finalizers in its metadata.
    `precondition_failed`: the beginning of the error for a failed precondition.
    """

    begin_delete: Callable[[Object, str, list[str]], bool]
    held: Callable[[Object], bool]
    precondition_failed: str


_FINALIZATIONS: Final = {
    "apiextensions.k8s.io/customresourcedefinitions": Finalization(
        definition.begin_delete, lambda _: False, "precondition failed"
    ),
    "/namespaces": Finalization(builtin.begin_delete_namespace, builtin.held, "Precondition failed"),
}


def finalization_of(resource: Resource) -> Finalization | None:
    """The finalization of a resource, None if only finalizers in the metadata count."""
    return _FINALIZATIONS.get(resource.collection)
