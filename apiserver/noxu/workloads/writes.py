"""What a workload controller wants to be written, as values, and how it says so.

A controller of workloads is a pure function of (objects, key, now). It is a generator: it yields the writes that it wants,
and receives their results, in the same order: the stored object, None for one that was deleted or an Event, or the ApiError
that refused the write. It returns the seconds of object time after which it wants to look again; None: after a change.

    def reconcile(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        replica_set = objects.get(REPLICA_SETS, key)
        ...
        results = yield [Create(PODS, pod), Create(PODS, pod)]      # carried out at the same time
        status = ...                                                # what `results` and `objects` are now
        stored(*(yield [Replace(REPLICA_SETS, with_status(replica_set, status), "status")]))
        return None

`objects` are live: after a step they contain what was written. So there are no expectations as in upstream's controllers, which
read caches that lag behind.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from noxu.api.errors import ApiError
from noxu.values import Object

Kind: TypeAlias = tuple[str, str]
"""The group and the plural of a built-in kind."""


class NamespacedName(NamedTuple):
    """Where an object is: its namespace, "" for a cluster-scoped one, and its name."""

    namespace: str
    name: str


class Create(NamedTuple):
    """Create an object; its namespace is in its metadata. It may have a generateName."""

    kind: Kind
    value: Object


class Replace(NamedTuple):
    """Replace an object by `value`, whose metadata still has the uid and the resourceVersion of the state that it was made from.

    `subresource`: "" or "status", or another one that has the same kind.
    """

    kind: Kind
    value: Object
    subresource: str = ""


class Delete(NamedTuple):
    """Delete this very object (a precondition is its uid). `grace`: the seconds of its grace period; None: its own.

    `propagation`: Foreground, Background, Orphan; "": the kind's.
    """

    kind: Kind
    value: Object
    grace: int | None = None
    propagation: str = ""


class Bind(NamedTuple):
    """Bind a pod to a node: a POST of pods/binding."""

    pod: Object
    node: str


class ReadScale(NamedTuple):
    """Get the scale of what a scaleTargetRef names, a custom resource perhaps. It is read: not all are in the index."""

    target: Object
    namespace: str


class WriteScale(NamedTuple):
    """Update the scale of a target, as it was read: with its resourceVersion."""

    target: Object
    scale: Object


class NewEvent(NamedTuple):
    """An Event about an object. Repeated ones are counted, as client-go's recorder does. It never fails.

    `host`: the node of the kubelet that records it. `field`: the path of the part of the object that it is about.
    """

    about: Object
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    host: str = ""
    field: str = ""


Write: TypeAlias = Create | Replace | Delete | Bind | ReadScale | WriteScale | NewEvent
Result: TypeAlias = Object | ApiError | None
Steps: TypeAlias = Generator[Sequence[Write], Sequence[Result], float | None]
"""What a controller does: see the module."""

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


def stored(result: Result) -> Object | None:
    """The result of a write that must not fail. Raises ApiError: the key is reconciled again."""
    if isinstance(result, ApiError):
        raise result
    return result


def done(results: Sequence[Result]) -> None:
    """Raises the first ApiError among results: the key is reconciled again."""
    for result in results:
        stored(result)


def is_gone(result: Result) -> bool:
    """Whether a write was refused because there is no such object any more."""
    return isinstance(result, ApiError) and result.reason == "NotFound"


def done_or_gone(results: Sequence[Result]) -> None:
    """As `done`, for writes of which some may be about objects that are gone meanwhile."""
    done([result for result in results if not is_gone(result)])


def is_namespace_ending(result: Result) -> bool:
    """Whether a write was refused because its namespace is being deleted: it need not be tried again."""
    return isinstance(result, ApiError) and any(
        cause.get("reason") == "NamespaceTerminating" for cause in result.causes
    )


def with_status(value: Object, status: Object) -> Object:
    """The object with another status."""
    return {**value, "status": status}
