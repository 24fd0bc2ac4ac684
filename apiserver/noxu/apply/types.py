"""The types of field ownership: scalars, maps and lists, and whether their parts have owners of their own.

Custom resources have their types from a structural schema, built-in kinds from their struct table; the type of an
undeclared value is deduced from the value. The rules are those of kube-openapi's schemaconv and of the extensions
x-kubernetes-list-type, -list-map-keys, -map-type and -preserve-unknown-fields:

- properties are named fields; additionalProperties, unknown keys and labels are map keys, which are owned themselves;
- a map is granular unless its map-type is atomic;
- a list is atomic unless its type is `set` (items are owned by value) or `map` (by their keys);
- a string with a format, an int-or-string and a time are any scalar;
- if a schema preserves unknown fields, all nodes below do, too: types of undeclared values are deduced, that is, maps are
  granular, lists atomic and everything else a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from typing import Any, Final, Literal

from noxu.apply.fieldset import Element, field, text
from noxu.go.structs import Field, List, Map, Presence, Scalar, Struct, Union, Wire
from noxu.go.structs import Type as StructType
from noxu.schema import structural
from noxu.schema.structural import MISSING, Structural
from noxu.values import Json

MAX_KEPT: Final = 1000  # elements that a list type keeps
MAX_KEPT_KEY: Final = 64  # characters of a key whose element is kept

ScalarKind = Literal["numeric", "string", "boolean", "untyped"]
Shape = Literal["map", "list", "scalar"]


@dataclass(slots=True, eq=False)
class MapType:
    """`fields` are the named ones; `values` is the type of all other keys' values, None if there may be no other keys."""

    fields: dict[str, tuple[Element, Type]]
    values: Type | None
    atomic: bool = False


@dataclass(slots=True, eq=False)
class ListType:
    """Associative lists without keys are sets. `keys` are in the order of declaration; some may have `defaults`."""

    items: Type
    associative: bool = False
    keys: tuple[str, ...] = ()
    defaults: dict[str, Json] = dataclass_field(default_factory=dict)
    only_key: str = dataclass_field(init=False)
    """The beginning of an item's element, `k:{"name":`, if there is only one key, else ""."""
    elements: dict[str, Element] = dataclass_field(init=False)
    """Elements of items with only one key, by its text: objects of a kind name their items alike."""

    def __post_init__(self) -> None:
        self.only_key = f"k:{{{text(self.keys[0])}:" if len(self.keys) == 1 else ""
        self.elements = {}


class Type:
    """At most one scalar, one list and one map type. Any value fits an `open` type; null fits every type.

    `scalars` are the Python types that fit the scalar type. `shapes` maps a value's Python type to the one of the three
    as which it is treated: a value that fits none is treated as the first existing one of map, scalar and list.
    """

    __slots__ = ("list", "map", "node_functions", "open", "scalar", "scalars", "shapes")

    def __init__(
        self,
        scalar: ScalarKind | None = None,
        list: ListType | None = None,  # noqa: A002 - the field's name
        map: MapType | None = None,  # noqa: A002
        *,
        open: bool = False,  # noqa: A002
    ) -> None:
        self.open = open
        self.node_functions: dict[bool, Any] = {}  # set by noxu.apply.typed
        self.define(scalar, list, map)

    def define(self, scalar: ScalarKind | None, list_: ListType | None, map_: MapType | None) -> Type:
        """Set the types, after the constructor if they are recursive."""
        self.scalar = scalar
        self.list = list_
        self.map = map_
        self.scalars = _FITTING[scalar]
        fallback: Shape = "map" if map_ else "scalar" if scalar else "list"
        self.shapes: dict[type, Shape] = dict.fromkeys((str, bool, int, float), "scalar" if scalar else fallback)
        self.shapes |= {dict: "map" if map_ else fallback, list: "list" if list_ else fallback, type(None): fallback}
        return self


_FITTING: Final[dict[ScalarKind | None, frozenset[type]]] = {
    "numeric": frozenset({int, float}),
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "untyped": frozenset({int, float, str, bool}),
    None: frozenset(),
}

STRING: Final = Type("string")
NUMERIC: Final = Type("numeric")
BOOLEAN: Final = Type("boolean")
ANY_SCALAR: Final = Type("untyped")

# Upstream's __untyped_atomic_ and __untyped_deduced_.
UNTYPED: Final = Type(open=True)
UNTYPED.define("untyped", ListType(UNTYPED), MapType({}, UNTYPED, atomic=True))
DEDUCED: Final = Type(open=True)
DEDUCED.define("untyped", ListType(UNTYPED), MapType({}, DEDUCED))
FREE_FORM: Final = Type(map=MapType({}, DEDUCED))
"""An object without properties: the type of resources without a schema."""


def _struct(*, atomic: bool = False, **fields: Type) -> Type:
    return Type(map=MapType({name: (field(name), member) for name, member in fields.items()}, None, atomic))


_STRING_MAP: Final = Type(map=MapType({}, STRING))
_OWNER: Final = _struct(
    apiVersion=STRING, kind=STRING, name=STRING, uid=STRING, controller=BOOLEAN, blockOwnerDeletion=BOOLEAN, atomic=True
)
_MANAGED_FIELDS_ENTRY: Final = _struct(
    manager=STRING, operation=STRING, apiVersion=STRING, time=ANY_SCALAR, fieldsType=STRING, fieldsV1=FREE_FORM,
    subresource=STRING,
)  # fmt: skip
OBJECT_META: Final = _struct(
    name=STRING, generateName=STRING, namespace=STRING, selfLink=STRING, uid=STRING, resourceVersion=STRING,
    generation=NUMERIC, creationTimestamp=ANY_SCALAR, deletionTimestamp=ANY_SCALAR,
    deletionGracePeriodSeconds=NUMERIC, labels=_STRING_MAP, annotations=_STRING_MAP,
    ownerReferences=Type(list=ListType(_OWNER, associative=True, keys=("uid",), defaults={"uid": ""})),
    finalizers=Type(list=ListType(STRING, associative=True)),
    managedFields=Type(list=ListType(_MANAGED_FIELDS_ENTRY)),
)  # fmt: skip
SCALE: Final = _struct(
    apiVersion=STRING, kind=STRING, metadata=OBJECT_META, spec=_struct(replicas=NUMERIC),
    status=_struct(replicas=NUMERIC, selector=STRING),
)  # fmt: skip

_IDENTITY: Final = {name: (field(name), STRING) for name in ("apiVersion", "kind")}
_IDENTITY_AND_META: Final = {**_IDENTITY, "metadata": (field("metadata"), OBJECT_META)}


def of_schema(schema: Structural | None) -> Type:
    """The type of a custom resource's objects."""
    if schema is None:
        return FREE_FORM
    return _of_structural(schema, preserve=False, resource=True)


def _of_structural(schema: Structural, *, preserve: bool, resource: bool = False) -> Type:
    preserve = preserve or schema.preserve_unknown_fields
    resource = resource or schema.embedded_resource
    if schema.type == "object":
        return Type(map=_map(schema, preserve, resource))
    if schema.type == "array":
        return Type(list=_list(schema, preserve))
    if schema.type == "":
        return Type("untyped", _list(schema, preserve), _map(schema, preserve, resource))
    if schema.type == "string":
        return STRING if schema.validation.format in ("", "byte") else ANY_SCALAR
    return BOOLEAN if schema.type == "boolean" else NUMERIC


def _map(schema: Structural, preserve: bool, resource: bool) -> MapType:
    fields: dict[str, tuple[Element, Type]] = {}
    for name, inner in schema.properties.items():  # a comprehension would add a stack frame per level
        fields[name] = field(name), _of_structural(inner, preserve=preserve)
    if resource:
        fields |= _IDENTITY_AND_META
    values: Type | None
    if schema.additional_properties is None:
        values = DEDUCED if preserve or not fields else None
    elif isinstance(schema.additional_properties, Structural):
        values = _of_structural(schema.additional_properties, preserve=preserve)
    else:
        values = DEDUCED if schema.additional_properties else None
    return MapType(fields, values, schema.map_type == "atomic")


def _list(schema: Structural, preserve: bool) -> ListType:
    items = UNTYPED if schema.items is None else _of_structural(schema.items, preserve=preserve)
    if schema.list_type not in ("set", "map"):
        return ListType(items)
    if schema.list_type == "set" or schema.items is None:
        return ListType(items, associative=True)
    properties = schema.items.properties
    keys = schema.list_map_keys
    defaults = {key: properties[key].default for key in keys if key in properties}
    defaults = {key: default for key, default in defaults.items() if default is not MISSING}
    return ListType(items, associative=True, keys=keys, defaults=defaults)


@structural.of_schema
def is_implied_by(schema: Structural) -> bool:
    """Whether values that satisfy the schema are certainly of its type; `typed.validate` with `duplicates` finds no errors.

    The type says less than the schema, with one exception: items of sets and list-maps must have an identity. It is not
    certain where they may be null, are no scalars in a set, or may lack all keys in a list-map. Nothing is said of embedded
    resources, whose metadata has a type without a schema.
    """
    if schema.embedded_resource or (schema.list_type in ("set", "map") and not _has_identified_items(schema)):
        return False
    below = (*schema.properties.values(), schema.values, schema.items)
    return all(inner is None or is_implied_by(inner) for inner in below)


def _has_identified_items(schema: Structural) -> bool:
    items = schema.items
    if items is None or items.nullable:
        return False
    if schema.list_type == "set":
        return items.type in ("string", "integer", "number", "boolean")
    return items.type == "object" and any(
        key in items.validation.required or items.properties[key].default not in (MISSING, None)
        for key in schema.list_map_keys
        if key in items.properties
    )


_WIRES: Final[dict[Wire, Type]] = {
    Wire.STRING: STRING, Wire.BYTES: STRING, Wire.BOOL: BOOLEAN, Wire.INT32: NUMERIC, Wire.INT64: NUMERIC,
    Wire.DOUBLE: NUMERIC, Wire.TIME: ANY_SCALAR, Wire.MICRO_TIME: ANY_SCALAR, Wire.INT_OR_STRING: ANY_SCALAR,
    Wire.JSON: DEDUCED, Wire.QUANTITY: ANY_SCALAR, Wire.DURATION: STRING,
}  # fmt: skip


@cache
def of_struct(kind: Struct) -> Type:
    """The type of a built-in kind's objects; computed once for all servers of a process."""
    return _of_struct_type(kind, {})


def _of_struct_type(kind: StructType, types_by_name: dict[str, Type], how: Field | None = None) -> Type:
    if isinstance(kind, Scalar):
        return _WIRES[kind.wire]
    if isinstance(kind, Union):
        return DEDUCED
    if isinstance(kind, List):
        return Type(list=_struct_list(kind, types_by_name, how))
    atomic = how is not None and how.list_type == "atomic"
    if isinstance(kind, Map):
        return Type(map=MapType({}, _of_struct_type(kind.element, types_by_name), atomic))
    atomic = atomic or (kind.atomic and (how is None or how.list_type != "granular"))
    if kind.name == "ObjectMeta":
        return OBJECT_META
    name = f"{kind.go} atomic" if atomic else kind.go
    if name not in types_by_name:  # types may be recursive
        types_by_name[name] = type_ = Type()
        fields = {f.name: (field(f.name), _of_struct_type(f.type, types_by_name, f)) for f in kind.fields.values()}
        type_.define(None, None, MapType(fields, None if fields else DEDUCED, atomic))
    return types_by_name[name]


def _struct_list(kind: List, types_by_name: dict[str, Type], how: Field | None) -> ListType:
    """A list-type marker decides; without one the patch strategy does."""
    items = _of_struct_type(kind.element, types_by_name)
    if how is None or how.list_type == "atomic":
        return ListType(items)
    if how.list_type == "map":
        return ListType(items, associative=True, keys=how.list_keys, defaults=_key_defaults(kind, how.list_keys))
    if how.list_type == "set":
        return ListType(items, associative=True)
    if "merge" not in how.patch.split(","):
        return ListType(items)
    keys = (how.merge_key,) if how.merge_key else ()
    return ListType(items, associative=True, keys=keys, defaults=_key_defaults(kind, keys))


_GO_DEFAULTS: Final[dict[str, Json]] = {"v1.Protocol": "TCP"}  # the one `+default` among the list keys of core types


def _key_defaults(kind: List, keys: tuple[str, ...]) -> dict[str, Json]:
    """The defaults of a list-map's keys: in OpenAPI, a field without omitempty has its zero as default."""
    if not isinstance(kind.element, Struct):
        return {}
    fields = [member for key, member in kind.element.fields.items() if key in keys and isinstance(member.type, Scalar)]
    defaults = {
        member.name: member.type.zero
        for member in fields
        if isinstance(member.type, Scalar) and member.write is Presence.ALWAYS
    }
    return defaults | {member.name: _GO_DEFAULTS[member.type.go] for member in fields if member.type.go in _GO_DEFAULTS}
