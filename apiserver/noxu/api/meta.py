"""ObjectMeta: its fields, coercion, validation and warnings.

Coercion is apiextensions' objectmeta package, validation k8s.io/apimachinery's api/validation, the warnings are those
of the custom resource strategy and of the request handlers; messages, order and repetitions are upstream's. Everything
but `coerce` expects coerced metadata, a dict in which no field has the wrong type.

`is_coerced` tells quickly whether metadata already has the form that coercion gives it, which it nearly always has. It
has a predicate per field, about the type and about the values that coercion would drop: empty texts and lists, zero.
The order of fields does not matter: custom resources are written with sorted keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from noxu.api.field import (
    FieldError,
    Path,
    Verbatim,
    child,
    forbidden,
    index,
    invalid,
    not_supported,
    required,
    too_long,
)
from noxu.api.names import (
    SUBDOMAIN,
    NameRule,
    are_labels,
    is_label,
    is_qualified_name,
    label_name,
    label_value,
    path_segment_name,
    qualified_name,
    subdomain_name,
)
from noxu.go import json as go_json
from noxu.go.structs import (
    BOOL,
    INT64,
    JSON,
    STRING,
    TIME,
    UID,
    Field,
    List,
    Map,
    Presence,
    Struct,
    arrange,
    decode,
    named,
)
from noxu.go.text import compact_json, quote
from noxu.go.time import is_normal_time
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

_NOTHING: Final[Object] = {}


def is_coerced(metadata: Json, old: Object = _NOTHING) -> bool:
    """Whether every field is known and in its final form. Those that are the same object in `old` are in that form."""
    return type(metadata) is dict and _in_shape(metadata, _OBJECT_META, old)


def _in_shape(value: Object, shape: Shape, old: Object = _NOTHING) -> bool:
    for name, item in value.items():
        if old and item is old.get(name, _NOTHING):
            continue
        check = shape.get(name)
        if check is None or not check(item):
            return False
    return True


def _is_nonempty_string(value: Json) -> bool:
    return type(value) is str and value != ""


def _is_list_of_strings(value: Json) -> bool:
    return type(value) is list and {*map(type, value)} == {str}


def _is_map_of_strings(value: Json) -> bool:
    return type(value) is dict and {*map(type, value.values())} == {str}


def _is_time(value: Json) -> bool:
    return type(value) is str and is_normal_time(value)


def _are_owner_references(value: Json) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(
            type(owner) is dict and owner.keys() >= _REQUIRED_OF_OWNER and _in_shape(owner, _OWNER_REFERENCE)
            for owner in value
        )
    )


def _are_managed_fields(value: Json) -> bool:
    return (
        type(value) is list
        and len(value) > 0
        and all(type(e) is dict and _in_shape(e, _MANAGED_FIELDS_ENTRY) for e in value)
    )


Shape: TypeAlias = dict[str, Callable[[Json], bool]]
_REQUIRED_OF_OWNER: Final = frozenset({"apiVersion", "kind", "name", "uid"})
_OWNER_REFERENCE: Final[Shape] = {
    **dict.fromkeys(_REQUIRED_OF_OWNER, _is_nonempty_string),
    "controller": lambda value: type(value) is bool,
    "blockOwnerDeletion": lambda value: type(value) is bool,
}
_MANAGED_FIELDS_ENTRY: Final[Shape] = {
    **dict.fromkeys(["manager", "operation", "apiVersion", "fieldsType", "subresource"], _is_nonempty_string),
    "time": _is_time,
    "fieldsV1": lambda value: type(value) is dict,
}
_OBJECT_META: Final[Shape] = {
    **dict.fromkeys(["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"], _is_nonempty_string),
    "generation": lambda value: type(value) is int and MIN_INT64 <= value <= MAX_INT64 and value != 0,
    "creationTimestamp": _is_time,
    "deletionTimestamp": _is_time,
    "deletionGracePeriodSeconds": lambda value: type(value) is int and MIN_INT64 <= value <= MAX_INT64,
    "labels": _is_map_of_strings,
    "annotations": _is_map_of_strings,
    "ownerReferences": _are_owner_references,
    "finalizers": _is_list_of_strings,
    "managedFields": _are_managed_fields,
}


# -- meta -------------------------------------------------------------------------------------------------------------


METADATA: Final[Path] = "metadata"

OWNER_REFERENCE: Final = Struct("OwnerReference").define(
    Field("apiVersion", STRING, 5, Presence.ALWAYS),
    Field("kind", STRING, 1, Presence.ALWAYS),
    Field("name", STRING, 3, Presence.ALWAYS),
    Field("uid", UID, 4, Presence.ALWAYS),
    Field("controller", BOOL, 6, Presence.POINTER),
    Field("blockOwnerDeletion", BOOL, 7, Presence.POINTER),
)
MANAGED_FIELDS_ENTRY: Final = Struct("ManagedFieldsEntry").define(
    Field("manager", STRING, 1),
    Field("operation", named("v1.ManagedFieldsOperationType"), 2),
    Field("apiVersion", STRING, 3),
    Field("time", TIME, 4, Presence.POINTER),
    Field("fieldsType", STRING, 6),
    Field("fieldsV1", JSON, 7, Presence.POINTER),
    Field("subresource", STRING, 8),
)
OBJECT_META: Final = Struct("ObjectMeta").define(
    Field("name", STRING, 1),
    Field("generateName", STRING, 2),
    Field("namespace", STRING, 3),
    Field("selfLink", STRING, 4),
    Field("uid", UID, 5),
    Field("resourceVersion", STRING, 6),
    Field("generation", INT64, 7),
    Field("creationTimestamp", TIME, 8),
    Field("deletionTimestamp", TIME, 9, Presence.POINTER),
    Field("deletionGracePeriodSeconds", INT64, 10, Presence.POINTER),
    Field("labels", Map(STRING), 11),
    Field("annotations", Map(STRING), 12),
    Field(
        "ownerReferences",
        List(OWNER_REFERENCE),
        13,
        patch="merge",
        merge_key="uid",
        list_type="map",
        list_keys=("uid",),
    ),
    Field("finalizers", List(STRING), 14, patch="merge", list_type="set"),
    Field("managedFields", List(MANAGED_FIELDS_ENTRY), 17, list_type="atomic"),
)

FINALIZER_ORPHAN: Final = "orphan"
FINALIZER_FOREGROUND: Final = "foregroundDeletion"
_EXCLUSIVE_FINALIZERS: Final = frozenset({FINALIZER_ORPHAN, FINALIZER_FOREGROUND})
_STANDARD_FINALIZERS: Final = frozenset({FINALIZER_ORPHAN, FINALIZER_FOREGROUND, "kubernetes"})
MAX_ANNOTATIONS: Final = 256 * 1024  # bytes of all keys and values
MAX_MANAGER: Final = 128  # bytes of a field manager's name
MAX_SUBRESOURCE: Final = 256
MAX_GENERATED_BASE: Final = 58  # bytes of a generateName that are kept; five random characters follow
IMMUTABLE: Final = "field is immutable"


class GroupVersionKind(NamedTuple):
    """A kind in a version of its group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def parse_api_version(text: str) -> tuple[str, str]:
    """`group/version` or `version`; `/` is empty. Raises ValueError for more than one slash."""
    if text.count("/") > 1:
        raise ValueError(f"unexpected GroupVersion string: {text}")
    group, _, version = text.rpartition("/")
    return group, version


class Coerced(NamedTuple):
    """Metadata in the order of declaration without empty fields, and the paths of unknown fields that were dropped."""

    metadata: Object
    unknown: list[str]


def coerce(metadata: Json, *, path: Path = METADATA, drop_malformed: bool = False) -> Coerced:
    """Bring metadata into the form of ObjectMeta; null is empty metadata. Metadata in that form is returned itself.

    Raises ValueError with Go's message for a field of the wrong type. With `drop_malformed` (objects read from storage)
    such a field is dropped, and only metadata that is not an object is an error.
    """
    if is_coerced(metadata):
        return Coerced(metadata, [])
    result = decode(OBJECT_META, metadata)
    if not result.error and not result.unknown:
        return Coerced(result.value or {}, [])
    # Upstream goes through JSON with sorted keys: that decides which error comes first, and makes 3.0 an integer.
    rewritten = go_json.read(compact_json(metadata).encode()).value
    result = decode(OBJECT_META, rewritten)
    if result.error and not drop_malformed:
        raise ValueError(result.error)
    if result.error and not isinstance(metadata, dict):
        raise ValueError(f"invalid metadata: expected object, got {_go_type(metadata)}")
    if result.error:
        fields = [decode(OBJECT_META, {name: value}) for name, value in rewritten.items()]
        good = {name: value for read in fields if not read.error for name, value in read.value.items()}
        return Coerced(arrange(OBJECT_META, good), [])
    return Coerced(result.value, [f"{path}.{unknown}" for unknown in result.unknown])


def _go_type(value: Json) -> str:
    if isinstance(value, list):
        return "[]interface {}"
    return {str: "string", bool: "bool", int: "int64"}.get(type(value), "float64")


def generate_name(base: str, suffix: str) -> str:
    """A name from `generateName`; `suffix` is five random characters."""
    if len(base) > MAX_GENERATED_BASE or not base.isascii():
        base = go_json.string_of(base.encode("utf-8", "surrogatepass")[:MAX_GENERATED_BASE])
    return base + suffix


def validate_object_meta(
    metadata: Object, *, namespaced: bool, name_rule: NameRule = subdomain_name, path: Path = METADATA
) -> list[FieldError]:
    """The errors in the metadata of a new object, whose name has been generated already."""
    return _validate_identity(metadata, namespaced, name_rule, path) + _validate_parts(metadata, path, _PARTS)


def validate_object_meta_update(new: Object, old: Object, *, path: Path = METADATA) -> list[FieldError]:
    """The errors in the metadata of an updated built-in object. Custom resources: `validate_update`."""
    return _validate_change(new, old, path) + _validate_parts(new, path, _UPDATED_PARTS)


class UpdateErrors(NamedTuple):
    """`generic` errors come first; `own` ones after the checks of kind and apiVersion, before the schema's errors."""

    generic: list[FieldError]
    own: list[FieldError]


def validate_update(new: Object, old: Object, *, namespaced: bool, path: Path = METADATA) -> UpdateErrors:
    """The errors in the metadata of an updated custom resource.

    Upstream checks it three times and reports each error as often: as if the object were new (with the rule for path
    segments), as an update, and again as an update in the resource's own strategy. A Status has a cause for each; its
    message has equal texts once.
    """
    change = _validate_change(new, old, path)
    if not change and is_sound(new, namespaced=namespaced):
        return UpdateErrors([], [])
    parts = _validate_parts(new, path, _UPDATED_PARTS)
    own = change + parts if change or parts else []
    identity = _validate_identity(new, namespaced, path_segment_name, path)
    finalizers = _validate_parts(new, path, _FINALIZERS)
    if not (own or identity or finalizers):
        return UpdateErrors([], [])
    return UpdateErrors(identity + _validate_parts(new, path, _PARTS) + own, own)


def is_sound(metadata: Object, *, namespaced: bool) -> bool:
    """The fast path of `validate_object_meta`: True if one look shows that it would find nothing; False says nothing.

    It knows what most objects have: a name, a namespace, labels, annotations, finalizers, and managedFields as this server
    writes them. Metadata that it accepts has no errors in an update, either, whose rule for names is weaker.
    """
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if type(name) is not str or not SUBDOMAIN.fullmatch(name) or not _COMMON_METADATA.issuperset(metadata):
        return False
    if namespaced:
        if type(namespace) is not str or not is_label(namespace):
            return False
    elif namespace:
        return False
    for part, check in _SOUND_PARTS.items():
        if (value := metadata.get(part)) and not check(value):
            return False
    return bool((metadata.get("generation") or 0) >= 0)


_COMMON_METADATA: Final = frozenset({
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels", "annotations", "finalizers",
    "managedFields",
})  # fmt: skip
_FIELD_OPERATIONS: Final = frozenset({"Apply", "Update"})


def _are_sound_annotations(annotations: dict[str, str]) -> bool:
    size = 0
    for name, value in annotations.items():
        if not is_qualified_name(name.lower()) or not (name.isascii() and value.isascii()):
            return False
        size += len(name) + len(value)
    return size <= MAX_ANNOTATIONS


def _are_sound_finalizers(finalizers: list[str]) -> bool:
    return all(map(is_qualified_name, finalizers)) and not _EXCLUSIVE_FINALIZERS.issubset(finalizers)


def _are_sound_managed_fields(entries: list[Object]) -> bool:
    for entry in entries:
        if entry.get("operation") not in _FIELD_OPERATIONS or entry.get("fieldsType") != "FieldsV1":
            return False
        manager, subresource = entry.get("manager") or "", entry.get("subresource") or ""
        if len(manager) > MAX_MANAGER or not (manager.isascii() and manager.isprintable()):
            return False
        if len(subresource) > MAX_SUBRESOURCE or not subresource.isascii():
            return False
    return True


_SOUND_PARTS: Final[dict[str, Callable[[Json], bool]]] = {
    "labels": are_labels,
    "annotations": _are_sound_annotations,
    "finalizers": _are_sound_finalizers,
    "managedFields": _are_sound_managed_fields,
}


def _validate_identity(metadata: Object, namespaced: bool, name_rule: NameRule, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if prefix := metadata.get("generateName"):
        errors += [invalid(child(path, "generateName"), prefix, why) for why in name_rule(prefix, True)]
    if name := metadata.get("name"):
        errors += [invalid(child(path, "name"), name, why) for why in name_rule(name, False)]
    else:
        errors.append(required(child(path, "name"), "name or generateName is required"))
    if namespace := metadata.get("namespace"):
        if namespaced:
            errors += [invalid(child(path, "namespace"), namespace, why) for why in label_name(namespace)]
        else:
            errors.append(forbidden(child(path, "namespace"), "not allowed on this type"))
    elif namespaced:
        errors.append(required(child(path, "namespace")))
    errors += _nonnegative_generation(metadata, path)
    return errors


def _validate_change(new: Object, old: Object, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _no_new_finalizers(
            new.get("finalizers") or [], old.get("finalizers") or [], child(path, "finalizers")
        )
    if not new.get("resourceVersion"):
        errors.append(invalid(child(path, "resourceVersion"), "", "must be specified for an update"))
    errors += _nonnegative_generation(new, path)
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        errors.append(invalid(child(path, "generation"), generation, "must not be decremented"))
    for name, zero in _IMMUTABLE_FIELDS.items():
        if new.get(name, zero) != old.get(name, zero):
            errors.append(invalid(child(path, name), new.get(name, zero), IMMUTABLE))
    return errors


_IMMUTABLE_FIELDS: Final[dict[str, Json]] = {
    "name": "",
    "namespace": "",
    "uid": "",
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
}


def _nonnegative_generation(metadata: Object, path: Path) -> list[FieldError]:
    generation = metadata.get("generation") or 0
    if generation >= 0:
        return []
    return [invalid(child(path, "generation"), generation, "must be greater than or equal to 0")]


def _no_new_finalizers(new: list[str], old: list[str], path: Path) -> list[FieldError]:
    added = sorted(set(new).difference(old))
    if not added:
        return []
    listed = "[]string{" + ", ".join(map(quote, added)) + "}"
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
    return [forbidden(path, why)]


def validate_labels(labels: dict[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in labels.items():
        errors += [invalid(path, name, why) for why in qualified_name(name)]
        errors += [invalid(path, value, why) for why in label_value(value)]
    return errors


def validate_annotations(annotations: dict[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for name, value in annotations.items():
        errors += [invalid(path, name, why) for why in qualified_name(name.lower())]
        size += _bytes(name) + _bytes(value)
    if size > MAX_ANNOTATIONS:
        errors.append(too_long(path, MAX_ANNOTATIONS))
    return errors


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def validate_owner_references(references: list[Object], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    first = ""
    for n, reference in enumerate(references):
        errors += _validate_owner_reference(reference, index(path, n))
        if reference.get("controller"):
            controller = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if first:
                why = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {controller}'
                )
                errors.append(invalid(path, _as_declared(references), why))
            else:
                first = controller
    return errors


def _validate_owner_reference(reference: Object, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = reference.get("apiVersion") or ""
    try:
        group, version = parse_api_version(api_version)
    except ValueError:
        group, version = "", ""
    if not api_version:
        errors.append(required(child(path, "apiVersion"), "must not be empty"))
    elif not version:
        errors.append(invalid(child(path, "apiVersion"), api_version, "must be <group>/<version> or <version>"))
    errors += [
        required(child(path, name), "must not be empty") for name in ("kind", "name", "uid") if not reference.get(name)
    ]
    if (group, version, reference.get("kind")) == ("", "v1", "Event"):
        why = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(invalid(path, _as_declared(reference), why))
    return errors


def _as_declared(value: Json) -> Json:
    """One or more owner references as Go prints the structs: fields in the order of declaration."""
    kind = List(OWNER_REFERENCE) if isinstance(value, list) else OWNER_REFERENCE
    return Verbatim(compact_json(decode(kind, value).value, sort_keys=False))


def validate_finalizers(finalizers: list[str], path: Path) -> list[FieldError]:
    errors = [invalid(path, finalizer, why) for finalizer in finalizers for why in qualified_name(finalizer)]
    if FINALIZER_ORPHAN in finalizers and FINALIZER_FOREGROUND in finalizers:
        why = f"finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set"
        errors.append(invalid(path, finalizers, why))
    return errors


def validate_managed_fields(entries: list[Object], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for n, entry in enumerate(entries):
        where = index(path, n)
        operation = entry.get("operation")
        if not operation:
            errors.append(required(child(where, "operation"), "must not be empty"))
        elif operation not in ("Apply", "Update"):
            errors.append(not_supported(child(where, "operation"), operation, ["Apply", "Update"]))
        fields_type = entry.get("fieldsType")
        if fields_type and fields_type != "FieldsV1":
            errors.append(invalid(child(where, "fieldsType"), fields_type, "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager") or "", child(where, "manager"))
        if _bytes(entry.get("subresource") or "") > MAX_SUBRESOURCE:
            errors.append(too_long(child(where, "subresource"), MAX_SUBRESOURCE))
    return errors


_MAX_EXAMINED: Final = 2 * MAX_MANAGER
"""Characters of a manager whose characters are examined: each error quotes the whole name."""


def validate_field_manager(manager: str, path: Path) -> list[FieldError]:
    """The rule for a manager's name, also in the `fieldManager` parameter."""
    errors = [too_long(path, MAX_MANAGER)] if _bytes(manager) > MAX_MANAGER else []
    if manager.isprintable() or len(manager) > _MAX_EXAMINED:
        return errors
    position = 0
    for char in manager:
        if not char.isprintable():
            why = f"invalid character U+{ord(char):04X} (at position {position})"
            errors.append(invalid(path, manager, why))
        position += _bytes(char)
    return errors


_Part = Callable[[Json, Path], list[FieldError]]
_UPDATED_PARTS: Final[dict[str, _Part]] = {
    "labels": validate_labels,
    "annotations": validate_annotations,
    "ownerReferences": validate_owner_references,
    "managedFields": validate_managed_fields,
}
_FINALIZERS: Final[dict[str, _Part]] = {"finalizers": validate_finalizers}
_PARTS: Final[dict[str, _Part]] = {
    "labels": validate_labels,
    "annotations": validate_annotations,
    "ownerReferences": validate_owner_references,
    "finalizers": validate_finalizers,
    "managedFields": validate_managed_fields,
}


def _validate_parts(metadata: Object, path: Path, parts: dict[str, _Part]) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, validate in parts.items():
        if value := metadata.get(name):
            errors += validate(value, child(path, name))
    return errors


def finalizer_warnings(new: Object, old: Object | None = None) -> list[str]:
    """Warnings about the names of finalizers that a write adds."""
    warnings = []
    for name in sorted(set(new.get("finalizers") or []).difference((old or {}).get("finalizers") or [])):
        about = f"metadata.finalizers: {quote(name)}"
        warnings += [f"{about}: {why}" for why in qualified_name(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            form = "name including a path (/)" if "." in name else "name"
            warnings.append(
                f"{about}: prefer a domain-qualified finalizer {form} "
                "to avoid accidental conflicts with other finalizer writers"
            )
    return warnings


def drop_duplicate_owners(metadata: Object, *, after_admission: bool) -> list[str]:
    """Remove repeated owner references, in place; a list with the warning about it, or without.

    Creates and updates do this before and after mutating admission, patches only afterwards.
    """
    references = metadata.get("ownerReferences")
    if not references or len(references) < 2:
        return []
    unique: dict[tuple[Json, ...], Object] = {}
    repeated: list[str] = []
    for reference in references:
        identity = tuple(reference.get(name) for name in OWNER_REFERENCE.fields)
        if identity in unique:
            repeated.append(reference.get("uid", ""))
        unique.setdefault(identity, reference)
    if not repeated:
        return []
    metadata["ownerReferences"] = list(unique.values())
    return [_duplicate_owners(repeated, after_admission=after_admission)]


def _duplicate_owners(uids: Iterable[str], *, after_admission: bool) -> str:
    when = " after mutating admission happens" if after_admission else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(uids)}"
    )
