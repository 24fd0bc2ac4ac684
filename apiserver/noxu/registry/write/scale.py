"""The first phase of a write to /scale, which writes the replicas of an object as an autoscaling/v1 Scale.

Its stages replace decoding: their result is the stored object with new replicas and their owners. The stages after them are
those of an update.
"""

from __future__ import annotations

from typing import Final

from noxu.api import codec, errors, field, meta
from noxu.api.names import subdomain_name
from noxu.apply import manager
from noxu.apply.tracker import to_parent
from noxu.go.structs import decode
from noxu.kinds.meta import SCALE
from noxu.registry import ownership, scale
from noxu.registry.bodies import CBOR, decode_body, unknown_element
from noxu.registry.builtin import SCALE_RESOURCE
from noxu.registry.draft import Configuration, Draft, NewScale
from noxu.registry.patch import ObjectPatch, invalid_patch
from noxu.registry.stored_object import object_at
from noxu.registry.write.arrive import check_name, check_namespace, report_repeated_keys
from noxu.values import Object

_EXPECTED: Final = meta.GroupVersionKind("autoscaling", "v1", "Scale")
_API_VERSION: Final = "autoscaling/v1"
_UNDECODABLE: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
"""Upstream's error for every malformed body, because the scheme of its custom resources does not contain Scale."""


def read_scale(draft: Draft) -> None:
    """The Scale in the request's body. Its kind, apiVersion and managedFields may be absent; its name may not."""
    if not draft.resource.is_custom:
        _read_typed(draft)
        return
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    codec.check_size(content)
    try:
        sent = decode_body(content, media_type, _EXPECTED, strict=True, typed=True)
    except errors.ApiError:
        raise errors.bad_request(_UNDECODABLE) from None
    if not _is_scale(sent.value):
        raise errors.bad_request(_UNDECODABLE)
    decoded = decode(SCALE, sent.value)
    complaints = _complaints(draft, sent, decoded.unknown)
    if decoded.error or (complaints and draft.request.options.field_validation == "Strict"):
        raise errors.bad_request(_UNDECODABLE)
    draft.outcome.warnings += complaints
    draft.sent = NewScale(decoded.value)  # until `set_scale`: then with the owners of its replicas
    _check_url(draft, decoded.value["metadata"])


def _read_typed(draft: Draft) -> None:
    """The Scale of a built-in kind, whose scheme contains Scale: errors are those of any other body."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    codec.check_size(content)
    validation = draft.request.options.field_validation
    sent = decode_body(content, media_type, _EXPECTED, strict=validation != "Ignore", typed=True)
    claimed = meta.GroupVersionKind(
        *meta.parse_api_version(sent.value.get("apiVersion") or _API_VERSION), str(sent.value.get("kind") or "Scale")
    )
    try:
        value, unknown = SCALE_RESOURCE.codec.decode(SCALE_RESOURCE, sent.value)
    except ValueError as error:
        raise codec.cannot_be_handled(claimed, "Scale", str(error)) from None
    if value["apiVersion"] != _API_VERSION:
        text = f"the API version in the data ({value['apiVersion']}) does not match the expected API version"
        raise errors.bad_request(f"{text} ({_API_VERSION})")
    complaints = _complaints(draft, sent, unknown)
    if complaints and validation == "Strict":
        raise codec.cannot_be_handled(claimed, "Scale", codec.strict_decoding_error(complaints))
    draft.outcome.warnings += complaints
    draft.sent = NewScale(value)
    _check_url(draft, value["metadata"])


def check_scale(draft: Draft) -> None:
    """Validate the Scale of a built-in kind (ValidateScale). That of a custom resource is validated by its schema."""
    if draft.resource.is_custom:
        return
    shown = scale.scale_of(draft.new, draft.resource)
    new = draft.sent.value if isinstance(draft.sent, NewScale) else shown
    wrong = meta.validate_object_meta(new["metadata"], namespaced=draft.resource.namespaced, name_rule=subdomain_name)
    replicas = shown["spec"].get("replicas", 0)
    if replicas < 0:
        wrong.append(field.invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    if wrong:
        raise errors.invalid(errors.Qualified("autoscaling", "Scale"), draft.request.name, wrong)


def _is_scale(value: Object) -> bool:
    """Whether an object is a Scale, or does not say what it is."""
    return (value.get("kind") or "Scale") == "Scale" and (value.get("apiVersion") or _API_VERSION) == _API_VERSION


def _check_url(draft: Draft, metadata: Object) -> None:
    """Compare the namespace and name of a Scale with the URL. Raises ApiError."""
    request = draft.request
    check_namespace(metadata, request.namespace)
    if request.namespace:
        metadata["namespace"] = request.namespace  # of the Scale, in place
    check_name(metadata, request.name)


def _complaints(draft: Draft, sent: codec.Decoded, unknown: list[str]) -> list[str]:
    """Repeated and unknown fields that fieldValidation reports."""
    if draft.request.body.media_type == CBOR and unknown:
        return [] if draft.request.options.field_validation == "Ignore" else [unknown_element(sent.value, unknown[0])]
    repeated = {"Strict": sent.strict, "Warn": sent.duplicates}.get(draft.request.options.field_validation)
    return [] if repeated is None else [*repeated, *(f'unknown field "{path}"' for path in unknown)]


def read_scale_patch(draft: Draft) -> None:
    """Decode a patch of a Scale."""
    content, media_type, _ = draft.request.body
    assert isinstance(content, bytes)
    validation = draft.request.options.field_validation
    draft.sent = ObjectPatch(media_type, content, SCALE, field_validation=validation)


def set_scale(draft: Draft) -> None:
    """Write the replicas of the sent Scale into the stored object."""
    assert isinstance(draft.sent, NewScale)
    _put(draft, _stored(draft), draft.sent.value)


def patch_scale(draft: Draft) -> None:
    """Write the replicas of the patched Scale into the stored object."""
    patch = draft.sent
    assert isinstance(patch, ObjectPatch)
    stored = _stored(draft)
    shown = ownership.owned_scale(stored, draft.resource)
    patched = patch.apply(shown)
    if not _is_scale(patched.value):
        kind, api_version = patched.value.get("kind") or "Scale", patched.value.get("apiVersion") or _API_VERSION
        raise invalid_patch(patch.text(shown), errors.no_kind_registered(kind, api_version))
    decoded = decode(SCALE, patched.value)
    complaints = _complaints(draft, patched, decoded.unknown)
    if decoded.error:
        raise invalid_patch(patch.text(shown), decoded.error)
    if complaints and draft.request.options.field_validation == "Strict":
        raise invalid_patch(patch.text(shown), codec.strict_decoding_error(complaints))
    draft.outcome.warnings += complaints
    _check_url(draft, decoded.value["metadata"])
    _put(draft, stored, decoded.value)


def merge_scale(draft: Draft) -> None:
    """Write the replicas of the applied Scale into the stored object (in upstream a forced apply fails)."""
    config = draft.sent
    assert isinstance(config, Configuration)
    stored, options = _stored(draft), draft.request.options
    live = ownership.owned_scale(stored, draft.resource)
    merged = manager.apply(
        live, config.value, ownership.SCALE, manager=options.field_manager, force=options.force, now=draft.now
    )
    report_repeated_keys(draft)
    decoded = decode(SCALE, merged.value)  # a configuration may leave out or withdraw every field
    if decoded.error:
        raise errors.plain_error(decoded.error)
    new = decoded.value
    _check_url(draft, new["metadata"])
    _put(draft, stored, new, new["metadata"].get("managedFields"))


def _stored(draft: Draft) -> Object:
    """A copy of the stored object, to be changed."""
    assert draft.stored is not None
    return object_at(draft.stored.shown, draft.resource)  # decoded for this draft: `put` changes it in place


def _put(draft: Draft, stored: Object, new: Object, owners: list[Object] | None = None) -> None:
    """Write the replicas of a Scale and their owners into the stored object. An apply passes `owners`. Raises ApiError."""
    request, resource, metadata = draft.request, draft.resource, new["metadata"]
    if owners is None:
        live = ownership.owned_scale(stored, resource)
        by = request.options.field_manager
        owners = manager.update(live, new, ownership.SCALE, manager=by, now=draft.now)["metadata"].get("managedFields")
    paths = ownership.replicas_paths(resource)
    stored["metadata"]["managedFields"] = to_parent(
        stored["metadata"].get("managedFields"), owners, resource.api_version, paths, resource.versions.recurring
    )
    scale.put(stored, resource, new)  # in place: replicas, and the resourceVersion to compare
    draft.new = stored  # the changed copy; `draft.old` is another
    draft.sent = NewScale({**new, "metadata": {**metadata, "managedFields": owners}} if owners else new)
