"""A built-in kind as data: its names and verbs, the structs of its objects, and its few rules.

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
from typing import Final, NamedTuple

from noxu.apiserver.api.errors import Qualified
from noxu.apiserver.api.field import FieldError
from noxu.apiserver.api.names import NameRule, subdomain_name
from noxu.apiserver.go.structs import Struct, decode
from noxu.apiserver.kinds.expressions import CheckExpression, no_check
from noxu.apiserver.values import Json, Object, equal, nested_field

STORED_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
VIRTUAL_VERBS: Final = ("create",)
"""The verbs of virtual resources, which are answered, but not stored."""

METADATA_OF_STATUS: Final = tuple(
    f"metadata.{name}"
    for name in (
        "deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"
    )
)  # fmt: skip
"""The metadata that an update of /status does not change (meta/v1 ResetObjectMetaForStatus)."""


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
    verbs: tuple[str, ...] = STORED_VERBS
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
        return self.verbs != VIRTUAL_VERBS

    @property
    def has_status(self) -> bool:
        return any(candidate.name == "status" for candidate in self.subresources)


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
    return next((candidate.kept for candidate in kind.subresources if candidate.name == subresource), kind.kept)


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
