"""The first phase of a write: from the bytes of a request to an object that its schema describes.

The body is decoded, a patch or configuration is put into the stored object; the result is pruned, completed with defaults, and
compared with the URL. The order of the stages is in `registry.write`.

    request.body ── read_body ──► new ── decode, prune, refuse_unknown, check_url, default ──► new
    request.body ── read_patch ─► sent ─┐
    cache ───────── find ───────► old ──┴ patch, merge ──► new, which shares with `old` what does not change

A stage changes `draft.new` in place, unless it says otherwise; it never changes `draft.old`. So the object of a body is made
for this draft, and what a patch shares with the stored object is separated (`separate`) before anything below changes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from noxu.api import codec, errors, meta
from noxu.api.errors import ApiError
from noxu.api.json_patches import refuse_repeated_keys
from noxu.api.meta import GroupVersionKind, coerce
from noxu.api.names import check_path_name
from noxu.apply import manager
from noxu.apply.tracker import Tracker, group_version_kind, named
from noxu.go import unstructured
from noxu.registry import ownership
from noxu.registry.bodies import CBOR, decode_body, unknown_element
from noxu.registry.cache import Collection
from noxu.registry.conversion.converters import entry_at
from noxu.registry.draft import (
    CLEAN,
    ENCODED,
    UNKNOWN,
    Action,
    Configuration,
    Draft,
    Form,
    Merged,
    NewScale,
    Stored,
)
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.patch import ObjectPatch, invalid_patch, read_configuration
from noxu.registry.reader import storage_error
from noxu.registry.stored_object import StoredObject, is_valid, key_of, object_at, shared_object_at
from noxu.values import Object, copy, sorted_copy

# -- the body -----------------------------------------------------------------------------------------------------------


def read_body(draft: Draft) -> None:
    """Decode the object in the request's body."""
    content, media_type, complaints = draft.request.body
    validation = draft.request.options.field_validation
    if isinstance(content, dict) and not draft.resource.is_custom:
        draft.new = content  # another's: `decode` copies an object of a built-in kind
        draft.outcome.complaints = list(complaints)
        return
    if isinstance(content, dict):
        content, media_type = codec.encode(content, sort_keys=False), ENCODED
    if media_type == ENCODED:
        draft.new = codec.decode_stored(content)  # a copy, like a decoded body
        draft.outcome.complaints = list(complaints)
        return
    resource = draft.resource
    strict = validation != "Ignore"
    read = codec.read_object if media_type == codec.JSON else decode_body
    decoded = read(content, media_type, resource.gvk, strict=strict, typed=not resource.is_custom)
    draft.new = decoded.value  # made for this draft: stages change it in place
    draft.outcome.complaints = list(decoded.strict if validation == "Strict" else decoded.duplicates)
    if draft.outcome.sent is not None:
        _keep_sent(draft.outcome.sent, draft.new)


def _keep_sent(kept: dict[str, str], value: Object) -> None:
    """Keep what the metadata of a body says about the object."""
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        for name in ("name", "namespace", "uid", "resourceVersion"):
            if name in metadata and isinstance(
                metadata[name], str
            ):  # no more: each write does it while requests are recorded
                kept[name] = metadata[name]  # the dict belongs to the exchange, which the audit log reads


def read_patch(draft: Draft) -> None:
    """Decode the patch. Its operations are checked when it is applied."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    validation = draft.request.options.field_validation
    draft.sent = ObjectPatch(media_type, content, draft.resource.codec.struct, field_validation=validation)


def read_applied(draft: Draft) -> None:
    """Decode the configuration of server-side apply."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    sent = read_configuration(content, media_type)
    draft.sent = Configuration(sent.value)
    strict = draft.request.options.field_validation == "Strict"
    draft.outcome.complaints = list(sent.strict if strict else sent.duplicates)


def report_repeated_keys(draft: Draft) -> None:
    """Refuse or warn about repeated keys of a configuration. Upstream applies it first, whose errors come before."""
    validation, complaints = draft.request.options.field_validation, draft.outcome.complaints
    if complaints and validation == "Strict":
        raise refuse_repeated_keys(complaints)
    if validation == "Warn":
        draft.outcome.warnings += complaints


# -- the stored object --------------------------------------------------------------------------------------------------


def find(draft: Draft) -> Awaitable[None] | None:
    """Find the stored object, and convert it to the request's version. A replace or apply may become a create.

    Waits if the collection is not loaded, the object is large, or a webhook converts it.
    """
    check_path_name(draft.request.name)
    collection = draft.environment.reader.cache.collections.get(draft.resource.collection)
    return _load_and_find(draft) if collection is None else _find_in(collection, draft)


async def _load_and_find(draft: Draft) -> None:
    waits = _find_in(await draft.environment.reader.collection(draft.resource), draft)
    if waits is not None:
        await waits


def _find_in(collection: Collection, draft: Draft) -> Awaitable[None] | None:
    request, resource = draft.request, draft.resource
    try:
        entry = draft.environment.reader.find_in(collection, resource, request.namespace, request.name)
    except ApiError as error:
        if error.reason != "NotFound" or not _may_create(draft):
            raise
        _become_create(draft)
        return None
    if resource.versions.converter is not None or len(entry.stored) > LOOP_LIMIT:
        return _convert_found(draft, entry)
    _show(draft, Stored(entry, entry), shared_object_at(entry, resource))
    return None


async def _convert_found(draft: Draft, entry: StoredObject) -> None:
    shown = await entry_at(entry, draft.resource)
    _show(draft, Stored(entry, shown), await offload(len(shown.stored), object_at, shown, draft.resource))


def _show(draft: Draft, stored: Stored, old: Object) -> None:
    draft.stored, draft.old = stored, old  # old may share its owners with other objects: nothing changes it
    draft.weight = max(draft.weight, len(stored.shown.stored))  # a small patch of a large object is large work
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
    draft.operation = "CREATE"  # admission sees a create, and authorization is asked for one
    if draft.request.action is Action.REPLACE:
        for name in _SYSTEM_FIELDS:
            metadata_of(draft).pop(name, None)  # of the sent object, before it is compared with nothing


def _check_uid(draft: Draft, old: Object) -> None:
    """Compare the uid of a replacement with the stored one; upstream's error is that of the storage layer."""
    sent = draft.sent.value if isinstance(draft.sent, NewScale) else draft.new
    uid = sent["metadata"].get("uid")
    metadata = old["metadata"]
    if uid and uid != metadata.get("uid", ""):
        resource = draft.resource
        key = key_of(resource, metadata.get("namespace", ""), metadata["name"])
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata.get('uid', '')}"
        text = storage_error("invalid object", 4, resource, key, why, dry_run=draft.request.options.dry_run)
        raise errors.conflict(resource.group_resource, metadata["name"], text)


def patch(draft: Draft) -> None:
    """Apply the patch to the stored object.

    The result shares with the patched object what the patch leaves alone, in the same places. For custom resources that is
    the old object itself, instead of a second copy: the fast path finds nothing to change in the shared parts if their
    defaults are filled in, and the stages after it change only the metadata. Whatever changes more calls `separate` before.
    """
    change, stored, old = draft.sent, draft.stored, draft.old
    assert isinstance(change, ObjectPatch)
    assert stored is not None
    assert old is not None
    is_shared = draft.resource.is_custom and draft.outcome.trace is None and _has_defaults(draft, stored)
    patched = change.apply(old if is_shared else object_at(stored.shown, draft.resource))
    draft.new = patched.value  # shares with the patched object what the patch leaves alone
    if is_shared:
        metadata = draft.new.get("metadata")  # stages change it in place: it is not shared
        draft.new = {**draft.new, "metadata": dict(metadata)} if isinstance(metadata, dict) else dict(draft.new)
        draft.stored = stored._replace(is_shared=True)  # from here on, only the metadata may change in place
        if change.moves_values:  # a shared part may be in another place, with other defaults
            separate(draft)
    strict = draft.request.options.field_validation == "Strict"
    draft.outcome.complaints = list(patched.strict if strict else patched.duplicates)


def _has_defaults(draft: Draft, stored: Stored) -> bool:
    """Whether the old object has all defaults: it is read at its stored version. Those of other versions are not filled in."""
    return stored.shown is stored.entry and stored.shown.rendering.resource is draft.resource


def separate(draft: Draft) -> None:
    """Decode the stored object again, if the new one shares parts with it and is about to be changed in place."""
    stored = draft.stored
    if stored is not None and stored.is_shared:
        # a second decoding: `new` keeps the parts of the first
        draft.old, draft.stored = object_at(stored.shown, draft.resource), stored._replace(is_shared=False)


def merge(draft: Draft) -> Awaitable[None] | None:
    """Server-side apply: merge the configuration into the stored object, by the owners of fields.

    Waits for conversions by a webhook.
    """
    request, resource = draft.request, draft.resource
    old, config = draft.old, draft.sent
    assert isinstance(config, Configuration)
    by, now, force = request.options.field_manager, draft.now, request.options.force
    valid = manager.Valid(live=_old_is_valid(draft))

    def merged(tracker: Tracker) -> manager.AppliedObject:
        return manager.apply(old, config.value, tracker, manager=by, force=force, now=now, valid=valid)

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
    new, stored, draft.sent = merged.value, draft.stored, Merged(merged.changed)
    if stored is not None and merged.changed and draft.resource.is_custom and not _has_defaults(draft, stored):
        draft.old = object_at(stored.shown, draft.resource)  # defaults are filled in where the new one shares parts
    report_repeated_keys(draft)
    own = dict if draft.resource.is_custom else copy  # admission changes built-in objects in place
    draft.new = {name: own(item) if name == "metadata" else item for name, item in new.items()}  # metadata is its own
    if draft.old is None and (uid := (draft.new.get("metadata") or {}).get("uid")):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(draft.resource.group_resource, draft.request.name, why)


# -- decode, prune, default ---------------------------------------------------------------------------------------------


def decode(draft: Draft) -> None:
    """Decode metadata, and for built-in kinds all fields, which also prunes them.

    The fast path decodes, prunes, defaults and validates in one pass. A traced write takes the readable path.
    """
    draft.form = form_of(draft)
    if draft.form is UNKNOWN:
        separate(draft)
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
    if isinstance(draft.sent, ObjectPatch) and draft.sent.is_strategic:
        return unstructured.mismatch(struct, draft.new) or why
    if isinstance(draft.sent, ObjectPatch):
        value = codec.decode_literals(draft.sent.text(draft.old or {}).encode())
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
    if draft.form is UNKNOWN:
        try:
            draft.outcome.unknown += draft.resource.codec.prune(draft.resource, draft.new)  # in place
        except ValueError as error:
            raise _undecodable(draft, str(error)) from None


def form_of(draft: Draft) -> Form:
    """What the fast path finds about the new object: CLEAN or UNKNOWN. It decodes the metadata and fills in defaults, in place.

    It does not look again at what a patch or apply shares with the old one. A traced write takes the readable path.
    """
    if draft.outcome.trace is not None:
        return UNKNOWN
    resource = draft.resource
    old = draft.old if draft.stored is not None and _old_is_valid(draft) else None
    if old is None and _keeps_defaults_out(draft):
        return UNKNOWN
    return CLEAN if resource.codec.accept(resource, draft.new, old=old) else UNKNOWN  # fills in defaults, in place


def _old_is_valid(draft: Draft) -> bool:
    """Whether the fast path has found, when it was stored, that the old object satisfies the schema of the request's version."""
    return draft.stored is not None and is_valid(draft.stored.shown, draft.resource)


def _keeps_defaults_out(draft: Draft) -> bool:
    """Whether the object gets no defaults: the configuration has changed nothing, and neither has admission.

    A stored object has the defaults of its storage version only. Upstream fills in those of the request's version when the
    merged object differs (structuredMergeManager.Apply).
    """
    return isinstance(draft.sent, Merged) and not draft.sent.changed and not draft.mutated


def retype(draft: Draft) -> None:
    """Decode a merged object again: the metadata, and for built-in kinds all fields, so that nulls are dropped."""
    if not draft.resource.is_custom:
        try:
            draft.new, _ = draft.resource.codec.decode(draft.resource, draft.new)
        except ValueError as error:
            raise _not_converted(draft, str(error)) from None
        return
    draft.form = form_of(draft)
    if draft.form is UNKNOWN:
        with suppress(ValueError):  # reported by validation
            # a merged object has metadata of its own
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
        outcome.warnings += complaints  # the list that the handler sends as headers
        return
    why = codec.strict_decoding_error(complaints)
    if draft.resource.is_custom and not isinstance(draft.sent, ObjectPatch):  # the error names the kind in the object
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
    if isinstance(draft.sent, ObjectPatch):
        return invalid_patch(draft.sent.text(draft.old or {}), why)
    group, _, version = str(draft.new.get("apiVersion") or "").rpartition("/")
    sent = GroupVersionKind(group, version, str(draft.new.get("kind")))
    return codec.cannot_be_handled(sent, kind or draft.resource.kind, why)


def default(draft: Draft) -> None:
    """Fill in defaults."""
    resource, new = draft.resource, draft.new
    if draft.form is not UNKNOWN or _keeps_defaults_out(draft):
        return
    if new.get("kind") == resource.kind and new.get("apiVersion") == resource.api_version:  # else it has no schema
        resource.codec.default(resource, new)  # in place; defaults are copied from the schema


# -- what the URL says --------------------------------------------------------------------------------------------------


_SYSTEM_FIELDS: Final = ("creationTimestamp", "uid", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


_WITH_UID: Final = ("binding",)
"""Subresources for which the uid in the body is a precondition (rest.SubresourceObjectMetaPreserver)."""


def check_url(draft: Draft) -> None:
    """Compare version, namespace and, except for a POST, name of the object with the URL.

    Upstream's EnsureObjectNamespaceMatchesRequestNamespace, and checkName of its handlers.
    """
    api_version, expected = draft.new.get("apiVersion") or "", draft.resource.api_version
    if not isinstance(draft.sent, ObjectPatch):
        if api_version != expected:
            claimed = GroupVersionKind(*meta.parse_api_version(api_version), draft.resource.kind).api_version
            text = f"the API version in the data ({claimed}) does not match the expected API version ({expected})"
            raise errors.bad_request(text)
    elif not draft.resource.is_custom:
        _convert_patched(draft)
    metadata = put_into_namespace(draft)
    if draft.operation == "CREATE":
        for name in _SYSTEM_FIELDS:
            if name != "uid" or draft.request.subresource not in _WITH_UID:
                metadata.pop(name, None)  # a client cannot choose them
        if draft.request.action is not Action.APPLY:
            return
    check_name(metadata, draft.request.name)


def _convert_patched(draft: Draft) -> None:
    """Convert a built-in object to the resource's version: a patch may have changed its apiVersion, or removed it."""
    resource = draft.resource
    if draft.new["apiVersion"] != resource.api_version:
        converted = resource.codec.convert(resource, draft.new)
        # a new dict; its parts are shared
        draft.new = converted | {"kind": resource.kind, "apiVersion": resource.api_version}


def metadata_of(draft: Draft) -> Object:
    """`metadata` of the new object, created if it is absent."""
    metadata: Object | None = draft.new.get("metadata")
    if metadata is None:
        metadata = draft.new["metadata"] = {}  # put into the object: callers change it
    return metadata


def put_into_namespace(draft: Draft) -> Object:
    """Give the object the namespace of the URL: its metadata. Raises ApiError if it has another one."""
    metadata, namespace = metadata_of(draft), draft.request.namespace
    if not draft.resource.namespaced:
        metadata.pop("namespace", None)  # of a cluster-scoped object
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace  # which a client may leave out
    elif metadata["namespace"] != namespace:
        check_namespace(metadata, namespace)
    return metadata


def check_namespace(metadata: Object, namespace: str) -> None:
    """Raises ApiError unless the object has the namespace of the URL, or none."""
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def check_name(metadata: Object, name: str) -> None:
    """Raises ApiError unless the object has the name of the URL."""
    own_name = metadata.get("name")
    if not own_name:
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(text)
    if own_name != name:
        raise errors.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
