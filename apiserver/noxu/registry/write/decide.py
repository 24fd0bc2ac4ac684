"""The second phase of a write: what the server sets, and whether the object may be stored.

Managers are tracked, mutating admission changes the object, and it is pruned again, as KEP-2332 says (the reference does not do
this). Then the server sets its fields, validation ratchets against the old object, and validating admission has the last word.
The order of the stages is in `registry.write`.

A stage changes `draft.new` in place, unless it replaces it as a whole; it never changes `draft.old`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final

from noxu.api import errors, meta
from noxu.api import field as fields
from noxu.api.errors import ApiError
from noxu.api.field import Verbatim
from noxu.api.meta import FINALIZER_FOREGROUND, FINALIZER_ORPHAN, OBJECT_META, generate_name
from noxu.apply import manager
from noxu.apply.tracker import Tracker
from noxu.go import unstructured
from noxu.go.text import compact_json, parse_uint
from noxu.go.time import unix_nanos
from noxu.kinds.kind import Propagation
from noxu.registry import ownership, strategies
from noxu.registry.draft import UNKNOWN, Chosen, Draft, NewScale, Written
from noxu.registry.patch import ObjectPatch
from noxu.registry.stored_object import is_valid, key_of
from noxu.registry.strategies import STRATEGIES, Grace, finalization_of
from noxu.registry.write.arrive import default, form_of, metadata_of, put_into_namespace, read_body, separate
from noxu.releases import NEWEST
from noxu.values import Json, Object, copy

# -- owners -------------------------------------------------------------------------------------------------------------


def drop_duplicate_owners(draft: Draft) -> None:
    """Remove duplicate owner references, with a warning."""
    metadata = draft.new.get("metadata")
    if metadata and "ownerReferences" in metadata:
        after_admission = draft.mutated or isinstance(draft.sent, ObjectPatch)
        # removes them in place
        draft.outcome.warnings += meta.drop_duplicate_owners(metadata, after_admission=after_admission)


def track_managers(draft: Draft) -> Awaitable[None] | None:
    """Track the field managers (metadata.managedFields). Waits for conversions by a webhook."""
    request, resource = draft.request, draft.resource
    old, new, by, now = draft.old, draft.new, request.options.field_manager, draft.now
    is_clean = draft.form is not UNKNOWN
    if draft.stored is None:
        valid = manager.Valid(new=is_clean)
    else:
        exact = is_clean and resource.compiled is not None and resource.compiled.is_exact
        valid = manager.Valid(is_valid(draft.stored.shown, resource), is_clean, exact)
    if resource.versions.converter is not None:
        return _track_by_converting(
            draft, lambda tracker: manager.update(old, new, tracker, manager=by, now=now, valid=valid)
        )
    tracker = resource.trackers.get(request.subresource) or ownership.tracker(resource, request.subresource)
    created = tracker.with_creator(new, by, now, is_valid=is_clean) if old is None else None
    # a new dict with new metadata; the rest is shared
    draft.new = created or manager.update(old, new, tracker, manager=by, now=now, valid=valid)
    return None


async def _track_by_converting(draft: Draft, update: Callable[[Tracker], Object]) -> None:
    draft.new = await ownership.run_with_tracker(draft.resource, draft.request.subresource, update, draft.weight)


# -- mutating admission -------------------------------------------------------------------------------------------------


def refuse_terminating(draft: Draft) -> None:
    """Refuse to create custom resources while their definition is being deleted: before admission, as upstream."""
    if draft.operation == "CREATE" and draft.resource.versions.terminating:
        raise terminating(draft)


def terminating(draft: Draft) -> ApiError:
    name = draft.request.name or metadata_of(draft).get("name", "")
    why = "create not allowed while custom resource definition is terminating"
    return errors.forbidden(draft.resource.group_resource, name, why)


def mutate(draft: Draft) -> Awaitable[None] | None:
    """Mutating admission."""
    if draft.request.internal or _is_pending(draft):
        return None
    waits = draft.environment.admission.mutate(draft)
    if waits is not None:
        separate(draft)  # admission changes the object in place, when it is awaited
    return waits


def prune_mutated(draft: Draft) -> None:
    """Remove unknown fields that mutating admission added, before validating admission (KEP-2332).

    The reference does not prune here.
    """
    if not draft.mutated:
        return
    draft.form = form_of(draft)  # what was found before admission no longer holds
    if draft.form is UNKNOWN:
        draft.new = draft.resource.codec.prune_mutated(draft.resource, draft.new)
        _refuse_malformed(draft)


def default_mutated(draft: Draft) -> None:
    """Fill in the defaults of fields that mutating admission added."""
    if draft.mutated:
        default(draft)
        put_into_namespace(draft)
        drop_duplicate_owners(draft)


def _refuse_malformed(draft: Draft) -> None:
    """Refuse malformed metadata, which mutating admission may produce."""
    metadata: Json = metadata_of(draft)
    if not isinstance(metadata, dict) and draft.old is None:
        raise errors.internal_error("system metadata was not initialized")
    if draft.old is not None and (not isinstance(metadata, dict) or not _has_version(metadata)):
        error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.invalid(draft.resource.group_resource, draft.request.name, [error])
    if unstructured.mismatch(OBJECT_META, metadata):
        _complete(draft, metadata)  # this may repair it
        if wrong := unstructured.mismatch(OBJECT_META, metadata):
            raise _malformed(draft, metadata.get("name"), wrong)
        draft.new = draft.resource.codec.prune_mutated(draft.resource, draft.new)


def _has_version(metadata: Object) -> bool:
    return isinstance(metadata.get("resourceVersion", ""), str)


def _malformed(draft: Draft, name: Json, why: str) -> ApiError:
    error = fields.invalid("metadata", Verbatim(compact_json(draft.new["metadata"])), why)
    what = errors.Qualified(draft.resource.group, draft.resource.kind)
    return errors.invalid(what, name if isinstance(name, str) else "", [error])


def prevent_escalation(draft: Draft) -> None:
    """Refuse an object that gives more rights than the user has: after mutating admission, before validation, as upstream."""
    check = draft.environment.guards.get(draft.resource.collection)
    if check is not None and not draft.request.internal:
        check(draft)


# -- fields that the server determines ----------------------------------------------------------------------------------


def check_resource_version(draft: Draft) -> None:
    """Optimistic locking: compare the resourceVersion in the object with the stored one.

    A replace or apply that creates the object may have any number.
    """
    metadata, stored = draft.new["metadata"], draft.stored
    if stored is not None and metadata.get("resourceVersion") == str(stored.entry.revision):
        return
    sent = _revision(metadata)
    if stored is None:
        return
    revision = stored.entry.revision
    if sent == 0:
        if not draft.resource.codec.unconditional_update:
            error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(draft.resource.group_resource, draft.request.name, [error])
        metadata["resourceVersion"] = str(revision)  # an unconditional update: of what was found, or it is superseded
    elif sent != revision:
        raise errors.modified(draft.resource.group_resource, draft.request.name)


def _revision(metadata: Object) -> int:
    """The resourceVersion of an object as a number, 0 if it has none. Raises ApiError."""
    try:
        return parse_uint(metadata.get("resourceVersion") or "0")
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


def set_system_fields(draft: Draft) -> None:
    """Set uid, creationTimestamp and generation of a new object; restore immutable metadata of an updated one."""
    metadata = draft.new["metadata"]
    if draft.old is None and not metadata.get("name") and metadata.get("generateName"):
        name = generate_name(metadata["generateName"], draft.environment.identifiers.new_suffix())
        metadata["name"], draft.chosen = name, Chosen(name)
    _complete(draft, metadata)


def _complete(draft: Draft, metadata: Object) -> None:
    """Set the fields that depend on whether the object exists, in place."""
    if not isinstance(metadata.get("selfLink", ""), str):
        del metadata["selfLink"]
    if draft.old is None:
        metadata["uid"] = draft.environment.identifiers.new_uid()  # that of a body is overwritten
        metadata["creationTimestamp"] = draft.now
        metadata["generation"] = 1  # `prepare` increments that of an update
        return
    old = draft.old["metadata"]
    if old.get("uid"):
        metadata.setdefault("uid", old["uid"])  # another one is refused by validation
    for name in ("creationTimestamp", "generation"):
        _restore(metadata, old, name)
    if old.get("deletionTimestamp") is not None:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if old.get("deletionGracePeriodSeconds") is not None and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]  # another value is refused


def _restore(metadata: Object, old: Object, name: str) -> None:
    if name in old:
        metadata[name] = old[name]  # a number or a text: nothing is shared that could change
    else:
        metadata.pop(name, None)


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and increment the generation."""
    STRATEGIES[draft.resource.type].prepare(draft)


def allocate(draft: Draft) -> None:
    """Set the fields whose values must be unique. They are reserved until the write ends."""
    resource, request = draft.resource, draft.request
    if resource.is_custom or request.subresource:
        return
    take = draft.environment.allocators.get(resource.collection)
    if take is not None:
        release(draft)  # the stage may be repeated in a thread
        namespace = draft.new["metadata"].get("namespace", "")
        key = key_of(resource, namespace, draft.new["metadata"].get("name", ""))
        draft.chosen = draft.chosen._replace(reservation=take(draft.new, draft.old, key))  # sets the fields, in place


def release(draft: Draft, *, is_certain: bool = True) -> None:
    """End the reservation of what `allocate` took. `is_certain`: the object will not be stored later."""
    reservation = draft.chosen.reservation
    if reservation is not None:
        reservation.end(is_certain=is_certain)
        draft.chosen = draft.chosen._replace(reservation=None)  # it ends once


# -- validation, and validating admission -------------------------------------------------------------------------------


_RELEASED_TEXTS: Final = "noxu.api.released_texts"
"""Imported for older releases only."""


def validate(draft: Draft) -> None:
    """Validate metadata, schema, lists and x-kubernetes-validations."""
    draft.outcome.errors = []  # the stage may be repeated in a thread
    STRATEGIES[draft.resource.type].validate(draft)
    if draft.outcome.errors:
        release = draft.request.features.release
        if release != NEWEST:
            texts = import_module(_RELEASED_TEXTS)
            draft.outcome.errors = texts.of_release(draft.outcome.errors, release, custom=draft.resource.is_custom)
        kind, api_version = draft.new.get("kind") or "", draft.new.get("apiVersion") or ""
        named = errors.Qualified(api_version.rpartition("/")[0], kind)  # by the object, not by the resource
        what = draft.outcome.of_kind or named
        raise errors.invalid(what, draft.new["metadata"].get("name", ""), draft.outcome.errors)


def authorize_creation(draft: Draft) -> None:
    """Refuse to create an object by an update or apply if its user may not create it (upstream's withAuthorization)."""
    request, resource = draft.request, draft.resource
    if draft.operation != "CREATE" or request.internal:
        return
    decision = request.authorize(request.asks_to("create", resource))
    if decision.allowed:
        return
    if decision.error:
        raise errors.internal_error(decision.error)
    raise errors.forbidden(resource.group_resource, request.name, decision.reason)


def admit(draft: Draft) -> Awaitable[None] | None:
    """Validating admission."""
    return None if draft.request.internal or _is_pending(draft) else draft.environment.admission.validate(draft)


def keep_times(draft: Draft) -> None:
    """Restore the old times of managers if nothing else has changed, so that nothing is written."""
    if draft.old is not None:
        # if only times differ, its bytes are those stored: no write
        draft.new = manager.keep_times(draft.old, draft.new)


def prune_applied(draft: Draft) -> None:
    """Prune an applied object: merging leaves nulls, and unknown fields below an `object` without properties.

    Upstream prunes when it stores, after validation; each apply of such a field changes the object.
    """
    if draft.form is not UNKNOWN or not draft.resource.is_custom:
        return
    if not isinstance(draft.sent, NewScale):  # a write to /scale fills in no defaults
        draft.form = form_of(draft)
    if draft.form is UNKNOWN:
        draft.resource.codec.decode(draft.resource, draft.new)
        draft.resource.codec.prune(draft.resource, draft.new)


# -- deletion -----------------------------------------------------------------------------------------------------------


def check_preconditions(draft: Draft) -> None:
    """Compare the preconditions of a deletion, uid and resourceVersion, with the stored object."""
    old, resource = draft.old, draft.resource
    assert old is not None
    preconditions, metadata, finalization = (
        draft.request.delete_options.preconditions,
        old["metadata"],
        finalization_of(resource),
    )
    checks = (
        ("UID", preconditions.uid, metadata.get("uid", ""), "deleted and then recreated"),
        ("ResourceVersion", preconditions.resource_version, metadata["resourceVersion"], "modified"),
    )
    for name, expected, actual, happened in checks:
        if expected is None or expected == actual:
            continue
        if finalization is not None:
            failed = finalization.precondition_failed
            why = f"{failed}: {name} in precondition: {expected}, {name} in object meta: {actual}"
            raise errors.conflict(resource.group_resource, metadata["name"], why)
        what = errors.Qualified(resource.group, resource.kind)  # with the kind, as in upstream
        why = f"the {name} in the precondition ({expected}) does not match the {name} in record ({actual}). "
        raise errors.conflict(what, metadata["name"], f"{why}The object might have been {happened}")


def await_grace(draft: Draft) -> None:
    """Leave an object as it is if it waits for the end of its grace period, which the deletion does not make shorter."""
    assert draft.old is not None
    if strategies.grace_is_pending(draft.resource, draft.old, draft.request.delete_options.grace):
        draft.new = copy(draft.old)  # so nothing differs, and nothing is written


def _is_pending(draft: Draft) -> bool:
    """Whether it is a deletion that changes nothing (`await_grace`), which is not subject to admission."""
    return draft.operation == "DELETE" and bool(draft.new)


def finalize(draft: Draft) -> None:
    """Mark an object with finalizers or a grace period as being deleted.

    `new` remains empty if the object can be removed at once.
    """
    assert draft.old is not None
    if _is_pending(draft):
        return
    had = draft.old["metadata"].get("finalizers") or []
    table = draft.resource.table
    default_policy = table.propagation if table is not None else "Background"
    finalizers = _finalizers_after(had, draft.request.delete_options.propagation, default_policy)
    finalization, seconds = finalization_of(draft.resource), draft.request.delete_options.grace
    if finalization is None and not finalizers and not strategies.has_grace_periods(draft.resource):
        return
    value = copy(draft.old)  # marked below, in place
    if strategies.begin_grace(draft.resource, value, seconds, draft.now) is Grace.BEGUN:
        if set(finalizers) != set(had):
            value["metadata"]["finalizers"] = finalizers
        draft.new = value  # marked, to be stored, and removed then if its period is 0
        return
    if finalization is None and not finalizers:
        return
    if finalization is None or not finalization.begin_delete(value, draft.now, finalizers):
        if not finalizers:
            return
        if set(finalizers) != set(had):
            value["metadata"]["finalizers"] = finalizers
        _mark_deleted(value["metadata"], draft.now)
    draft.new = value


def _finalizers_after(finalizers: list[str], propagation: str, default_policy: Propagation) -> list[str]:
    """The finalizers after a deletion: the object's own, and that of the garbage collector for the propagation policy.

    Without a policy a finalizer of the garbage collector remains; without one the policy is that of the kind.
    """
    own_finalizers = [name for name in finalizers if name not in (FINALIZER_ORPHAN, FINALIZER_FOREGROUND)]
    if default_policy == "Unsupported":
        return own_finalizers
    if not propagation:
        present = [name for name in finalizers if name in (FINALIZER_ORPHAN, FINALIZER_FOREGROUND)]
        if present:
            return own_finalizers + present[:1]
        propagation = default_policy
    return own_finalizers + {"Orphan": [FINALIZER_ORPHAN], "Foreground": [FINALIZER_FOREGROUND]}.get(propagation, [])


def _mark_deleted(metadata: Object, now: str) -> None:
    marked = metadata.get("deletionTimestamp")
    if not marked and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1  # upstream counts the deletion as a change of the spec
    if not marked or unix_nanos(marked) > unix_nanos(now):
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


# -- requests that store nothing ----------------------------------------------------------------------------------------


def check_action(draft: Draft) -> None:
    """Validate the body of a subresource that acts on its object."""
    draft.environment.action(draft.resource.kind).check(draft)


async def act(draft: Draft) -> None:
    """Do what the body of a subresource says: the result is a Status."""
    draft.written = Written(None, await draft.environment.action(draft.resource.kind).act(draft))


async def answer(draft: Draft) -> None:
    """Compute the status of a review, which is not stored."""
    draft.new["status"] = await draft.environment.reviewer(draft)  # the answer is the object of the body, completed
    draft.written = Written(None, draft.new)


def read_options(draft: Draft) -> None:
    """Complete the options of a connection, which the query has."""
    read_body(draft)
    resource = draft.resource
    options = {"kind": resource.kind, "apiVersion": resource.api_version, **draft.new}
    draft.new = resource.codec.written(options)


def prune_options(draft: Draft) -> None:
    """Remove unknown fields that mutating admission added to the options of a connection; they have no metadata."""
    if draft.mutated:
        draft.new = draft.resource.codec.prune_mutated(draft.resource, draft.new)


def connect(draft: Draft) -> None:
    """The connection may be made, with these options."""
    draft.written = Written(None, draft.new)
