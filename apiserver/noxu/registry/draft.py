"""The data of a write: `WriteRequest`, `Draft`, `Outcome` and `Written`; and the `Writer`, with which others write.

`WriteRequest` is the immutable request. `Draft` is what one attempt at it has found and made until now: a conflict makes a
new one. `Outcome` collects errors, warnings and annotations for the audit log. `Written` is the result.

Handlers, controllers and plug-ins know a write by this module. Its stages, in `registry.write`, are imported by the first
write: they import the schema, apply and strategies, which are a third of the start of a server.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from noxu.api import codec, errors
from noxu.api.errors import ApiError, Qualified
from noxu.api.field import FieldError
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.features import Features
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry.access import ANONYMOUS, AccessAttributes, Authorize, User, allow_everything
from noxu.registry.offload import imported
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Follower, Reader
from noxu.registry.resource import Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import StoredObject, body_at, body_before_storage
from noxu.registry.trace import HookCall, Note, Step, Trace, shown_patch
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

    @property
    def admitted_name(self) -> str:
        """The name that admission sees: that of the URL."""
        return "" if self.of_collection else self.name

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
    of_kind: Qualified | None = None
    """The group and kind that errors name, if the object claims others than its resource's: a write to /status restores these."""
    trace: Trace | None = None
    """The steps until now; None disables tracing."""
    notes: list[Note] = field(default_factory=list)
    """Notes about the current stage, for its step in the trace."""
    calls: list[HookCall] | None = None
    """The calls of admission webhooks, those of earlier attempts first; None: they are not kept."""

    def of_next_attempt(self, warned: int) -> Outcome:
        """The outcome of another attempt, after a conflict: it keeps the first `warned` warnings, and what has taken time."""
        return Outcome(
            warnings=self.warnings[:warned],
            sent=self.sent,
            webhook_seconds=self.webhook_seconds,
            rule_seconds=self.rule_seconds,
            trace=self.trace,
            calls=self.calls,
        )

    def take(self, outcome: Outcome) -> None:
        """Take over what the last attempt has found, for the caller, who knows this outcome and its lists."""
        self.warnings[:] = outcome.warnings  # in place: filters hold the list
        self.audit_annotations.clear()  # in place, too: the record of the audit log holds the dict
        self.audit_annotations |= outcome.audit_annotations
        self.errors, self.unknown, self.complaints = outcome.errors, outcome.unknown, outcome.complaints
        self.failed_rules, self.compile_seconds = outcome.failed_rules, outcome.compile_seconds
        self.webhook_seconds, self.rule_seconds = outcome.webhook_seconds, outcome.rule_seconds
        self.of_kind = outcome.of_kind


class Admission(Protocol):
    """The admission chain. The registry receives it as an argument, because it does not know the plug-ins."""

    def is_idle(self, reader: Reader) -> bool:
        """Whether certainly nothing is configured that changes or refuses objects."""
        ...

    def mutate(self, draft: Draft) -> Awaitable[None] | None:
        """Change `draft.new` in place and set `draft.mutated`, when the result is awaited; raise ApiError to refuse.

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
class WriteEnvironment:
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


NO_ENVIRONMENT: Final = cast("WriteEnvironment", _NoEnvironment())


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


class Form(IntEnum):
    """What the fast path has found about the new object of a custom resource. Each value implies those before it."""

    UNKNOWN = auto()
    """It has given up, or has not looked: the object has to take the stages one by one."""
    CLEAN = auto()
    """There is nothing to prune or refuse, and defaults are filled in."""
    VALID = auto()
    """The object satisfies its schema in the form in which it will be stored."""
    EXACT = auto()
    """It is stored at the version of the request, and has no floats apart from its metadata."""


UNKNOWN, CLEAN, VALID, EXACT = Form


class Configuration(NamedTuple):
    """The configuration of server-side apply. Each attempt decodes it again, because the merged object contains its parts."""

    value: Object


class Merged(NamedTuple):
    """A configuration has been merged. `changed` False: it changes nothing but the owners of fields."""

    changed: bool


class NewScale(NamedTuple):
    """The new Scale of a write to /scale, with the owners of its replicas."""

    value: Object


class Stored(NamedTuple):
    """The stored object that a write changes.

    `shown` is its entry at the request's version, which is `entry` unless a webhook has converted it. `is_shared`: the new
    object shares parts with the old one; nothing below its metadata and its other fields may be changed in place.
    """

    entry: StoredObject
    shown: StoredObject
    is_shared: bool = False


class Chosen(NamedTuple):
    """What the server has chosen for the object, and others may have chosen meanwhile: a generated name, unique values."""

    name: str = ""
    reservation: Reservation | None = None


NOTHING_CHOSEN: Final = Chosen()


@dataclass(slots=True, eq=False)
class Draft:
    """The state of one attempt at a write, at the version of the request. The driver makes it, others `draft_for` a request."""

    request: WriteRequest
    resource: Resource
    operation: Operation  # changed where nothing is found, before other stages read it
    """A replace or apply that finds no object becomes a CREATE."""
    environment: WriteEnvironment
    outcome: Outcome
    now: str
    """The time of the write in RFC 3339, the same for all fields of the object."""
    weight: int  # only ever increases
    """Bytes to process: increased if the stored object or a webhook's response is larger than the request."""
    # replaced as a whole by the stage that uses it up
    sent: ObjectPatch | Configuration | Merged | NewScale | None = None
    """What the body has instead of an object. A patch is kept for errors about the patched object, which quote it."""
    stored: Stored | None = None
    """The stored object, None if it does not exist."""
    old: Object | None = None  # never changed: its sets of owned fields are shared with other objects
    """The stored object at the request's version, None if it does not exist."""
    new: Object = field(default_factory=dict)  # changed in place by nearly every stage
    """The new object, which stages change in place. Empty for a delete that removes the object at once."""
    form: Form = UNKNOWN  # set again by every stage after which it may not hold
    """What the fast path has found about `new`."""
    mutated: bool = False
    """Mutating admission has changed the object."""
    admission: object = None
    """What the admission chain keeps between mutation and validation."""
    chosen: Chosen = NOTHING_CHOSEN
    """The driver ends its reservation when the write has ended."""
    written: Written | None = None
    """The entry to store, since the stage `encode`; then the result."""

    def note(self, message: str) -> None:
        """Add a note about the current stage to the trace."""
        if self.outcome.trace is not None:
            self.outcome.notes.append(Note("", message))  # `explain` takes them when the stage ends

    def record(
        self, stage: str, *, patch: Sequence[Object] = (), notes: Sequence[Note] = (), seconds: float = 0.0
    ) -> None:
        """Add a step below the current stage to the trace: a webhook or a policy."""
        if self.outcome.trace is not None:
            # a copy of the patch: its values change later
            self.outcome.trace.append(Step(stage, seconds, shown_patch(self.resource, patch), notes))


Stage: TypeAlias = Callable[[Draft], Awaitable[None] | None]
"""A step of a write (`registry.write`)."""


def draft_for(
    request: WriteRequest, environment: WriteEnvironment = NO_ENVIRONMENT, outcome: Outcome | None = None
) -> Draft:
    """A draft outside of a write, at no time. Without an environment it can only be validated."""
    outcome = Outcome() if outcome is None else outcome
    return Draft(request, request.resource, OPERATIONS[request.action], environment, outcome, "", request.weight)


class Superseded(Exception):
    """Another write has changed the stored object since it was found."""


class NameTaken(Superseded):
    """A generated name exists already. `error` is the response after too many attempts."""

    def __init__(self, error: ApiError) -> None:
        super().__init__()
        self.error = error


# -- writing -----------------------------------------------------------------------------------------------------------


class RunWrite(Protocol):
    """Runs the stages of a request. Raises ApiError, StoreError.

    `outcome` collects warnings and annotations, also of a refused write. `trace` collects a step for each stage; None
    disables tracing.
    """

    def __call__(
        self, request: WriteRequest, outcome: Outcome | None = None, trace: Trace | None = None
    ) -> Coroutine[Any, Any, Written]: ...


class Writer:
    """What handlers and controllers use to write, for all resources."""

    environment: WriteEnvironment
    write: RunWrite

    def __init__(self, environment: WriteEnvironment) -> None:
        self.use(environment)

    def use(self, environment: WriteEnvironment) -> None:
        """Write in this environment from now on."""
        self.environment, self.write = environment, self._first  # with which the driver is bound again

    async def _first(
        self, request: WriteRequest, outcome: Outcome | None = None, trace: Trace | None = None
    ) -> Written:
        """Import the driver, which is what writes from now on."""
        driver = (await imported("noxu.registry.write")).write
        write = partial(driver, self.environment)
        if self.write == self._first:  # else it was replaced meanwhile
            self.write = write  # no call in between, from the second write on
        written: Written = await write(request, outcome, trace)
        return written
