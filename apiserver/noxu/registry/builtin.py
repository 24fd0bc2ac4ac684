"""The kinds with a struct table: how their objects are decoded, read and written, and the strategy of built-in kinds.

They are built-in kinds (rules in their `Kind`) and CustomResourceDefinitions (rules in `noxu.crd`).
As in Go, decoding into a struct drops unknown fields. So requests are pruned when they are decoded, and stored objects
need no pruning. There is no fast path.

Upstream decodes a body as the kind that it claims, and converts the result to the resource's internal type. So a body has
the fields of its own version, and only versions of the resource's kind can be converted:

    body                                    decoded as       then
    the resource's apiVersion and kind      itself
    another version of the kind             that version     converted
    the internal version, or no apiVersion  an empty object  a body has an apiVersion by default, a patched object has not
    another kind that is known              that kind        refused: unknown conversion
    any other                                                refused: no kind is registered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Final, TypeAlias

from noxu.api import meta
from noxu.api.errors import no_kind_registered
from noxu.api.meta import GroupVersionKind, parse_api_version
from noxu.crd import types, v1beta1
from noxu.go.structs import DecodedStruct, Struct, decode
from noxu.kinds import events, scheme
from noxu.kinds.kind import (
    VIRTUAL_VERBS,
    Checker,
    Context,
    Kind,
    Subresource,
    Unevaluable,
    reset_fields,
    selected,
    written,
)
from noxu.kinds.kind import prepare as prepare_object
from noxu.kinds.meta import SCALE
from noxu.kinds.scheme import struct_of
from noxu.registry.draft import Draft
from noxu.registry.resource import BUILT_IN, DEFINITION, VIRTUAL, Codec, Resource, ScalePaths, Versions
from noxu.releases import NEWEST
from noxu.values import Object

INTERNAL: Final = "__internal"

Decoder: TypeAlias = Callable[[Object], DecodedStruct]


def decode_claimed(resource: Resource, value: Object, decoders: Mapping[str, Decoder]) -> tuple[Object, list[str]]:
    """Decode an object as the version that it claims: (the object, the paths of unknown fields).

    `decoders`: by apiVersion, those of all versions that can be converted. The object has the apiVersion that it claims.
    Raises ValueError with upstream's message.
    """
    group, version = parse_api_version(value.get("apiVersion") or "")
    kind = value.get("kind") or resource.kind
    if not version and group in ("", resource.group):
        group, version = resource.group, INTERNAL
    claimed = GroupVersionKind(group, version, kind)
    if kind == resource.kind and (decoder := decoders.get(claimed.api_version)):
        decoded = decoder(value)
        if decoded.error:
            raise ValueError(decoded.error)
        new = decoded.value
        if new.get("apiVersion") != claimed.api_version or new.get("kind") != kind:
            new = _identity(claimed) | {name: item for name, item in new.items() if name not in _IDENTITY}
        return new, decoded.unknown
    if kind == resource.kind and group == resource.group and version == INTERNAL:
        return _identity(claimed), [name for name in value if name not in _IDENTITY]  # its fields have other names
    raise ValueError(_refusal(resource, claimed))


_IDENTITY: Final = frozenset({"kind", "apiVersion"})


def _identity(claimed: GroupVersionKind) -> Object:
    return {"kind": claimed.kind, "apiVersion": claimed.api_version}


def _refusal(resource: Resource, claimed: GroupVersionKind) -> str:
    go_type = _go_type(resource, claimed)
    if not go_type:
        return no_kind_registered(claimed.kind, claimed.api_version)
    internal = "core" if resource.kind == "Event" else resource.group.partition(".")[0] or "core"
    return f"converting ({go_type}) to ({internal}.{resource.kind}): unknown conversion"


def _go_type(resource: Resource, claimed: GroupVersionKind) -> str:
    """The Go type of a kind, "" if the resource's server does not know it: that of definitions has a scheme of its own."""
    if claimed.kind in _IN_EVERY_VERSION and claimed.group in ("", resource.group):
        return f"v1.{claimed.kind}"
    if claimed.api_version == "v1" and claimed.kind in _UNVERSIONED:
        return f"v1.{claimed.kind}"
    if claimed.group == types.GROUP:
        is_known = claimed.version in ("v1", "v1beta1") and claimed.kind in _EXTENSIONS
        return f"{claimed.version}.{claimed.kind}" if is_known and resource.group == types.GROUP else ""
    if resource.group == types.GROUP:
        return ""
    struct = struct_of(claimed.api_version, claimed.kind)
    return struct.go if struct is not None else ""


_EXTENSIONS: Final = frozenset({types.KIND, f"{types.KIND}List", "ConversionReview"})
_IN_EVERY_VERSION: Final = frozenset(
    {"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
_UNVERSIONED: Final = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})


# -- kinds with a struct table ----------------------------------------------------------------------------------------


class TypedCodec:
    """Objects that are decoded into structs. `struct` is that of the resource's own version."""

    def __init__(self, struct: Struct, decoders: Mapping[str, Decoder]) -> None:
        """`decoders`: by apiVersion, those of all versions that can be converted to the resource's."""
        self.struct: Struct | None = struct
        self._decoders = decoders

    def accept(self, resource: Resource, value: Object, *, stored: bool = False, old: Object | None = None) -> bool:
        return False

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        return decode_claimed(resource, value, self._decoders)

    def prune(self, resource: Resource, value: Object) -> list[str]:
        return []  # done by `decode`

    def prune_mutated(self, resource: Resource, value: Object) -> Object:
        return self.decode(resource, value)[0]

    def read(self, resource: Resource, value: Object) -> None:
        """Objects that this server has stored were decoded when they were written."""


# -- built-in kinds ---------------------------------------------------------------------------------------------------


class BuiltInCodec(TypedCodec):
    """The codec of one built-in kind."""

    def __init__(
        self,
        kind: Kind,
        other: Kind | None = None,
        adopt: Callable[[Object], Object] = lambda value: value,
        *,
        has_foreign: bool = False,
    ) -> None:
        """`adopt` converts an object of `other`, the same kind in another group, to this one.

        `has_foreign`: stored objects may be those of other programs, so they are decoded into structs when they are read.
        """
        versions = [kind] if other is None else [kind, other]
        super().__init__(kind.struct, {version.api_version: partial(decode, version.struct) for version in versions})
        self.kind = kind
        self.unconditional_update = kind.unconditional_update
        self.create_on_update = kind.create_on_update
        self._adopt = adopt
        self._has_foreign = has_foreign

    def convert(self, resource: Resource, value: Object) -> Object:
        return self._adopt(value)

    def read(self, resource: Resource, value: Object) -> None:
        if self._has_foreign:
            decoded, _ = self.decode(resource, value)
            value.clear()  # in place: the caller holds this very dict
            value.update(decoded)

    def default(self, resource: Resource, value: Object) -> None:
        self.kind.default(value)

    def written(self, value: Object) -> Object:
        return written(self.kind, value)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        return reset_fields(self.kind, subresource)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return selected(self.kind, value)

    def unknown_field_label(self, name: str) -> str:
        if self.kind.unknown_label:
            return self.kind.unknown_label.replace("%s", name)
        labels = ", ".join(f'"{label}"' for label in (*self.kind.metadata_labels, *self.kind.selectable))
        return f'"{name}" is not a known field selector: only {labels}'


def resource_of(kind: Kind, codec: Codec) -> Resource:
    return Resource(
        type=BUILT_IN if kind.stored else VIRTUAL,
        table=kind,
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        singular=kind.singular,
        kind=kind.kind,
        list_kind=kind.list_kind,
        namespaced=kind.namespaced,
        codec=codec,
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources=frozenset(subresource.name for subresource in kind.subresources),
        scale=_scale_paths(kind),
        bodies=_bodies(kind),
        deprecation_text=kind.deprecation,
        selectable_fields=tuple(kind.selectable),
    )


def _bodies(kind: Kind) -> dict[str, Resource]:
    return {
        part.name: _body(kind, part.body, part)
        for part in kind.subresources
        if part.body is not None and (part.connect or part.verbs == VIRTUAL_VERBS)
    }


def _body(kind: Kind, struct: Struct, part: Subresource) -> Resource:
    body = Kind(
        group=part.body_group,
        version=part.body_version,
        kind=struct.name,
        struct=struct,
        plural=kind.plural,
        namespaced=kind.namespaced,
        verbs=VIRTUAL_VERBS,
    )
    resource = resource_of(body, BuiltInCodec(body))
    Versions([resource], resource)  # sets the resource's `versions`: it has a body, and no collection of its own
    return resource


def _scale_paths(kind: Kind) -> ScalePaths | None:
    declared = kind.subresource("scale")
    if declared is None or declared.scale is None:
        return None
    return ScalePaths(*(f".{declared.scale[name]}" for name in ("spec", "status", "selector")))


_SCALE_KIND: Final = Kind(
    group="autoscaling", kind="Scale", struct=SCALE, plural="scales", namespaced=True, verbs=VIRTUAL_VERBS
)
SCALE_RESOURCE: Final = resource_of(_SCALE_KIND, BuiltInCodec(_SCALE_KIND))
"""The body of the /scale of built-in kinds."""


def _autoscaler(convert: str) -> Callable[[Object], Object]:
    """A conversion of autoscalers, which are imported late: many servers have no such objects."""

    def converted(value: Object) -> Object:
        result: Object = getattr(import_module("noxu.kinds.autoscalers"), convert)(value)
        return result

    return converted


_Converter = Callable[[Object], Object]
_SEVERAL: Final[tuple[tuple[str, tuple[str, _Converter], tuple[str, _Converter]], ...]] = (
    ("Event", (events.CORE, events.to_core), (events.EVENTS, events.from_core)),
    ("HorizontalPodAutoscaler", ("autoscaling/v2", _autoscaler("to_v2")), ("autoscaling/v1", _autoscaler("to_v1"))),
)
"""The kinds that are served in two versions or groups: (the kind, the stored version, the other one), with converters."""


def built_in_versions(release: int = NEWEST, *, has_foreign: bool = False) -> list[Versions]:
    """The built-in kinds, in the order of discovery; then those with several versions.

    `release`: of Kubernetes, which decides what fields there are. `has_foreign`: other programs may have stored objects.
    """
    several = {kind for kind, _, _ in _SEVERAL}
    versions = []
    for kind in scheme.served(release):
        if kind.kind not in several:
            resource = resource_of(kind, BuiltInCodec(kind, has_foreign=has_foreign))
            versions.append(Versions([resource], resource))
    for name, (stored_version, to_stored), (other_version, to_other) in _SEVERAL:
        stored, other = (scheme.by_group_kind(release)[version, name] for version in (stored_version, other_version))
        both = [  # two views of one collection: they share its `Versions`
            resource_of(stored, BuiltInCodec(stored, other, to_stored, has_foreign=has_foreign)),
            resource_of(other, BuiltInCodec(other, stored, to_other, has_foreign=has_foreign)),
        ]
        versions.append(Versions(both, both[0]))
    return versions


# -- CustomResourceDefinitions ----------------------------------------------------------------------------------------


_DEFINITION_DECODERS: Final = {types.API_VERSION: types.decode, v1beta1.API_VERSION: v1beta1.decode}
_DEFINITION_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class DefinitionCodec(TypedCodec):
    """The codec of the resource customresourcedefinitions."""

    unconditional_update = False
    create_on_update = False

    def __init__(self) -> None:
        super().__init__(types.CRD, _DEFINITION_DECODERS)

    def read(self, resource: Resource, value: Object) -> None:
        """Convert a definition that another server stored as v1beta1; others were decoded when they were written."""
        if v1beta1.is_v1beta1(value) and (decoded := v1beta1.decode(value).value) is not None:
            value.clear()
            value.update(v1beta1.upgrade(decoded))  # the same dict with other fields

    def convert(self, resource: Resource, value: Object) -> Object:
        return v1beta1.upgrade(value) if v1beta1.is_v1beta1(value) else value

    def default(self, resource: Resource, value: Object) -> None:
        value.update(types.default(value))

    def written(self, value: Object) -> Object:
        return types.written(value)

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        return ("spec",) if subresource == "status" else ("status",)

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        return {}

    def unknown_field_label(self, name: str) -> str:
        return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def definitions_resource() -> Versions:
    resource = Resource(
        type=DEFINITION,
        group=types.GROUP,
        version=types.VERSION,
        plural=types.RESOURCE,
        singular=types.KIND.lower(),
        kind=types.KIND,
        list_kind=f"{types.KIND}List",
        namespaced=False,
        codec=DefinitionCodec(),
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        verbs=_DEFINITION_VERBS,
        subresources=frozenset({"status"}),
    )
    return Versions([resource], resource)


# -- the strategy of built-in kinds -----------------------------------------------------------------------------------


def prepare(draft: Draft) -> None:
    """Reset fields that cannot be set through this endpoint, and set those that the server determines."""
    prepare_object(_table(draft), draft.new, draft.old, _context(draft))  # changes the draft's object in place


def validate(draft: Draft) -> None:
    """All errors of an object, in upstream's order."""
    new, old, table, outcome = draft.new, draft.old, _table(draft), draft.outcome
    if table.stored:
        outcome.errors += meta.validate_object_meta(
            new["metadata"], namespaced=table.namespaced, name_rule=table.rule_of_name(new)
        )
    if old is not None:
        outcome.errors += meta.validate_object_meta_update(new["metadata"], old["metadata"])
    strict = draft.request.options.field_validation == "Strict"
    for error in table.validate(new, old, _context(draft)):
        if strict or not isinstance(error, Unevaluable):
            outcome.errors.append(error)
        else:
            outcome.warnings.append(" ".join(str(error).split()))
    if not outcome.errors:
        outcome.warnings += table.warnings(new, old)


def _context(draft: Draft) -> Context:
    user = draft.request.user
    attributes = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    extra = {name: list(values) for name, values in user.extra}
    return Context(
        draft.request.subresource,
        Checker(draft.request.features.release),
        draft.now,
        attributes | ({"extra": extra} if extra else {}),
    )


def _table(draft: Draft) -> Kind:
    table = draft.resource.table
    assert table is not None, draft.resource.kind
    return table


# -- namespaces -------------------------------------------------------------------------------------------------------


def held(namespace: Object) -> bool:
    """Whether a namespace has finalizers in its spec."""
    return bool((namespace.get("spec") or {}).get("finalizers"))


def begin_delete_namespace(namespace: Object, now: str, finalizers: list[str]) -> bool:
    """Mark a namespace as being deleted; whether it remains, because this is its first deletion, or finalizers hold it.

    As upstream (registry/core/namespace/storage), the first deletion never removes a namespace, and further ones change
    nothing while it has finalizers in its spec.
    """
    metadata = namespace["metadata"]
    if metadata.get("deletionTimestamp"):
        return held(namespace)
    metadata["deletionTimestamp"] = now  # in place
    namespace.setdefault("status", {})["phase"] = "Terminating"  # in place: the caller's copy
    if set(finalizers) != set(metadata.get("finalizers") or ()):
        metadata["finalizers"] = finalizers  # a new list, which no other object has
    return True
