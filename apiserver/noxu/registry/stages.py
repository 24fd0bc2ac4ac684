"""The stages of a write: functions of one `Draft`. Their order is in `registry.write`, and nowhere else.

A stage refuses a write by raising ApiError. A stage that waits returns an awaitable, which the driver awaits in the event
loop. Everything else may run in a thread; the driver decides. In the event loop (`draft.in_loop`) a stage that would take
long raises LoopBudgetExceeded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from noxu.api import codec, errors, meta
from noxu.api import field as fields
from noxu.api.errors import ApiError
from noxu.api.field import Verbatim
from noxu.api.json_patches import refuse_repeated_keys
from noxu.api.meta import (
    OBJECT_META,
    GroupVersionKind,
    coerce,
    generate_name,
)
from noxu.api.names import check_path_name
from noxu.apply import manager
from noxu.apply.tracker import Tracker, group_version_kind, named
from noxu.go import unstructured
from noxu.go.text import compact_json, parse_uint
from noxu.registry import ownership
from noxu.registry.bodies import CBOR, decode_body, unknown_element
from noxu.registry.cache import Collection
from noxu.registry.claims import Claimed
from noxu.registry.conversion.converters import entry_at
from noxu.registry.draft import ENCODED, Action, Draft, Written
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.patch import ObjectPatch, invalid_patch, read_configuration
from noxu.registry.reader import key_of, storage_error
from noxu.registry.stored_object import StoredObject, is_valid, object_at, shared_object_at
from noxu.registry.strategies import STRATEGIES
from noxu.values import Json, Object, copy, sorted_copy

Stage: TypeAlias = Callable[[Draft], Awaitable[None] | None]


class Superseded(Exception):
    """Another write has changed the stored object since it was found."""


class NameTaken(Superseded):
    """A generated name exists already. `error` is the response after too many attempts."""

    def __init__(self, error: ApiError) -> None:
        super().__init__()
        self.error = error


# -- decoding the body -----------------------------------------------------------------------------------------------------


def read_body(draft: Draft) -> None:
    """Decode the object in the request's body."""
    content, media_type, complaints = draft.request.body
    validation = draft.request.options.field_validation
    if isinstance(content, dict):
        content, media_type = codec.encode(content, sort_keys=False), ENCODED
    if media_type == ENCODED:
        draft.new = codec.decode_stored(content)  # a copy, like a decoded body
        draft.outcome.complaints = list(complaints)
        return
    resource = draft.resource
    strict = validation != "Ignore"
    decoded = decode_body(content, media_type, resource.gvk, strict=strict, typed=not resource.is_custom)
    draft.new = decoded.value
    draft.outcome.complaints = list(decoded.strict if validation == "Strict" else decoded.duplicates)
    if draft.outcome.sent is not None:
        _keep_sent(draft.outcome.sent, draft.new)


def _keep_sent(kept: dict[str, str], value: Object) -> None:
    """Keep what the metadata of a body says about the object."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        for name in ("name", "namespace", "uid", "resourceVersion"):
            if isinstance(metadata.get(name), str):
                kept[name] = metadata[name]


def read_patch(draft: Draft) -> None:
    """Decode the patch. Its operations are checked when it is applied."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    validation = draft.request.options.field_validation
    draft.patch = ObjectPatch(media_type, content, draft.resource.codec.struct, field_validation=validation)


def read_applied(draft: Draft) -> None:
    """Decode the configuration of server-side apply."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    sent = read_configuration(content, media_type)
    draft.configuration = sent.value
    strict = draft.request.options.field_validation == "Strict"
    draft.outcome.complaints = list(sent.strict if strict else sent.duplicates)


def report_repeated_keys(draft: Draft) -> None:
    """Refuse or warn about repeated keys of a configuration. Upstream applies it first, whose errors come before."""
    validation, complaints = draft.request.options.field_validation, draft.outcome.complaints
    if complaints and validation == "Strict":
        raise refuse_repeated_keys(complaints)
    if validation == "Warn":
        draft.outcome.warnings += complaints


# -- the stored object ------------------------------------------------------------------------------------------------


def find(draft: Draft) -> Awaitable[None] | None:
    """Find the stored object, and convert it to the request's version. A replace or apply may become a create.

    Waits if the collection is not loaded, the object is large, or a webhook converts it.
    """
    check_path_name(draft.request.name)
    collection = draft.environment.reader.loaded(draft.resource)
    return _load_and_find(draft) if collection is None else _find_in(collection, draft)


async def _load_and_find(draft: Draft) -> None:
    waits = _find_in(await draft.environment.reader.collection(draft.resource), draft)
    if waits is not None:
        await waits


def _find_in(collection: Collection, draft: Draft) -> Awaitable[None] | None:
    request, resource = draft.request, draft.resource
    try:
        found = draft.found = draft.environment.reader.find_in(collection, resource, request.namespace, request.name)
    except ApiError as error:
        if error.reason != "NotFound" or not _may_create(draft):
            raise
        _become_create(draft)
        return None
    if resource.versions.converter is not None or len(found.stored) > LOOP_LIMIT:
        return _convert_found(draft, found)
    draft.shown = found
    _show(draft, shared_object_at(found, resource))
    return None


async def _convert_found(draft: Draft, found: StoredObject) -> None:
    shown = draft.shown = await entry_at(found, draft.resource)
    _show(draft, await offload(len(shown.stored), object_at, shown, draft.resource))


def _show(draft: Draft, old: Object) -> None:
    assert draft.shown is not None
    draft.weight = max(draft.weight, len(draft.shown.stored))
    draft.old = old
    if draft.request.action in (Action.REPLACE, Action.REPLACE_SCALE):
        _check_uid(draft, old)


def _may_create(draft: Draft) -> bool:
    match draft.request.action:
        case Action.APPLY:
            return not draft.request.subresource
        case Action.REPLACE:
            return draft.resource.codec.create_on_update and not draft.request.subresource
    return False


def _become_create(draft: Draft) -> None:
    draft.operation = "CREATE"
    if draft.request.action is Action.REPLACE:
        for name in _SYSTEM_FIELDS:
            metadata_of(draft).pop(name, None)


def _check_uid(draft: Draft, old: Object) -> None:
    """Compare the uid of a replacement with the stored one; upstream's error is that of the storage layer."""
    sent = (draft.scale or draft.new)["metadata"].get("uid")
    metadata = old["metadata"]
    if sent and sent != metadata.get("uid", ""):
        resource = draft.resource
        key = key_of(resource, metadata.get("namespace", ""), metadata["name"])
        why = f"Precondition failed: UID in precondition: {sent}, UID in object meta: {metadata.get('uid', '')}"
        text = storage_error("invalid object", 4, resource, key, why, dry_run=is_dry_run(draft))
        raise errors.conflict(resource.group_resource, metadata["name"], text)


def patch(draft: Draft) -> None:
    """Apply the patch to the stored object.

    The result shares with the patched object what the patch leaves alone, in the same places. For custom resources that is
    the old object itself, instead of a second copy: the fast path finds nothing to change in the shared parts if their
    defaults are filled in, and the stages after it change only the metadata. Whatever changes more calls `_separate` before.
    """
    assert draft.patch is not None
    assert draft.shown is not None
    assert draft.old is not None
    draft.shares_old = draft.resource.is_custom and draft.trace is None and _has_defaults(draft)
    patched = draft.patch.apply(draft.old if draft.shares_old else object_at(draft.shown, draft.resource))
    draft.new = patched.value
    if draft.patch.moves_values:
        _separate(draft)
    if draft.shares_old:
        metadata = draft.new.get("metadata")
        draft.new = {**draft.new, "metadata": dict(metadata)} if isinstance(metadata, dict) else dict(draft.new)
    strict = draft.request.options.field_validation == "Strict"
    draft.outcome.complaints = list(patched.strict if strict else patched.duplicates)


def _has_defaults(draft: Draft) -> bool:
    """Whether the old object has all defaults: it is read at its stored version. Those of other versions are not filled in."""
    assert draft.shown is not None
    return draft.shown is draft.found and draft.shown.rendering.resource is draft.resource


def _separate(draft: Draft) -> None:
    """Decode the stored object again, if the new one shares parts with it and is about to be changed in place."""
    if draft.shares_old:
        assert draft.shown is not None
        draft.old, draft.shares_old = object_at(draft.shown, draft.resource), False


def merge(draft: Draft) -> Awaitable[None] | None:
    """Server-side apply: merge the configuration into the stored object, by the owners of fields.

    Waits for conversions by a webhook.
    """
    request, resource = draft.request, draft.resource
    old, config = draft.old, draft.configuration
    assert config is not None
    by, now, force = request.options.field_manager, draft.now, request.options.force
    valid = manager.Valid(live=is_valid(draft.shown, resource))

    def merged(tracker: Tracker) -> manager.AppliedObject:
        return manager.apply(old, config, tracker, manager=by, force=force, now=now, valid=valid)

    if resource.versions.converter is not None:
        return _merge_by_converting(draft, merged)
    _keep_merged(draft, merged(ownership.tracker(resource, request.subresource)))
    return None


async def _merge_by_converting(draft: Draft, merged: Callable[[Tracker], manager.AppliedObject]) -> None:
    _keep_merged(
        draft, await ownership.run_with_tracker(draft.resource, draft.request.subresource, merged, draft.weight)
    )


def _keep_merged(draft: Draft, merged: manager.AppliedObject) -> None:
    """Take a merged object, which shares parts with the old one, as the new object. Raises ApiError."""
    new, draft.configuration, draft.unchanged = merged.value, None, not merged.changed
    if draft.resource.is_custom and draft.old is not None and not draft.unchanged and not _has_defaults(draft):
        assert draft.shown is not None
        draft.old = object_at(draft.shown, draft.resource)  # the defaults are filled in where the new one shares parts
    report_repeated_keys(draft)
    own = dict if draft.resource.is_custom else copy  # admission changes built-in objects in place
    draft.new = {name: own(item) if name == "metadata" else item for name, item in new.items()}
    if draft.old is None and (uid := (draft.new.get("metadata") or {}).get("uid")):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(draft.resource.group_resource, draft.request.name, why)


# -- decode, prune, default -------------------------------------------------------------------------------------------


def decode(draft: Draft) -> None:
    """Decode metadata, and for built-in kinds all fields, which also prunes them.

    The fast path decodes, prunes, defaults and validates in one pass. A traced write takes the readable path.
    """
    draft.clean = _is_clean(draft)
    if not draft.clean:
        _separate(draft)
        resets = not draft.resource.is_custom and manager.has_empty_entries(draft.new)
        try:
            draft.new, draft.outcome.unknown = draft.resource.codec.decode(draft.resource, draft.new)
        except ValueError as error:
            raise _undecodable(draft, _explained(draft, str(error))) from None
        if resets:
            metadata_of(draft)["managedFields"] = []  # a Go struct distinguishes it from none; custom resources do not


def _explained(draft: Draft, why: str) -> str:
    """The error of decoding an object: the first one in upstream's order, with the number as it was sent.

    That is the order of a JSON body, of the keys of YAML, which upstream converts to JSON, and of the patched text. After a
    strategic merge patch, it is the order of declaration, since upstream converts maps to structs.
    """
    content, media_type, _ = draft.request.body
    struct = draft.resource.codec.struct
    if struct is None:  # the metadata of a custom resource was decoded before, without types
        return why
    if draft.patch is not None and draft.patch.is_strategic:
        return unstructured.mismatch(struct, draft.new) or why
    if draft.patch is not None:
        value = codec.decode_literals(draft.patch.text(draft.old or {}).encode())
    elif draft.request.action not in _WITH_OBJECT or not isinstance(content, bytes) or not content:
        return why
    elif media_type == codec.YAML or (media_type == codec.JSON and _WRONG_NUMBER in why):
        identity = {name: draft.new[name] for name in ("apiVersion", "kind") if name in draft.new}
        value = codec.decode_literals(content, media_type) | identity
        value = sorted_copy(value) if media_type == codec.YAML else value
    else:
        return why
    try:
        draft.resource.codec.decode(draft.resource, value)
    except ValueError as error:
        return str(error)
    return why


_WRONG_NUMBER: Final = "cannot unmarshal number"
_WITH_OBJECT: Final = (Action.CREATE, Action.REPLACE, Action.REVIEW, Action.ACT)


def prune(draft: Draft) -> None:
    """Remove what the schema does not describe (KEP-2332)."""
    if not draft.clean:
        try:
            draft.outcome.unknown += draft.resource.codec.prune(draft.resource, draft.new)
        except ValueError as error:
            raise _undecodable(draft, str(error)) from None


def _is_clean(draft: Draft) -> bool:
    """Whether the fast path accepts the new object. It does not look again at what a patch or apply shares with the old one."""
    if draft.trace is not None:
        return False
    resource = draft.resource
    old = draft.old if is_valid(draft.shown, resource) else None
    if old is None and _keeps_defaults_out(draft):
        return False
    return resource.codec.accept(resource, draft.new, old=old)


def _keeps_defaults_out(draft: Draft) -> bool:
    """Whether the object gets no defaults: the configuration has changed nothing, and neither has admission.

    A stored object has the defaults of its storage version only. Upstream fills in those of the request's version when the
    merged object differs (structuredMergeManager.Apply).
    """
    return draft.unchanged and not draft.mutated


def retype(draft: Draft) -> None:
    """Decode a merged object again: the metadata, and for built-in kinds all fields, so that nulls are dropped."""
    if not draft.resource.is_custom:
        try:
            draft.new, _ = draft.resource.codec.decode(draft.resource, draft.new)
        except ValueError as error:
            raise _not_converted(draft, str(error)) from None
        return
    draft.clean = _is_clean(draft)
    if not draft.clean:
        with suppress(ValueError):  # reported by validation
            draft.new["metadata"] = coerce(draft.new.get("metadata")).metadata


def _not_converted(draft: Draft, why: str) -> ApiError:
    """The error for an applied built-in object that cannot be converted to its Go type."""
    (content, media_type, _), struct = draft.request.body, draft.resource.codec.struct
    assert isinstance(content, bytes)
    config = read_configuration(content, media_type).value
    why = (unstructured.mismatch(struct, draft.new) if struct else "") or why
    kind = group_version_kind(draft.new)
    text = f"unable to convert unstructured object to {kind}: {why}"
    return errors.plain_error(f"failed to convert new object ({named(config)}) to proper version: {text}")


def refuse_unknown(draft: Draft) -> None:
    """Refuse repeated and unknown fields (fieldValidation Strict), or warn about them (Warn)."""
    mode, outcome = draft.request.options.field_validation, draft.outcome
    if mode == "Ignore" or not (outcome.complaints or outcome.unknown):
        return
    if draft.request.body.media_type == CBOR:
        complaints = _cbor_complaints(draft)
    else:
        complaints = outcome.complaints + [f'unknown field "{path}"' for path in outcome.unknown]
    if not complaints:
        return
    if mode == "Warn":
        outcome.warnings += complaints
        return
    why = codec.strict_decoding_error(complaints)
    if draft.patch is None and draft.resource.is_custom:  # the error names the kind in the object
        if not meta.parse_api_version(draft.new.get("apiVersion") or "")[1]:
            raise errors.bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        raise _undecodable(draft, why, str(draft.new["kind"]))
    raise _undecodable(draft, why)


def _cbor_complaints(draft: Draft) -> list[str]:
    """Upstream's only complaint about a CBOR body: the first unknown field of a built-in kind, without its name."""
    if draft.resource.is_custom:
        return []
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    sent = decode_body(content, media_type, draft.resource.gvk, strict=False, typed=True).value
    return [unknown_element(sent, draft.outcome.unknown[0])]


def _undecodable(draft: Draft, why: str, kind: str = "") -> ApiError:
    """The error for an object that cannot be decoded as `kind` (default: the resource's)."""
    if draft.patch is not None:
        return invalid_patch(draft.patch.text(draft.old or {}), why)
    group, _, version = str(draft.new.get("apiVersion") or "").rpartition("/")
    sent = GroupVersionKind(group, version, str(draft.new.get("kind")))
    return codec.cannot_be_handled(sent, kind or draft.resource.kind, why)


_SYSTEM_FIELDS: Final = ("creationTimestamp", "uid", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


_WITH_UID: Final = ("binding",)
"""Subresources for which the uid in the body is a precondition (rest.SubresourceObjectMetaPreserver)."""


def address(draft: Draft) -> None:
    """Compare version, namespace and, except for a POST, name of the object with the URL."""
    api_version, expected = draft.new.get("apiVersion") or "", draft.resource.api_version
    if draft.patch is None:
        if api_version != expected:
            claimed = GroupVersionKind(*meta.parse_api_version(api_version), draft.resource.kind).api_version
            text = f"the API version in the data ({claimed}) does not match the expected API version ({expected})"
            raise errors.bad_request(text)
    elif not draft.resource.is_custom:
        _convert_patched(draft)
    _put_into_namespace(draft)
    metadata = metadata_of(draft)
    if draft.operation == "CREATE":
        for name in _SYSTEM_FIELDS:
            if name != "uid" or draft.request.subresource not in _WITH_UID:
                metadata.pop(name, None)
        if draft.request.action is not Action.APPLY:
            return
    check_name(metadata, draft.request.name)


def _convert_patched(draft: Draft) -> None:
    """Convert a built-in object to the resource's version: a patch may have changed its apiVersion, or removed it."""
    resource = draft.resource
    if draft.new["apiVersion"] != resource.api_version:
        converted = resource.codec.convert(resource, draft.new)
        draft.new = converted | {"kind": resource.kind, "apiVersion": resource.api_version}


def metadata_of(draft: Draft) -> Object:
    """`metadata` of the new object, created if it is absent."""
    metadata: Object | None = draft.new.get("metadata")
    if metadata is None:
        metadata = draft.new["metadata"] = {}
    return metadata


def _put_into_namespace(draft: Draft) -> None:
    metadata = metadata_of(draft)
    if not draft.resource.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = draft.request.namespace
    else:
        check_namespace(metadata, draft.request.namespace)


def check_namespace(metadata: Object, namespace: str) -> None:
    """Raises ApiError unless the object has the namespace of the URL, or none."""
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(metadata: Object, name: str) -> None:
    """Raises ApiError unless the object has the name of the URL."""
    given = metadata.get("name")
    if not given:
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(text)
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def default(draft: Draft) -> None:
    """Fill in defaults."""
    resource, new = draft.resource, draft.new
    if draft.clean or _keeps_defaults_out(draft):
        return
    if new.get("kind") == resource.kind and new.get("apiVersion") == resource.api_version:  # else it has no schema
        resource.codec.default(resource, new)


# -- owners, admission ------------------------------------------------------------------------------------------------


def drop_duplicate_owners(draft: Draft) -> None:
    """Remove duplicate owner references, with a warning."""
    if "ownerReferences" in metadata_of(draft):
        after_admission = draft.mutated or draft.patch is not None
        draft.outcome.warnings += meta.drop_duplicate_owners(metadata_of(draft), after_admission=after_admission)


def own(draft: Draft) -> Awaitable[None] | None:
    """Track the field managers (metadata.managedFields). Waits for conversions by a webhook."""
    request = draft.request
    old, new, by, now = draft.old, draft.new, request.options.field_manager, draft.now
    valid = manager.Valid(is_valid(draft.shown, draft.resource), draft.clean, draft.clean and draft.resource.is_exact)
    if draft.resource.versions.converter is not None:
        return _own_by_converting(
            draft, lambda tracker: manager.update(old, new, tracker, manager=by, now=now, valid=valid)
        )
    tracker = draft.resource.trackers.get(request.subresource) or ownership.tracker(draft.resource, request.subresource)
    draft.new = manager.update(old, new, tracker, manager=by, now=now, valid=valid)
    return None


async def _own_by_converting(draft: Draft, update: Callable[[Tracker], Object]) -> None:
    draft.new = await ownership.run_with_tracker(draft.resource, draft.request.subresource, update, draft.weight)


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
    if draft.request.internal or draft.pending:
        return None
    waits = draft.environment.admission.mutate(draft)
    if waits is not None:
        _separate(draft)  # nothing is changed before it is awaited
    return waits


def prune_mutated(draft: Draft) -> None:
    """Remove unknown fields that mutating admission added, before validating admission (KEP-2332).

    The reference does not prune here.
    """
    if not draft.mutated:
        return
    draft.clean = _is_clean(draft)
    if not draft.clean:
        draft.new = draft.resource.codec.prune_mutated(draft.resource, draft.new)
        _refuse_malformed(draft)


def default_mutated(draft: Draft) -> None:
    """Fill in the defaults of fields that mutating admission added."""
    if draft.mutated:
        default(draft)
        _put_into_namespace(draft)
        drop_duplicate_owners(draft)


def _refuse_malformed(draft: Draft) -> None:
    """Refuse malformed metadata, which mutating admission may produce."""
    metadata: Json = metadata_of(draft)
    if not isinstance(metadata, dict) and draft.old is None:
        raise errors.internal_error("system metadata was not initialized")
    if draft.old is not None and (not isinstance(metadata, dict) or not _has_version(metadata)):
        error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.invalid(draft.resource.group_resource, draft.name, [error])
    if unstructured.mismatch(OBJECT_META, metadata):
        _complete(draft)  # this may repair it
        if wrong := unstructured.mismatch(OBJECT_META, metadata):
            raise _malformed(draft, metadata.get("name"), wrong)
        draft.new = draft.resource.codec.prune_mutated(draft.resource, draft.new)


def _has_version(metadata: Object) -> bool:
    return isinstance(metadata.get("resourceVersion", ""), str)


def _malformed(draft: Draft, name: Json, why: str) -> ApiError:
    error = fields.invalid("metadata", Verbatim(compact_json(draft.new["metadata"])), why)
    what = errors.Qualified(draft.resource.group, draft.resource.kind)
    return errors.invalid(what, name if isinstance(name, str) else "", [error])


def guard(draft: Draft) -> None:
    """Refuse an object that gives more rights than the user has: after mutating admission, before validation, as upstream."""
    check = draft.environment.guards.get(draft.resource.collection)
    if check is not None and not draft.request.internal:
        check(draft)


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
    return None if draft.request.internal or draft.pending else draft.environment.admission.validate(draft)


# -- fields that the server determines ------------------------------------------------------------------------------------------


def lock(draft: Draft) -> None:
    """Optimistic locking: compare the resourceVersion in the object with the stored one.

    A replace or apply that creates the object may have any number.
    """
    metadata, found = metadata_of(draft), draft.found
    if found is not None and metadata.get("resourceVersion") == str(found.revision):
        return
    given = _revision(metadata)
    if found is None:
        return
    revision = found.revision
    if given == 0:
        if not draft.resource.codec.unconditional_update:
            error = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(draft.resource.group_resource, draft.name, [error])
        metadata["resourceVersion"] = str(revision)
    elif given != revision:
        raise errors.modified(draft.resource.group_resource, draft.name)


def _revision(metadata: Object) -> int:
    """The resourceVersion of an object as a number, 0 if it has none. Raises ApiError."""
    try:
        return parse_uint(metadata.get("resourceVersion") or "0")
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


def identify(draft: Draft) -> None:
    """Set uid, creationTimestamp and generation of a new object; restore immutable metadata of an updated one."""
    metadata = metadata_of(draft)
    if draft.old is None and not metadata.get("name") and metadata.get("generateName"):
        draft.name = generate_name(metadata["generateName"], draft.environment.identifiers.new_suffix())
        metadata["name"] = draft.name
    _complete(draft)


def _complete(draft: Draft) -> None:
    metadata = metadata_of(draft)
    if not isinstance(metadata.get("selfLink", ""), str):
        del metadata["selfLink"]
    if draft.old is None:
        metadata["uid"] = draft.environment.identifiers.new_uid()
        metadata["creationTimestamp"] = draft.now
        metadata["generation"] = 1
        return
    old = draft.old["metadata"]
    if old.get("uid"):
        metadata.setdefault("uid", old["uid"])
    for name in ("creationTimestamp", "generation"):
        _restore(metadata, old, name)
    if old.get("deletionTimestamp") is not None:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if old.get("deletionGracePeriodSeconds") is not None and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]  # another value is refused


def _restore(metadata: Object, old: Object, name: str) -> None:
    if name in old:
        metadata[name] = old[name]
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
        release(draft)
        namespace = draft.new["metadata"].get("namespace", "")
        draft.reservation = take(
            draft.new, draft.old, key_of(resource, namespace, draft.new["metadata"].get("name", ""))
        )


def claim(draft: Draft) -> Awaitable[None] | None:
    """Claim what `allocate` took, where several servers share the store."""
    if draft.reservation is None or is_dry_run(draft):
        return None
    claiming = draft.reservation.claim()
    return None if claiming is None else _claimed(claiming)


async def _claimed(claiming: Awaitable[None]) -> None:
    try:
        await claiming
    except Claimed:
        raise Superseded from None


def release(draft: Draft, *, is_certain: bool = True) -> None:
    """End the reservation of what `allocate` took. `is_certain`: the object will not be stored later."""
    if draft.reservation is not None:
        draft.reservation.end(is_certain=is_certain)
        draft.reservation = None


def validate(draft: Draft) -> None:
    """Validate metadata, schema, lists and x-kubernetes-validations."""
    draft.outcome.errors = []  # the stage may be repeated in a thread
    STRATEGIES[draft.resource.type].validate(draft)
    if draft.outcome.errors:
        kind, api_version = draft.new.get("kind") or "", draft.new.get("apiVersion") or ""
        what = draft.claimed or errors.Qualified(
            api_version.rpartition("/")[0], kind
        )  # of the object, not the resource
        raise errors.invalid(what, metadata_of(draft).get("name", ""), draft.outcome.errors)


def keep_times(draft: Draft) -> None:
    """Restore the old times of managers if nothing else has changed, so that nothing is written."""
    if draft.old is not None:
        draft.new = manager.keep_times(draft.old, draft.new)


def prune_applied(draft: Draft) -> None:
    """Prune an applied object: merging leaves nulls, and unknown fields below an `object` without properties.

    Upstream prunes when it stores, after validation; each apply of such a field changes the object.
    """
    if draft.clean or not draft.resource.is_custom:
        return
    draft.clean = draft.scale is None and _is_clean(draft)  # a write to /scale fills in no defaults
    if not draft.clean:
        draft.resource.codec.decode(draft.resource, draft.new)
        draft.resource.codec.prune(draft.resource, draft.new)


def is_dry_run(draft: Draft) -> bool:
    """Whether nothing is to be written."""
    return draft.request.options.dry_run or draft.request.delete_options.dry_run


# -- requests that store nothing ------------------------------------------------------------------------------------------


def check_action(draft: Draft) -> None:
    """Validate the body of a subresource that acts on its object."""
    draft.environment.action(draft.resource.kind).check(draft)


async def act(draft: Draft) -> None:
    """Do what the body of a subresource says: the result is a Status."""
    draft.written = Written(None, await draft.environment.action(draft.resource.kind).act(draft))


async def answer(draft: Draft) -> None:
    """Compute the status of a review, which is not stored."""
    draft.new["status"] = await draft.environment.reviewer(draft)
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
