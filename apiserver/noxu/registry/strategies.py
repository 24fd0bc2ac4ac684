"""The strategies of resource types: which fields a write may set, and its validation (upstream's RESTCreateStrategy).

Graceful deletion: an object is marked, and removed when its grace period is over (rest.BeforeDelete).

Only Pods have grace periods: the kubelet stops the containers, then deletes the Pod with a grace period of 0. A Pod that no
kubelet has to stop has none. Until it is removed, its grace period can be made shorter, never longer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final, NamedTuple

from noxu.api.field import FieldError, Path
from noxu.go.time import format_time, unix_nanos
from noxu.registry import builtin, custom, definitions, stored_object
from noxu.registry.custom import shape_stored
from noxu.registry.draft import Action, Draft, WriteRequest, draft_for
from noxu.registry.resource import BUILT_IN, CUSTOM, DEFINITION, VIRTUAL, Resource, ResourceType, Versions
from noxu.values import Object


class Strategy(NamedTuple):
    """`prepare` resets fields that clients cannot set; `validate` adds errors and warnings to the outcome."""

    prepare: Callable[[Draft], None]
    validate: Callable[[Draft], None]


STRATEGIES: Final[dict[ResourceType, Strategy]] = {
    CUSTOM: Strategy(custom.prepare, custom.validate),
    DEFINITION: Strategy(definitions.prepare, definitions.validate),
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
        definitions.begin_delete, lambda _: False, "precondition failed"
    ),
    "/namespaces": Finalization(builtin.begin_delete_namespace, builtin.held, "Precondition failed"),
}


def finalization_of(resource: Resource) -> Finalization | None:
    """The finalization of a resource, None if only finalizers in the metadata count."""
    return _FINALIZATIONS.get(resource.collection)


# -- graceful deletion ------------------------------------------------------------------------------------------------


class Grace(Enum):
    """What a deletion makes of the grace period of an object."""

    NONE = auto()
    """The object has no grace period, or it is over."""
    BEGUN = auto()
    """The object is marked with a new or a shorter grace period, which may be 0."""
    PENDING = auto()
    """The object is already marked, and the deletion does not make its grace period shorter: it changes nothing."""


def _of_pod(pod: Object, requested: int | None) -> int:
    """The grace period of a Pod in seconds; `requested`: in the DeleteOptions (podStrategy.CheckGracefulDelete)."""
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    return _seconds(spec.get("terminationGracePeriodSeconds") if requested is None else requested)


_PERIODS: Final[dict[str, Callable[[Object, int | None], int]]] = {"/pods": _of_pod}
"""By collection, for resources with graceful deletion."""


def has_grace_periods(resource: Resource) -> bool:
    """Whether the objects of a resource may have a grace period."""
    return resource.collection in _PERIODS


def begin_grace(resource: Resource, value: Object, requested: int | None, now: str) -> Grace:
    """Begin or shorten the grace period of an object, in place. `requested`: seconds in the DeleteOptions, or None."""
    period_of = _PERIODS.get(resource.collection)
    if period_of is None:
        return Grace.NONE
    if grace_is_pending(resource, value, requested):
        return Grace.PENDING
    metadata = value["metadata"]
    ends = metadata.get("deletionTimestamp")
    if not ends:
        _mark(metadata, now, period_of(value, requested), 0)
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1  # in place, as `_mark`
        return Grace.BEGUN
    current = _seconds(metadata.get("deletionGracePeriodSeconds"))
    if not current:
        return Grace.NONE
    _mark(metadata, ends, _seconds(requested), current)
    return Grace.BEGUN


def grace_is_pending(resource: Resource, value: Object, requested: int | None) -> bool:
    """Whether an object waits for the end of its grace period, which a deletion does not make shorter."""
    metadata = value["metadata"]
    if resource.collection not in _PERIODS or not metadata.get("deletionTimestamp"):
        return False
    current = _seconds(metadata.get("deletionGracePeriodSeconds"))
    return current > 0 and (requested is None or _seconds(requested) >= current)


def _seconds(period: int | None) -> int:
    """A grace period; a negative one counts as a second."""
    period = period or 0
    return 1 if period < 0 else period


def _mark(metadata: Object, moment: str, seconds: int, passed: int) -> None:
    """Let a grace period end `seconds` after it began, which was `passed` seconds before a moment; at most in year 9999."""
    ends = unix_nanos(moment) // 10**9 - passed + seconds
    metadata["deletionTimestamp"] = format_time(_EPOCH + timedelta(seconds=min(max(ends, _FIRST), _LAST)))  # in place
    metadata["deletionGracePeriodSeconds"] = seconds


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = int((datetime.min.replace(tzinfo=UTC) - _EPOCH).total_seconds())
_LAST: Final = int((datetime.max.replace(microsecond=0, tzinfo=UTC) - _EPOCH).total_seconds())


# -- stored objects under another schema ----------------------------------------------------------------------------------


class Revalidation(NamedTuple):
    """The errors of an object, and the paths of the fields that pruning hides."""

    resource: Resource
    errors: list[FieldError]
    hidden: list[Path]


def revalidate(stored: Object, versions: Versions) -> Revalidation:
    """Validate a stored custom resource by the current schema of its CRD; it is changed in place.

    When the schema of a CRD changes, stored objects are not rewritten. A read prunes them and fills in defaults, so fields that
    the schema no longer describes are hidden until the next write removes them. Nothing validates them before the next write,
    and then ratcheting may ignore errors. Here the object, as a read returns it, is validated like a new object, at its stored
    version, or at the storage version if its own version no longer exists.
    """
    resource = versions.of(stored)
    stored["apiVersion"] = resource.api_version  # in place: its own version may not exist any more
    hidden = shape_stored(resource, stored)
    stored_object.read(resource, stored)
    draft = draft_for(WriteRequest(Action.CREATE, resource))
    draft.new = stored
    STRATEGIES[resource.type].validate(draft)
    return Revalidation(resource, draft.outcome.errors, hidden)
