"""The data of a write: `WriteRequest`, `Draft`, `Outcome` and `Written`.

`WriteRequest` is the immutable request. `Draft` is the state that the stages work on. `Outcome` collects errors, warnings
and annotations for the audit log. `Written` is the result.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from noxu.api import codec, errors
from noxu.api.field import FieldError
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.features import Features
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry.access import ANONYMOUS, AccessAttributes, Authorize, User, allow_everything
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Follower, Reader
from noxu.registry.resource import Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import StoredObject, body_at, body_before_storage
from noxu.registry.trace import Note, Step, Trace, shown_patch
from noxu.values import Object
from noxu_storage.types import Key

if TYPE_CHECKING:
    from noxu.cel import FailedRule
    from noxu.crd.known_definitions import ValidSpecs
    from noxu.registry.patch import ObjectPatch

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
"""The operation in admission; an apply is a CREATE or an UPDATE."""
FieldValidation = Literal["Strict", "Warn", "Ignore"]


class Action(Enum):
    """The action that a client requests. Each has its own tuple of stages (`registry.write.WRITE_STAGES`)."""

    CREATE = auto()
    REPLACE = auto()
    PATCH = auto()
    APPLY = auto()
    REPLACE_SCALE = auto()
    PATCH_SCALE = auto()
    APPLY_SCALE = auto()
    DELETE = auto()
    REVIEW = auto()
    ACT = auto()
    CONNECT = auto()

    __hash__ = object.__hash__  # that of Enum is written in Python


class Reservation(Protocol):
    """What a write has chosen: values that must be unique, such as addresses."""

    def claim(self) -> Awaitable[None] | None:
        """Ensure that no other server stores them. None: that is certain. Raises Claimed, ApiError, StoreError."""
        ...

    def end(self, *, is_certain: bool) -> None:
        """The write has ended. `is_certain`: its object will not be stored later."""
        ...


Allocate: TypeAlias = Callable[["Object", "Object | None", Key], Reservation]
"""(new, old, key): set the fields of an object whose values must be unique, and reserve them.

It is called in any thread. Raises ApiError.
"""


class Options(NamedTuple):
    """CreateOptions, UpdateOptions or PatchOptions; validated."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = "Warn"
    force: bool = False


class Preconditions(NamedTuple):
    """Conditions on the stored object. None: no condition."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(NamedTuple):
    """Validated. `propagation` is Foreground, Background, Orphan, or "" if the request has none.

    `corrupt_too`: delete the object even if it cannot be read. `grace`: the grace period in seconds, None if not given.
    """

    dry_run: bool = False
    propagation: str = ""
    preconditions: Preconditions = Preconditions()
    corrupt_too: bool = False
    grace: int | None = None


ENCODED: Final = ""
"""The media type of a body that the server has encoded itself."""


class Body(NamedTuple):
    """The body of a request: bytes of a media type, or an object that has been decoded.

    That is in manifests: the object itself, or what `codec.encode` has made of it, with the media type ENCODED. `complaints`
    are the decoder's messages about it (repeated fields).
    """

    content: bytes | Object
    media_type: str = "application/json"
    complaints: tuple[str, ...] = ()


OPERATIONS: Final[dict[Action, Operation]] = {
    Action.CREATE: "CREATE",
    Action.REPLACE: "UPDATE",
    Action.PATCH: "UPDATE",
    Action.APPLY: "UPDATE",
    Action.REPLACE_SCALE: "UPDATE",
    Action.PATCH_SCALE: "UPDATE",
    Action.APPLY_SCALE: "UPDATE",
    Action.DELETE: "DELETE",
    Action.REVIEW: "CREATE",
    Action.ACT: "CREATE",
    Action.CONNECT: "CONNECT",
}
"""The operation of an action at its start. A REPLACE or APPLY that finds no object becomes a CREATE."""

NO_BODY: Final = Body(b"")
NO_OPTIONS: Final = Options()
NO_DELETE_OPTIONS: Final = DeleteOptions()
NO_FEATURES: Final = Features()


class WriteRequest(NamedTuple):
    """The request. `namespace` is "" for cluster-scoped resources; `name` is "" if the URL has none."""

    action: Action
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Body = NO_BODY
    options: Options = NO_OPTIONS
    delete_options: DeleteOptions = NO_DELETE_OPTIONS
    options_sent: Object = {}  # noqa: RUF012 - never changed
    """The options as sent, for admission."""
    user: User = ANONYMOUS
    features: Features = NO_FEATURES
    deadline: float = math.inf
    """The deadline of the request, in the event loop's time."""
    weight: int = 0
    """The size of the body or of the stored object in bytes; large requests are processed in a thread."""
    internal: bool = False
    """A write of the server itself, without admission."""
    of_collection: bool = False
    """The URL is that of a collection, and `name` one of its objects; admission sees no name."""
    authorize: Authorize = allow_everything
    """Answers what else the user may do. The server itself may do everything."""
    parent: Resource | None = None
    """The resource in the URL, if `resource` is the kind of the body of its subresource; else None."""
    valid_specs: ValidSpecs | None = None
    """Specs of definitions that are known to be valid; None for requests of clients."""

    @property
    def target(self) -> Resource:
        """The resource in the URL."""
        return self.parent or self.resource

    def asks_to(self, verb: str, resource: Resource) -> AccessAttributes:
        """The question whether the user may do something else with the object."""
        return AccessAttributes(
            self.user,
            verb,
            resource.group,
            resource.version,
            resource.plural,
            self.subresource,
            self.namespace,
            self.name,
        )


@dataclass(slots=True)
class Outcome:
    """The errors, warnings and annotations of a write."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Paths of fields that decoding and pruning removed."""
    complaints: list[str] = field(default_factory=list)
    """The decoder's messages that fieldValidation handles (repeated fields)."""
    audit_annotations: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] | None = None
    """Name, namespace, uid and resourceVersion in the body, for the audit log; None if there is none."""
    failed_rules: list[FailedRule] = field(default_factory=list)
    """The CEL rules (x-kubernetes-validations) that are not satisfied."""
    webhook_seconds: float = 0
    """How long it waited for admission webhooks."""
    rule_seconds: float = 0
    """How long the rules of its object (x-kubernetes-validations) were evaluated; 0: there are none."""
    compile_seconds: list[float] = field(default_factory=list)
    """How long the rules of each node of a definition's schemas were compiled."""

    def reset(self, warned: int) -> None:
        """Drop everything except the first `warned` warnings."""
        del self.warnings[warned:]
        self.errors, self.unknown, self.complaints, self.failed_rules = [], [], [], []
        self.compile_seconds = []
        self.audit_annotations.clear()


class Admission(Protocol):
    """The admission chain. The registry receives it as an argument, because it does not know the plug-ins."""

    def is_idle(self, reader: Reader) -> bool:
        """Whether certainly nothing is configured that changes or refuses objects."""
        ...

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        """Change `draft.new` and set `draft.mutated`, when the result is awaited; raise ApiError to refuse.

        None: nothing is configured.
        """
        ...

    def validate(self, draft: Draft) -> Awaitable[None] | None:
        """Raise ApiError to refuse. None: nothing is configured."""
        ...

    def check_again(self, draft: Draft) -> None:
        """Check what may have changed since `mutate`, right before a new object is stored; raise ApiError to refuse."""
        ...


class AdmitAll:
    """A chain without plug-ins."""

    def is_idle(self, reader: Reader) -> bool:
        return True

    def mutate(self, draft: Draft) -> None: ...

    def validate(self, draft: Draft) -> None: ...

    def check_again(self, draft: Draft) -> None: ...


ADMIT_ALL: Final = AdmitAll()


Guard: TypeAlias = Callable[["Draft"], None]
"""Refuses to create or update an object that gives more rights than the user has. Raises ApiError."""

Reviewer = Callable[["Draft"], Awaitable[Object]]
"""Computes the status of a virtual object (a review)."""


SUCCESS: Final[Object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
"""The result of an action on an object."""


class Act(NamedTuple):
    """What a subresource does with its body, which is of another kind.

    `check` raises ApiError for a body that it refuses, before validating admission. `act` does it: a Status. Raises ApiError.
    """

    check: Callable[[Draft], None]
    act: Callable[[Draft], Awaitable[Object]]


async def _no_reviewer(draft: Draft) -> Object:
    raise errors.internal_error(f"this server does not answer {draft.resource.kind}")


def _no_action(kind: str) -> Act:
    raise AssertionError(f"nothing knows what to do with {kind}")


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts of the server that stages use."""

    reader: Reader
    persistence: Persistence
    served_resources: LiveResources
    admission: Admission = ADMIT_ALL
    clock: Clock = SYSTEM_CLOCK
    identifiers: Identifiers = SYSTEM_IDENTIFIERS
    reviewer: Reviewer = _no_reviewer
    followers: dict[str, Follower] = field(default_factory=dict)
    """By collection."""
    allocators: dict[str, Allocate] = field(default_factory=dict)
    """By collection."""
    guards: Mapping[str, Guard] = field(default_factory=dict)
    """By collection."""
    action: Callable[[str], Act] = _no_action
    """What a subresource does with a body of another kind, by that kind."""


class _NoEnvironment:
    """The environment of a draft that is only validated."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"this draft has no environment: it cannot use its {name}")


NO_ENVIRONMENT: Final = cast("Environment", _NoEnvironment())


@dataclass(slots=True)
class Written:
    """The result of a write. `entry` is the stored entry, that of a dry run, or the last one of a deleted object.

    `value` is the object if there is no entry for it: an answered review, or an object whose last finalizer was removed.
    `unstored_version`: the resourceVersion of an object that a dry run creates, which is the one that was sent, or "";
    None for a stored entry.
    """

    entry: StoredObject | None
    value: Object | None = None
    created: bool = False
    deleted: bool = False
    unstored_version: str | None = None
    uid: str = ""
    """The uid of an object that was deleted."""

    def body(self, resource: Resource) -> bytes:
        """The object as JSON at `resource`'s version."""
        if self.entry is not None:
            if self.unstored_version is None:
                return body_at(self.entry, resource)
            return body_before_storage(self.entry, resource, self.unstored_version)
        return codec.encode(resource.codec.written(self.value or {}), sort_keys=resource.is_custom)


@dataclass(slots=True, eq=False)
class Draft:
    """The state of a write, at the version of the request. `draft_of` creates it."""

    request: WriteRequest
    resource: Resource
    operation: Operation
    new: Object = field(default_factory=dict)
    """The new object. Empty for a delete that removes the object at once."""
    old: Object | None = None
    """The stored object at the request's version, None if it does not exist."""
    environment: Environment = NO_ENVIRONMENT
    """A draft without environment can only be validated."""
    outcome: Outcome = field(default_factory=Outcome)
    weight: int = 0
    """Bytes to process: increased if the stored object or a webhook's response is larger than the request."""
    trace: Trace | None = None
    """The steps until now; None disables tracing."""
    notes: list[Note] = field(default_factory=list)
    """Notes about the current stage, for its step in the trace."""

    name: str = ""
    """The name for admission: that of the URL, or a generated one."""
    found: StoredObject | None = None
    """The stored entry."""
    shown: StoredObject | None = None
    """The stored entry at the request's version, possibly converted by a webhook."""
    entry: StoredObject | None = None
    """The entry to store."""
    written: Written | None = None
    now: str = ""
    """The time of the write in RFC 3339, the same for all fields of the object."""
    clean: bool = False
    """The fast path has accepted the object: nothing to prune or refuse, and defaults are filled in."""
    shares_old: bool = False
    """The new object shares parts with the old one. Nothing below its metadata and its other fields may be changed in place."""
    valid: bool = False
    """The fast path has found that the object satisfies its schema in the form in which it will be stored."""
    claimed: errors.Qualified | None = None
    """The group and kind of the new object if they are not the resource's. A write to /status restores the old ones."""
    mutated: bool = False
    """Mutating admission has changed the object."""
    pending: bool = False
    """A deletion that changes nothing, and is not subject to admission: the object waits for the end of its grace period."""
    removed_at_once: bool = False
    """A deletion that marks the object, and removes it when that is stored: its grace period is 0."""
    in_loop: bool = False
    """Stages run in the event loop. A stage that takes too long raises LoopBudgetExceeded and is repeated in a thread."""
    patch: ObjectPatch | None = None
    """The patch, kept for errors about the patched object, which quote it."""
    unchanged: bool = False
    """A server-side apply whose configuration changes nothing but the owners of fields."""
    configuration: Object | None = None
    """The configuration of server-side apply. Each attempt decodes it again, because the merged object contains its parts."""
    scale: Object | None = None
    """The new Scale of a write to /scale, for mutating admission."""
    reservation: Reservation | None = None
    """What was allocated for the object; the driver ends it when the write has ended."""
    admission_state: object = None
    """State of the admission chain between mutation and validation."""

    def restart(self, warned: int) -> None:
        """Return to the state before the first stage, after a conflict with another write.

        `warned` is the number of warnings before the first stage.
        """
        self.new, self.operation = {}, OPERATIONS[self.request.action]
        self.name = "" if self.request.of_collection else self.request.name
        self.old = self.found = self.shown = self.entry = self.patch = self.configuration = self.scale = (
            self.claimed
        ) = None
        self.unchanged = self.shares_old = self.clean = self.valid = self.mutated = self.pending = (
            self.removed_at_once
        ) = False
        self.admission_state = self.reservation = None
        self.outcome.reset(warned)

    def note(self, message: str) -> None:
        """Add a note about the current stage to the trace."""
        if self.trace is not None:
            self.notes.append(Note("", message))

    def record(
        self, stage: str, *, patch: Sequence[Object] = (), notes: Sequence[Note] = (), seconds: float = 0.0
    ) -> None:
        """Add a step below the current stage to the trace: a webhook or a policy."""
        if self.trace is not None:
            self.trace.append(Step(stage, seconds, shown_patch(self.resource, patch), notes))


def draft_of(
    request: WriteRequest,
    environment: Environment = NO_ENVIRONMENT,
    outcome: Outcome | None = None,
    trace: Trace | None = None,
) -> Draft:
    """The draft of a request before its first stage."""
    outcome = outcome or Outcome()
    return Draft(
        request,
        request.resource,
        OPERATIONS[request.action],
        environment=environment,
        outcome=outcome,
        weight=request.weight,
        trace=trace,
        name="" if request.of_collection else request.name,
    )
