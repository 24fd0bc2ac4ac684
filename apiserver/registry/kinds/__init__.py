"""The built-in kinds, each described as data: its names and verbs, the struct of its objects, its few rules.

Upstream gives every kind a strategy in Go; what the strategies of these kinds really do differently fits into the
fields of `Kind`. Nothing here does I/O or looks at a clock. Objects are dicts as `apiserver.api.structs` decodes them:
types are right, what Go writes by value is there, empty optional fields are not.

Rules that write (`default`, `complete`, `prepare`) change objects in place and do not care for the order of keys;
`written` puts them in the order of declaration, as Go writes them. Rules that judge leave out what holds for every kind:
metadata is `apiserver.api.meta`'s business, with the `name_rule` told here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from apiserver.api.errors import Qualified
from apiserver.api.field import FieldError, Verbatim
from apiserver.api.gotext import compact_json
from apiserver.api.names import NameRule, subdomain_name
from apiserver.api.structs import Struct, decode
from apiserver.api.types import Json, Object
from apiserver.api.values import equal

STORED: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
VIRTUAL: Final = ("create",)
"""A virtual resource answers a question: it is created, answered and forgotten."""

METADATA_OF_STATUS: Final = tuple(
    f"metadata.{name}"
    for name in (
        "deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"
    )
)  # fmt: skip
"""What an update of /status leaves alone (meta/v1 ResetObjectMetaForStatus)."""


class Use(NamedTuple):
    """What a CEL expression is there for: what it must evaluate to, and what it may name."""

    result: Literal["bool", "string", "string or null", "any", "ApplyConfiguration", "JSONPatch"]
    params: bool = False
    authorizer: bool = True
    variables: tuple[tuple[str, str], ...] = ()
    """(name, expression) of those composed before it."""
    stored: bool = False
    """The stored object has the same expression: what was allowed when it was written is allowed."""


CheckExpression: TypeAlias = Callable[[str, Use], str]
"""(expression, use) → what is wrong with it, an empty text if nothing is."""


def no_check(expression: str, use: Use) -> str:  # noqa: ARG001
    """CEL is judged elsewhere."""
    return ""


class Context(NamedTuple):
    """What judging may have to know beside the objects."""

    subresource: str = ""
    check: CheckExpression = no_check


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subresource:
    """`kept`: what an update through it cannot change. `body`: what it takes and gives, if that is another kind."""

    name: str
    verbs: tuple[str, ...]
    kept: tuple[str, ...] = ()
    body: Struct | None = None
    body_group: str = ""


def as_json(value: Json) -> Verbatim:
    """How errors print a value that is no plain string in Go: a struct, or text with a type of its own."""
    return Verbatim(compact_json(value, sort_keys=False))


def _nothing(value: Object) -> None: ...


def _not_completed(new: Object, old: Object | None, subresource: str) -> None: ...


def valid(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
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
    """May an update leave out the resourceVersion?"""
    create_on_update: bool = False
    """Does an update of what is not there create it?"""
    generation: str = ""
    """The field whose changes metadata.generation counts; generations are not counted where there is none."""
    fresh: tuple[str, ...] = ()
    """What a new object begins without, whatever was sent."""
    kept: tuple[str, ...] = ()
    """What an update of the object itself cannot change."""
    lifetime: int = 0
    """Seconds after which an object that was not written again is deleted; 0: never."""
    selectable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of field selectors beside metadata.name and metadata.namespace, and where the value stands: the first
    path that holds something counts."""
    default: Callable[[Object], None] = _nothing
    """Fill in what was left out; also when an object is read that an older server wrote. Idempotent."""
    complete: Callable[[Object, Object | None, str], None] = _not_completed
    """(new, old, subresource): what the server decides when it writes, beside `fresh`, `kept` and `generation`."""
    validate: Callable[[Object, Object | None, Context], list[FieldError]] = valid
    """(new, old, context): upstream's field errors, in upstream's order."""
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
        """How error texts name the resource."""
        return Qualified(self.group, self.plural)

    @property
    def stored(self) -> bool:
        return self.verbs != VIRTUAL

    @property
    def has_status(self) -> bool:
        return any(one.name == "status" for one in self.subresources)


def prepare(kind: Kind, new: Object, old: Object | None, subresource: str = "") -> None:
    """Reset what the caller may not set, complete what the server decides, count the generation; in place."""
    if old is None:
        for path in kind.fresh:
            _put(new, path, None)
    else:
        for path in _kept(kind, subresource):
            _put(new, path, look_up(old, path))
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


def look_up(value: Json, path: str) -> Json:
    """What stands at a path of plain names, None if nothing does."""
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _put(value: Object, path: str, given: Json) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        value = value.setdefault(parent, {})
    if given is None:
        value.pop(name, None)
    else:
        value[name] = given


def selected(kind: Kind, value: Object) -> dict[str, str]:
    """What field selectors see of an object, beside its name and namespace."""
    return {
        label: next((str(found) for path in paths if (found := look_up(value, path))), "")
        for label, paths in kind.selectable.items()
    }


def written(kind: Kind, value: Object) -> Object:
    """The object with its fields in the order of declaration, and those there that Go always writes."""
    ordered: Object = decode(kind.struct, value).value
    return ordered


@cache
def served() -> tuple[Kind, ...]:
    """All of them, in the order of discovery. The tables are made when first asked for: not at start-up."""
    from apiserver.registry.kinds import (
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
    """By (apiVersion, kind)."""
    return {(kind.api_version, kind.kind): kind for kind in served()}


@lru_cache(maxsize=256)
def struct_of(api_version: str, kind: str) -> Struct | None:
    """The table of what a client may send or be sent beside custom resources: for `apiserver.api.protobuf`.

    The options and answers of meta/v1 are known in every group, as upstream registers them.
    """
    from apiserver.crd import types as crd
    from apiserver.registry.kinds import authentication, autoscaling, core, discovery, meta, options

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
