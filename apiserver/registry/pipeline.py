"""The way of a write, and of a read: the one place where the order is written down.

    decode → PRUNE → address → default → own → admit (mutate) → PRUNE → default → identify → prepare → validate → admit (validate)

A stage is a function of one `Draft`. ARRIVE is what happens to a body once; ADMIT and SETTLE happen against the old
object, with the optimistic lock between them, and again whenever another writer was faster. After mutating admission the object is pruned again, as KEP-2332 says (the
reference does not do this). READ_STAGES happen to stored objects whose version's schema may have changed since.

What every stage did can be traced (see `trace`): it answers "why was my field dropped?".
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from apiserver.api import codec, errors, unstructured
from apiserver.api.errors import ApiError
from apiserver.api.field import FieldError, Verbatim
from apiserver.api.field import invalid as field_invalid
from apiserver.api.gotext import compact_json
from apiserver.api.gotime import format_time
from apiserver.api.meta import OBJECT_META, GroupVersionKind, coerce, drop_duplicate_owners, generate_name
from apiserver.api.types import Json, Object
from apiserver.apply import manager
from apiserver.apply.tracker import Tracker
from apiserver.features import Features
from apiserver.registry import ownership, trace
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.patience import TakesLong
from apiserver.registry.resource import Resource
from apiserver.registry.sources import Sources
from apiserver.registry.trace import Note, Step

if TYPE_CHECKING:
    from apiserver.cel.validation import FailedRule

Operation = Literal["CREATE", "UPDATE", "DELETE"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]


class User(NamedTuple):
    """Who asks. Without authentication everybody is anonymous."""

    name: str = "system:anonymous"
    uid: str = ""
    groups: tuple[str, ...] = ("system:unauthenticated",)
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Options(NamedTuple):
    """CreateOptions, UpdateOptions and PatchOptions, already validated."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = "Warn"
    force: bool = False


class Admission(Protocol):
    """The admission chain, handed in: the registry does not know who judges."""

    async def mutate(self, draft: Draft) -> bool:
        """Change `draft.new` or raise ApiError; whether anything was changed."""
        ...

    async def validate(self, draft: Draft) -> None:
        """Raise ApiError to refuse."""
        ...


class AdmitAll:
    """No admission at all."""

    async def mutate(self, draft: Draft) -> bool:
        return False

    async def validate(self, draft: Draft) -> None: ...


@dataclass(slots=True, eq=False)
class Draft:
    """One object on its way into the store.

    `new` is worked on, in the version of the request. `old` is the stored object read at the same version, None on
    create. For a delete `new` is empty.
    """

    resource: Resource
    operation: Operation
    new: Object
    options: Options = Options()
    user: User = User()
    sources: Sources = Sources()
    features: Features = Features()
    admission: Admission = field(default_factory=AdmitAll)
    old: Object | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    weight: int = 0
    """Bytes that the request brought, and those of the stored object: what is heavy is not worked on in the loop."""
    hurried: bool = False
    """It is worked on in the event loop: what takes long raises TakesLong there, and is done again in a thread."""
    duplicates: list[str] = field(default_factory=list)
    """Complaints of the decoder that fieldValidation decides about, before those about unknown fields."""
    patched: Callable[[], str] | None = None
    """The object is the result of a JSON or merge patch: errors of decoding it then quote it, as this gives it."""
    warnings: list[str] = field(default_factory=list)
    errors: list[FieldError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Paths that decoding removed."""
    mutated: bool = False
    """Mutating admission changed the object."""
    arrived: bool = False
    """ARRIVE has been run."""
    owned: bool = False
    """managedFields are as they should be: the object was applied."""
    clean: bool = False
    """The schema had nothing to prune, to drop, or to complain of when it was decoded, and defaults are filled in."""
    deadline: float = math.inf
    """When the request must be answered, by the event loop's clock."""
    given: Object = field(default_factory=dict)
    """The options of the request as they were sent, for admission to show."""
    scale: Object | None = None
    """The Scale that is written, if it is one: this is what mutating admission sees."""
    judged: object = None
    """What admission remembers between its two chains."""
    audit: dict[str, str] = field(default_factory=dict)
    """Annotations of admission for an audit log. No client sees them."""
    failed_rules: list[FailedRule] = field(default_factory=list)
    """x-kubernetes-validations that said no."""
    trace: list[Step] | None = None
    """What was done so far, if anybody wants to know."""

    def did(
        self, stage: str, *, patch: Sequence[Object] = (), notes: Sequence[Note] = (), seconds: float = 0.0
    ) -> None:
        """Tell the trace of a step that is no stage of its own."""
        if self.trace is not None:
            self.trace.append(Step(stage, seconds, trace.shown(self, patch), notes))

    @property
    def metadata(self) -> Object:
        """`metadata` of the new object, created if it was not sent."""
        metadata: Object | None = self.new.get("metadata")
        if metadata is None:
            metadata = self.new["metadata"] = {}
        return metadata

    @property
    def typed(self) -> bool:
        """Whether the object says it is what the resource holds; otherwise there is nothing to prune or default by."""
        return self.new.get("kind") == self.resource.kind and self.new.get("apiVersion") == self.resource.api_version


Stage: TypeAlias = Callable[[Draft], Awaitable[None] | None]


def decode(draft: Draft) -> None:
    """Type the object. Unknown fields are known from here on, and gone."""
    try:
        draft.unknown = _decode(draft)
    except ValueError as error:
        raise _undecodable(draft, str(error)) from None


def _decode(draft: Draft) -> list[str]:
    """Type the object; the paths of what went. Raises ValueError."""
    draft.clean = _is_clean(draft)
    if draft.clean:
        return []
    draft.new, removed = draft.resource.behaviour.decode(draft.resource, draft.new)
    return removed


def _is_clean(draft: Draft) -> bool:
    """The fast path. It tells nothing of stages, so a trace goes the long way."""
    return draft.trace is None and draft.resource.behaviour.accept(draft.resource, draft.new)


def retype(draft: Draft) -> None:
    """Merged objects of built-in kinds become structs again, in which null is nothing; of others the metadata does."""
    if draft.resource.behaviour.struct is not None:
        decode(draft)
        return
    draft.clean = _is_clean(draft)
    if not draft.clean:
        with suppress(ValueError):  # which validation tells
            draft.new["metadata"] = coerce(draft.new.get("metadata")).metadata


def refuse_unknown(draft: Draft) -> None:
    """fieldValidation: Strict refuses duplicate and unknown fields, Warn tells them, Ignore says nothing."""
    mode = draft.options.field_validation
    complaints = draft.duplicates + [f'unknown field "{path}"' for path in draft.unknown]
    if not complaints or mode == "Ignore":
        return
    if mode == "Warn":
        draft.warnings += complaints
        return
    why = codec.strict_decoding_error(complaints)
    if draft.patched is None and draft.resource.behaviour.struct is None:  # such an object is what it says it is
        if not draft.new.get("apiVersion"):
            raise errors.bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        raise _undecodable(draft, why, str(draft.new["kind"]))
    raise _undecodable(draft, why)


def _undecodable(draft: Draft, why: str, kind: str = "") -> ApiError:
    """An object that says what it is, but cannot be decoded as `kind`, which is the resource's unless it is given."""
    if draft.patched is not None:
        return invalid_patch(draft.patched(), why)
    group, _, version = str(draft.new.get("apiVersion", "")).rpartition("/")
    sent = GroupVersionKind(group, version, str(draft.new.get("kind")))
    return codec.cannot_be_handled(sent, kind or draft.resource.kind, why)


_SYSTEM_FIELDS: Final = ("creationTimestamp", "uid", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def address(draft: Draft) -> None:
    """The object must be what the request says it is: version, namespace, and for updates the name."""
    api_version, expected = draft.new.get("apiVersion") or "", draft.resource.api_version
    if api_version != expected and not draft.patched:
        text = f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
        raise errors.bad_request(text)
    _put_into_namespace(draft)
    metadata = draft.metadata
    if draft.operation == "CREATE":
        for name in _SYSTEM_FIELDS:
            metadata.pop(name, None)
        if not draft.owned:
            return  # what is applied has its name in the URL
    check_name(metadata, draft.name)


def _put_into_namespace(draft: Draft) -> None:
    """Raises ApiError."""
    metadata = draft.metadata
    if not draft.resource.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = draft.namespace
    else:
        check_namespace(metadata, draft.namespace)


def check_namespace(metadata: Object, namespace: str) -> None:
    """An object that says where it is must say what the URL says. Raises ApiError."""
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(metadata: Object, name: str) -> None:
    """An object must have the name that the URL says. Raises ApiError."""
    given = metadata.get("name")
    if not given:
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(text)
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def invalid_patch(patched: str, why: str) -> ApiError:
    """What a patch made cannot be decoded."""
    return errors.invalid(errors.Qualified("", ""), "", [field_invalid("patch", patched, why)])


def default(draft: Draft) -> None:
    if draft.typed and not draft.clean:
        draft.resource.behaviour.default(draft.resource, draft.new)


def unite_owners(draft: Draft) -> None:
    """Owner references that stand there twice are told and united."""
    draft.warnings += drop_duplicate_owners(draft.metadata, after_admission=draft.mutated or draft.patched is not None)


def own(draft: Draft) -> Awaitable[None] | None:
    """Track who set what (metadata.managedFields), unless server-side apply has done it already.

    It waits where fields are owned at other versions and a webhook has to be asked how the object looks there.
    """
    if draft.owned:
        return None
    if draft.resource.versions.converter is not None:
        return _own_by_asking(draft)
    draft.new = _owned(draft)(ownership.tracker(draft.resource, draft.subresource))
    return None


async def _own_by_asking(draft: Draft) -> None:
    draft.new = await ownership.tracked(draft.resource, draft.subresource, _owned(draft), draft.weight)


def _owned(draft: Draft) -> Callable[[Tracker], Object]:
    now, by = format_time(draft.sources.now()), draft.options.field_manager
    old, new = draft.old, draft.new
    return lambda tracker: manager.update(old, new, tracker, manager=by, now=now)


async def admit(draft: Draft) -> None:
    draft.mutated = await draft.admission.mutate(draft)


def prune_again(draft: Draft) -> None:
    """KEP-2332: what mutating admission added and the schema does not describe goes, before anybody sees it."""
    if not draft.mutated:
        return
    draft.clean = _is_clean(draft)
    if not draft.clean:
        draft.new = draft.resource.behaviour.prune(draft.resource, draft.new)
        _refuse_malformed(draft)
        default(draft)
    _put_into_namespace(draft)
    unite_owners(draft)


def _refuse_malformed(draft: Draft) -> None:
    """Admission may have put anything into the metadata. Raises ApiError."""
    metadata: Json = draft.metadata
    if not isinstance(metadata, dict) and draft.old is None:
        raise errors.internal_error("system metadata was not initialized")
    if draft.old is not None and (not isinstance(metadata, dict) or not _has_version(metadata)):
        error = field_invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.invalid(draft.resource.what, draft.name, [error])
    if unstructured.mismatch(OBJECT_META, metadata):
        _complete(draft)  # which may set right what was wrong
        if wrong := unstructured.mismatch(OBJECT_META, metadata):
            raise _malformed(draft, metadata.get("name"), wrong)
        draft.new = draft.resource.behaviour.prune(draft.resource, draft.new)


def _has_version(metadata: Object) -> bool:
    return isinstance(metadata.get("resourceVersion", ""), str)


def _malformed(draft: Draft, name: Json, why: str) -> ApiError:
    error = field_invalid("metadata", Verbatim(compact_json(draft.new["metadata"])), why)
    what = errors.Qualified(draft.resource.group, draft.resource.kind)
    return errors.invalid(what, name if isinstance(name, str) else "", [error])


def identify(draft: Draft) -> None:
    """What the server decides: on create uid, creationTimestamp, generation; on update what cannot change."""
    metadata = draft.metadata
    if draft.old is None and metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = generate_name(metadata["generateName"], draft.sources.new_suffix())
    _complete(draft)


def _complete(draft: Draft) -> None:
    metadata = draft.metadata
    metadata.pop("selfLink", None)  # upstream does not store it
    if draft.old is None:
        metadata["uid"] = draft.sources.new_uid()
        metadata["creationTimestamp"] = format_time(draft.sources.now())
        metadata["generation"] = 1
        return
    old = draft.old["metadata"]
    metadata.setdefault("uid", old.get("uid", ""))
    for name in ("creationTimestamp", "generation"):
        _restore(metadata, old, name)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if old.get(name) is not None:
            metadata[name] = old[name]


def _restore(metadata: Object, old: Object, name: str) -> None:
    if name in old:
        metadata[name] = old[name]
    else:
        metadata.pop(name, None)


def prepare(draft: Draft) -> None:
    draft.resource.behaviour.prepare(draft)


def keep_times(draft: Draft) -> None:
    """A write that changes nothing but the times of managers is none."""
    if draft.old is not None:
        draft.new = manager.keep_times(draft.old, draft.new)


def prune_applied(draft: Draft) -> None:
    """Typing what was applied has left nulls, and unknown fields below an `object` that describes none.

    Upstream drops these as it stores: they have been validated, and each time they are applied the object changes.
    """
    if draft.owned and not draft.clean and draft.resource.behaviour.struct is None:
        _decode(draft)


def validate(draft: Draft) -> None:
    draft.errors = []  # it may be the second time
    draft.resource.behaviour.validate(draft)
    if draft.errors:
        kind, api_version = draft.new.get("kind") or "", draft.new.get("apiVersion") or ""
        what = errors.Qualified(api_version.rpartition("/")[0], kind)  # as the object has it
        raise errors.invalid(what, draft.metadata.get("name", ""), draft.errors)


async def admit_delete(draft: Draft) -> None:
    """A deletion is judged by both chains; it has nothing to change."""
    await draft.admission.mutate(draft)
    await draft.admission.validate(draft)


async def admit_validating(draft: Draft) -> None:
    await draft.admission.validate(draft)


ARRIVE: Final[tuple[Stage, ...]] = (decode, refuse_unknown, address, default)
ADMIT: Final[tuple[Stage, ...]] = (unite_owners, own, admit, prune_again)
SETTLE: Final[tuple[Stage, ...]] = (identify, prepare, validate, admit_validating, keep_times, prune_applied)
WRITE_STAGES: Final = ARRIVE + ADMIT + SETTLE
_WAITING: Final = frozenset(stage for stage in WRITE_STAGES if iscoroutinefunction(stage))
APPLIED: Final[tuple[Stage, ...]] = (retype, address, default)
"""ARRIVE for what server-side apply has merged: it was typed by the schema."""


async def arrive(draft: Draft) -> None:
    """Run ARRIVE, once. Raises ApiError."""
    if not draft.arrived:
        await run(draft, ARRIVE)
        draft.arrived = True


async def run(draft: Draft, stages: tuple[Stage, ...]) -> None:
    """Send the draft through the stages, where its weight belongs. Raises ApiError."""
    if draft.trace is not None:
        await trace.run(draft, stages)
        return
    draft.hurried = draft.weight <= LIGHT
    rest = iter(stages)
    while (waits := await work(draft.weight, _run_until_wait, draft, rest)) is not None:
        await waits(draft)


def _run_until_wait(draft: Draft, stages: Iterator[Stage]) -> Callable[[Draft], Awaitable[None]] | None:
    """Run stages up to one that waits for something: that one, or None at the end."""
    asking = draft.resource.versions.converter is not None
    for stage in stages:
        if stage in _WAITING or (asking and stage is own and not draft.owned):
            return cast("Callable[[Draft], Awaitable[None]]", stage)
        try:
            stage(draft)
        except TakesLong:
            return partial(_elsewhere, stage)
    return None


async def _elsewhere(stage: Stage, draft: Draft) -> None:
    """From here on the draft is heavy."""
    draft.hurried, draft.weight = False, LIGHT + 1
    await work(draft.weight, stage, draft)


def prune_stored(resource: Resource, value: Object) -> None:
    resource.behaviour.read(resource, value)


def default_stored(resource: Resource, value: Object) -> None:
    resource.behaviour.default(resource, value)


READ_STAGES: Final[tuple[Callable[[Resource, Object], None], ...]] = (prune_stored, default_stored)


def read(resource: Resource, value: Object) -> None:
    """Bring a stored object of this version into the form in which it is served, in place."""
    if resource.behaviour.accept(resource, value, stored=True):
        return
    for stage in READ_STAGES:
        stage(resource, value)
