"""The built-in kinds as data: their names and verbs, the structs of their objects, and their few rules.

Upstream has a strategy in Go for every kind; the differences between those of these kinds fit into the fields of `Kind`.
There is no I/O and no clock. Objects are dicts as `noxu.apiserver.go.structs` decodes them: types are right, fields that
Go writes by value are present, empty optional fields are not.

Rules that write (`default`, `complete`, `prepare`) change objects in place, and ignore the order of keys; `written` sorts
them in the order of declaration, as Go writes them. Rules that validate leave out what holds for every kind:
`noxu.apiserver.api.meta` validates metadata, with the kind's `name_rule`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from noxu.apiserver.api.errors import Qualified
from noxu.apiserver.api.field import FieldError, Verbatim
from noxu.apiserver.api.names import NameRule, subdomain_name
from noxu.apiserver.go.structs import Struct, decode
from noxu.apiserver.go.text import compact_json
from noxu.apiserver.values import Json, Object, equal, nested_field

STORED: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
VIRTUAL: Final = ("create",)
"""The verbs of virtual resources, which are answered, but not stored."""

METADATA_OF_STATUS: Final = tuple(
    f"metadata.{name}"
    for name in (
        "deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"
    )
)  # fmt: skip
"""The metadata that an update of /status does not change (meta/v1 ResetObjectMetaForStatus)."""


class Use(NamedTuple):
    """The use of a CEL expression: the type of its result, and the names that it may contain."""

    result: Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]
    params: bool = False
    authorizer: bool = True
    variables: tuple[tuple[str, str], ...] = ()
    """(name, expression) of the variables composed before it."""
    stored: bool = False
    """The stored object has the same expression: features that were allowed then still are."""


CheckExpression: TypeAlias = Callable[[str, Use], str]
"""(expression, use) → its error, "" if it has none."""


def no_check(expression: str, use: Use) -> str:  # noqa: ARG001
    """For callers that do not check CEL."""
    return ""


class Context(NamedTuple):
    """What validation may need besides the objects."""

    subresource: str = ""
    check: CheckExpression = no_check


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subresource:
    """`kept` are the fields that an update through it does not change; `body` is its struct if that is of another kind."""

    name: str
    verbs: tuple[str, ...]
    kept: tuple[str, ...] = ()
    body: Struct | None = None
    body_group: str = ""


def as_json(value: Json) -> Verbatim:
    """A value in errors that is a struct in Go, or a string whose type has a name."""
    return Verbatim(compact_json(value, sort_keys=False))


def _nothing(value: Object) -> None: ...


def _not_completed(new: Object, old: Object | None, subresource: str) -> None: ...


def valid(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    """The validation of a kind without rules."""
    return []


def _no_warnings(new: Object, old: Object | None) -> list[str]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One version of one built-in kind."""

    group: str
    version: str = "v1"
    struct: Struct
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STORED
    subresources: tuple[Subresource, ...] = ()
    name_rule: NameRule = subdomain_name
    unconditional_update: bool = True
    """Whether an update may leave out the resourceVersion."""
    create_on_update: bool = False
    """Whether an update creates a missing object."""
    generation: str = ""
    """The field whose changes metadata.generation counts; "" if the kind has no generations."""
    fresh: tuple[str, ...] = ()
    """The fields that are removed from a new object."""
    kept: tuple[str, ...] = ()
    """The fields that an update of the object itself does not change."""
    lifetime: int = 0
    """Seconds after its last write when an object is deleted; 0: never."""
    selectable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field labels besides metadata.name and metadata.namespace, with the paths of their values: the first one that is set
    is used."""
    default: Callable[[Object], None] = _nothing
    """Fill in defaults; also in an object from storage that an older server wrote. Idempotent."""
    complete: Callable[[Object, Object | None, str], None] = _not_completed
    """(new, old, subresource): set fields that the server controls, besides `fresh`, `kept` and `generation`."""
    validate: Callable[[Object, Object | None, Context], list[FieldError]] = valid
    """(new, old, context) → upstream's field errors, in upstream's order."""
    warnings: Callable[[Object, Object | None], list[str]] = _no_warnings

    @property
    def kind(self) -> str:
        return self.struct.name

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def what(self) -> Qualified:
        """The resource in messages."""
        return Qualified(self.group, self.plural)

    @property
    def stored(self) -> bool:
        return self.verbs != VIRTUAL

    @property
    def has_status(self) -> bool:
        return any(one.name == "status" for one in self.subresources)


def prepare(kind: Kind, new: Object, old: Object | None, subresource: str = "") -> None:
    """Reset fields that clients may not set, set those that the server controls, count the generation; in place."""
    if old is None:
        for path in kind.fresh:
            _put(new, path, None)
    else:
        for path in _kept(kind, subresource):
            _put(new, path, nested_field(old, path))
    kind.complete(new, old, subresource)
    metadata = new.setdefault("metadata", {})
    if not kind.generation:
        metadata.pop("generation", None)
    elif old is None:
        metadata["generation"] = 1
    else:
        before = old["metadata"].get("generation", 0)
        changed = not equal(new.get(kind.generation), old.get(kind.generation))
        metadata["generation"] = before + 1 if changed else before


def _kept(kind: Kind, subresource: str) -> tuple[str, ...]:
    return next((one.kept for one in kind.subresources if one.name == subresource), kind.kept)


def _put(value: Object, path: str, given: Json) -> None:
    """Set a nested field, or remove it if `given` is None."""
    *parents, name = path.split(".")
    for parent in parents:
        value = value.setdefault(parent, {})
    if given is None:
        value.pop(name, None)
    else:
        value[name] = given


def selected(kind: Kind, value: Object) -> dict[str, str]:
    """The values of an object's field labels, besides name and namespace."""
    return {
        label: next((str(found) for path in paths if (found := nested_field(value, path))), "")
        for label, paths in kind.selectable.items()
    }


def written(kind: Kind, value: Object) -> Object:
    """The object with its fields in the order of declaration, including those that Go always writes."""
    ordered: Object = decode(kind.struct, value).value
    return ordered


@cache
def served() -> tuple[Kind, ...]:
    """All kinds, in the order of discovery. The tables are imported by the first call, not at start-up."""
    from noxu.apiserver.kinds import (
        admissionregistration,
        authentication,
        authorization,
        coordination,
        core,
        events,
        services,
    )

    modules = (core, services, admissionregistration, authentication, authorization, coordination, events)
    return tuple(kind for module in modules for kind in module.KINDS)


@cache
def by_group_kind() -> dict[tuple[str, str], Kind]:
    """All kinds by (apiVersion, kind)."""
    return {(kind.api_version, kind.kind): kind for kind in served()}


@lru_cache(maxsize=256)
def struct_of(api_version: str, kind: str) -> Struct | None:
    """The struct of a kind in requests and responses other than custom resources: for `noxu.apiserver.api.protobuf`.

    The options and Status of meta/v1 are known in every group, as upstream registers them.
    """
    from noxu.apiserver.crd import types as crd
    from noxu.apiserver.kinds import authentication, autoscaling, core, discovery, meta, options

    found = by_group_kind().get((api_version, kind))
    if found is not None:
        return found.struct
    item = by_group_kind().get((api_version, kind.removesuffix("List")))
    if item is not None and item.stored:
        return meta.list_of(item.struct)
    others = {
        "v1": (meta.STATUS, core.LIST, discovery.API_GROUP, discovery.API_GROUP_LIST, discovery.API_RESOURCE_LIST,
               discovery.API_VERSIONS),
        "meta.k8s.io/v1": (meta.STATUS, meta.PARTIAL_OBJECT_METADATA, meta.PARTIAL_OBJECT_METADATA_LIST),
        "autoscaling/v1": (autoscaling.SCALE,),
        "authentication.k8s.io/v1": (authentication.TOKEN_REQUEST,),
        crd.API_VERSION: (crd.CRD, meta.list_of(crd.CRD)),
        "apidiscovery.k8s.io/v2": (discovery.API_GROUP_DISCOVERY_LIST,),
    }  # fmt: skip
    named = {struct.name: struct for struct in (*others.get(api_version, ()), *options.ALL)}
    return named.get(kind)
