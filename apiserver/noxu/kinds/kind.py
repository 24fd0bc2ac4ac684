"""A built-in kind as data: its names and verbs, the structs of its objects, and its few rules.

Upstream has a strategy in Go for every kind; the fields of `Kind` hold their differences. There is no I/O and no clock.
Objects are dicts as `noxu.go.structs` decodes them: types are right, fields that Go writes by value are present, empty
optional fields are not.

Rules that write (`default`, `complete`, `prepare`) change objects in place, and ignore the order of keys; `written` sorts
them in the order of declaration, as Go writes them. Rules that validate leave out what holds for every kind:
`noxu.api.meta` validates metadata, with the kind's `name_rule`.

`Checker` checks the CEL expressions of admission configurations when they are written
(pkg/apis/admissionregistration/validation).

Upstream refuses expressions that do not compile. Here only requests with `fieldValidation=Strict`, as kubectl sends them,
are refused; others get a warning. (A stored expression that does not compile is an error of its policy in evaluation.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from noxu import cel
from noxu.api.errors import Qualified
from noxu.api.field import FieldError
from noxu.api.names import NameRule, subdomain_name
from noxu.cpu_budget import require_imported
from noxu.go.structs import Struct, decode
from noxu.kinds.defaults import Fill
from noxu.releases import NEWEST
from noxu.values import Json, Object, copy, equal, nested_field

if TYPE_CHECKING:
    from noxu.cel import Composition, Purpose


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


_INTERNAL: Final = "program instantiation failed"


def is_internal(fault: str) -> bool:
    """Whether upstream reports a fault as an internal error."""
    return fault.startswith(_INTERNAL)


@cache
def _purposes() -> dict[str, Purpose]:
    purpose = cel.Purpose  # imports the engine, which is large
    return {
        "bool": purpose.CONDITION,
        "string": purpose.MESSAGE,
        "string or null": purpose.AUDIT_VALUE,
        "any": purpose.VARIABLE,
        "ApplyConfiguration": purpose.APPLY_CONFIGURATION,
        "JSONPatch": purpose.JSON_PATCH,
    }


class Checker:
    """Checks the expressions of one object; each variable is compiled once."""

    def __init__(self, release: int = NEWEST) -> None:
        """`release`: of Kubernetes, which decides what expressions may use."""
        self._release = release
        self._compositions: dict[tuple[tuple[str, str], ...], Composition] = {}

    def __call__(self, expression: str, use: Use) -> str:
        """The error of an expression, "" if it has none."""
        require_imported("noxu.cel", "Composition")
        composition, purpose = self._composition(use), _purposes()[use.result]
        return composition.expression(expression, purpose, authorizer=use.authorizer, stored=use.stored).error

    def _composition(self, use: Use) -> Composition:
        composition = self._compositions.get(use.variables)
        if composition is None:
            before = self._compositions.get(use.variables[:-1]) if use.variables else None
            if before is None:
                composition = cel.Composition(use.variables, params=use.params, release=self._release)
            else:
                composition = before.extended(*use.variables[-1])
            self._compositions[use.variables] = composition
        return composition


class Unevaluable(FieldError):
    """An expression that does not compile; the caller makes it an error or a warning."""

    __slots__ = ()


# -- kind -------------------------------------------------------------------------------------------------------------


STORED_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
VIRTUAL_VERBS: Final = ("create",)
"""The verbs of virtual resources, which are answered, but not stored."""

Drop: TypeAlias = Callable[[Object, Object | None], None]
"""(the new object, the old one): drops fields, in place."""

NOW: Final = {"now": True}
"""In `Kind.initial`: the time of the write."""
METADATA_LABELS: Final = ("metadata.name", "metadata.namespace")
"""The field labels that most kinds have."""

Propagation = Literal["Background", "Orphan", "Unsupported"]
"""The default propagation policy of a kind. Unsupported: an object owns nothing, and every policy is ignored."""


class Context(NamedTuple):
    """The context that the rules of a kind may need besides the objects. `now` is a time as objects show it.

    `user` is the user of the request in the form of authentication/v1's UserInfo.
    """

    subresource: str = ""
    check: CheckExpression = no_check
    now: str = ""
    user: Mapping[str, Json] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subresource:
    """`kept` are the fields that an update through it does not change; `only`, if nothing is `kept`, those that it may change.

    `reset` are the fields that apply does not own through it, by default `kept`. `body` is its struct if it is of another
    kind, which `body_group` and `body_version` complete. `scale` has the paths of its replicas. `connect`: a connection to
    a pod, a service or a node.
    """

    name: str
    verbs: tuple[str, ...]
    kept: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    reset: tuple[str, ...] | None = None
    body: Struct | None = None
    body_group: str = ""
    body_version: str = "v1"
    scale: Mapping[str, str] | None = None
    connect: bool = False


class Label(NamedTuple):
    """A field label: the paths of its value, of which the first that is set counts, and the value without any of them."""

    paths: tuple[str, ...]
    missing: str = ""


def _nothing(value: Object) -> None: ...


def _not_completed(new: Object, old: Object | None, context: Context) -> None: ...


def valid(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    """The validation of a kind without rules."""
    return []


def _no_warnings(new: Object, old: Object | None) -> list[str]:  # noqa: ARG001
    return []


class Rules(NamedTuple):
    """The rules of a kind that its data cannot express.

    `default`: fill in defaults besides those of the data; idempotent. `complete` (new, old, context): set fields that the
    server controls, besides those of the data. `validate` (new, old, context) → upstream's field errors, in upstream's
    order. `warnings` (new, old).
    """

    default: Callable[[Object], None] = _nothing
    complete: Callable[[Object, Object | None, Context], None] = _not_completed
    validate: Callable[[Object, Object | None, Context], list[FieldError]] = valid
    warnings: Callable[[Object, Object | None], list[str]] = _no_warnings


def _no_rules() -> Rules:
    return Rules()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One version of one built-in kind."""

    group: str
    version: str = "v1"
    kind: str
    struct: Struct
    plural: str
    singular: str = ""
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STORED_VERBS
    subresources: tuple[Subresource, ...] = ()
    name_rule: NameRule = subdomain_name
    name_rule_for: Callable[[Object], NameRule] | None = None
    """The rule for the name of an object if it depends on other fields, or has a limit of its own."""
    deprecation: str = ""
    """The warning of every request, "" if the kind is not deprecated."""
    unconditional_update: bool = True
    """Whether an update may leave out the resourceVersion."""
    create_on_update: bool = False
    """Whether an update creates a missing object."""
    generation: tuple[str, ...] = ()
    """The fields whose changes metadata.generation counts."""
    first_generation: int | None = None
    """The generation of a new object, None if the kind has no generations."""
    fresh: tuple[str, ...] = ()
    """The fields that are removed from a new object."""
    initial: Mapping[str, Json] = field(default_factory=dict)
    """The fields that a new object has, after `fresh` was removed."""
    kept: tuple[str, ...] = ()
    """The fields that an update of the object itself does not change."""
    reset: tuple[str, ...] | None = None
    """The fields that apply does not own; None: those that are `kept`."""
    lifetime: int = 0
    """Seconds after its last write when an object is deleted; 0: never."""
    propagation: Propagation = "Background"
    """The propagation policy of a deletion that names none (DefaultGarbageCollectionPolicy)."""
    returns_deleted: bool = False
    """Whether a DELETE that removes the object returns it instead of a Status."""
    metadata_labels: tuple[str, ...] = METADATA_LABELS
    """The field labels of metadata; some cluster-scoped kinds do not know metadata.namespace."""
    selectable: Mapping[str, Label] = field(default_factory=dict)
    """Field labels besides those of metadata."""
    unknown_label: str = ""
    """The error for a field label that is not known, with %s for it; "": the usual one."""
    fill: Callable[[], Fill | None] = lambda: None
    """The function that fills in the defaults of the data, made by the first call; None if there are none."""
    drop: Callable[[], Drop | None] = lambda: None
    """The function that drops fields whose gate is off in the release, made by the first call; None if it keeps them all."""
    load_rules: Callable[[], Rules] = _no_rules
    """The rules, whose module is imported by the first call."""

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

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

    def rule_of_name(self, value: Object) -> NameRule:
        """The rule for the name of an object."""
        return self.name_rule if self.name_rule_for is None else self.name_rule_for(value)

    def default(self, value: Object) -> None:
        """Fill in defaults; also in an object from storage that an older server wrote. Idempotent."""
        fill = self.fill()
        if fill is not None:
            fill(value)
        self.load_rules().default(value)

    def validate(self, new: Object, old: Object | None, context: Context) -> list[FieldError]:
        """Upstream's field errors, in upstream's order."""
        return self.load_rules().validate(new, old, context)

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        return self.load_rules().warnings(new, old)

    def subresource(self, name: str) -> Subresource | None:
        return next((candidate for candidate in self.subresources if candidate.name == name), None)


def prepare(kind: Kind, new: Object, old: Object | None, context: Context = Context()) -> None:  # noqa: B008
    """Reset fields that clients may not set, set those that the server controls, count the generation; in place."""
    if old is None:
        for path in kind.fresh:
            _put(new, path, None)
        for path, value in kind.initial.items():
            _put(new, path, (context.now or None) if value == NOW else copy(value))
    else:
        _restore(kind, new, old, context.subresource)
    drop = kind.drop()
    if drop is not None:
        drop(new, old)
    kind.load_rules().complete(new, old, context)
    metadata = new.setdefault("metadata", {})
    if kind.first_generation is None:
        metadata.pop("generation", None)
        return
    generation = kind.first_generation
    if old is not None:
        generation = old["metadata"].get("generation", 0)
        counts = context.subresource != "status"  # even of a kind that counts annotations, which a status may change
        generation += counts and any(
            not equal(nested_field(new, path), nested_field(old, path)) for path in kind.generation
        )
    _put(metadata, "generation", generation or None)  # a zero is not written


def _restore(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    """Undo the changes of fields that an update cannot change."""
    declared = kind.subresource(subresource)
    if declared is not None and declared.only and not declared.kept:
        changed = {path: nested_field(new, path) for path in declared.only if "[*]" not in path}
        changed |= _changed_lists(new, old, declared.only)
        version = new["metadata"].get("resourceVersion")
        managed = new["metadata"].get("managedFields")
        new.clear()
        new.update(copy(old))
        for path, value in {**changed, "metadata.resourceVersion": version, "metadata.managedFields": managed}.items():
            _put(new, path, value)
        return
    for path in kind.kept if declared is None else declared.kept:
        _put(new, path, nested_field(old, path))


def _changed_lists(new: Object, old: Object, paths: tuple[str, ...]) -> dict[str, Json]:
    """The lists in which only some fields of the items may change, with these changes, by path.

    `spec.containers[*].resources`: the old containers with the new resources. If items were added, removed or renamed, the
    list is the new one, so that validation refuses it.
    """
    lists: dict[str, Json] = {}
    for path in paths:
        outer, wildcard, inner = path.partition("[*].")
        items = nested_field(new, outer)
        if not wildcard or items is None:
            continue
        stored = lists.get(outer) or copy(nested_field(old, outer) or [])
        lists[outer] = stored
        if [item.get("name") for item in items] != [item.get("name") for item in stored]:
            lists[outer] = items
            continue
        for item, changed in zip(stored, items, strict=True):
            _put(item, inner, nested_field(changed, inner))
    return lists


def reset_fields(kind: Kind, subresource: str) -> tuple[str, ...]:
    """The fields that apply does not own through a subresource, "" for the object itself."""
    declared = kind.subresource(subresource) or kind
    return declared.kept if declared.reset is None else declared.reset


def _put(value: Object, path: str, content: Json) -> None:
    """Set a nested field, or remove it if `content` is None."""
    *parents, name = path.split(".")
    for parent in parents:
        if value.get(parent) is None:
            if content is None:
                return
            value[parent] = {}
        value = value[parent]
    if content is None:
        value.pop(name, None)
    else:
        value[name] = content


def selected(kind: Kind, value: Object) -> dict[str, str]:
    """The values of an object's field labels, besides name and namespace."""
    return {name: _label_value(label, value) for name, label in kind.selectable.items()}


def _label_value(label: Label, value: Object) -> str:
    """`status.podIPs[*].ip` is that of the first item."""
    for path in label.paths:
        outer, wildcard, inner = path.partition("[*].")
        item = nested_field(value, outer)
        if wildcard:
            item = nested_field(item[0], inner) if item else None
        if item:
            return "true" if item is True else str(item)
    return label.missing


def written(kind: Kind, value: Object) -> Object:
    """The object with its fields in the order of declaration, including those that Go always writes."""
    ordered: Object = decode(kind.struct, value).value
    return ordered
