"""What a rule may know about an object: types made from its structural schema (upstream's SchemaDeclType).

A `DeclType` says how a value is typed, how large it can be at most, and how small it can be in JSON; costs are estimated
with these sizes. What cannot be typed (no `type`, arrays and maps of such) is None: rules do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from weakref import WeakValueDictionary

from apiserver.cel import types
from apiserver.cel.escaping import KEYWORDS, escape
from apiserver.cel.types import Kind, Type
from apiserver.schema.structural import MISSING, Structural, ValueValidation

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
MAX_NAME_LENGTH: Final = 253
_NULL_OR_EMPTY: Final = 2  # "", [], {}
_DURATION_SIZES: Final = (3, 32)  # smallest and largest in JSON
_DATE_SIZES: Final = (12, 12)
_DATE_TIME_SIZES: Final = (21, 32)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeclType:
    """`fields` are keyed by their escaped names; `element` is what a list or map holds.

    There is one of a kind (see `_declare`): what is known about a type is known wherever it occurs.
    """

    scalar: Type | None = None
    fields: dict[str, DeclType] | None = None
    element: DeclType | None = None
    is_map: bool = False
    max_elements: int = 0
    min_size: int = 1
    own_name: str = ""
    _named: dict[str, Type] = field(default_factory=dict)

    def named(self, name: str) -> Type:
        """The checker's type. Objects are known by where they stand below the root's name, if not by their own."""
        if self.scalar is not None:
            return self.scalar
        name = self.own_name or name
        known = self._named.get(name)
        if known is None:
            known = self._named[name] = self._name(name)
        return known

    def _name(self, name: str) -> Type:
        if self.fields is not None:
            return Type(Kind.STRUCT, name, declaration=self)
        assert self.element is not None
        if self.is_map:
            return types.map_of(types.STRING, self.element.named(f"{name}.@elem"))
        return types.list_of(self.element.named(f"{name}.@idx"))

    def find(self, name: str) -> tuple[str, DeclType] | None:
        """A field of an object, and its identifier. Keywords are found without their underscores too."""
        assert self.fields is not None
        for identifier in (name, f"__{name}__") if name in KEYWORDS else (name,):
            found = self.fields.get(identifier)
            if found is not None:
                return identifier, found
        return None

    @property
    def max_cardinality(self) -> int:
        """How often such a value fits into a request."""
        return MAX_REQUEST_BYTES // (self.min_size + 1)


_declared: WeakValueDictionary[tuple[object, ...], DeclType] = WeakValueDictionary()


def _declare(
    scalar: Type | None = None,
    *,
    fields: dict[str, DeclType] | None = None,
    element: DeclType | None = None,
    is_map: bool = False,
    max_elements: int = 0,
    min_size: int = 1,
) -> DeclType:
    """The type that is such."""
    members = None if fields is None else tuple(fields.items())
    key = (scalar, members, element, is_map, max_elements, min_size)
    known = _declared.get(key)
    if known is None:
        known = _declared[key] = DeclType(scalar, fields, element, is_map, max_elements, min_size)
    return known


_BOOL: Final = _declare(types.BOOL, min_size=4)
_INT: Final = _declare(types.INT)
_DOUBLE: Final = _declare(types.DOUBLE)


def decl_type(schema: Structural, *, is_root: bool = False) -> DeclType | None:
    """`is_root` is for the root of a custom resource or of an embedded one."""
    if schema.int_or_string:
        limit = schema.validation.max_length
        longest = MAX_REQUEST_BYTES - 2 if limit is None else max(limit, 0) * 4
        return _declare(types.DYN, max_elements=longest)
    if is_root:
        schema = with_type_and_object_meta(schema)
    match schema.type:
        case "array":
            return _list(schema)
        case "object":
            return _object(schema) if schema.values is None else _map(schema, schema.values)
        case "string":
            return _string(schema.validation)
        case "boolean":
            return _BOOL
        case "number":
            return _DOUBLE
        case "integer":
            return _INT
    return None


def _list(schema: Structural) -> DeclType | None:
    element = None if schema.items is None else decl_type(schema.items, is_root=schema.items.embedded_resource)
    if element is None:
        return None
    limit = schema.validation.max_items
    most = (MAX_REQUEST_BYTES - 2) // (element.min_size + 1) if limit is None else max(limit, 0)
    return _declare(element=element, max_elements=most, min_size=_NULL_OR_EMPTY)


def _map(schema: Structural, values: Structural) -> DeclType | None:
    element = decl_type(values, is_root=values.embedded_resource)
    if element is None:
        return None
    limit = schema.validation.max_properties
    most = (MAX_REQUEST_BYTES - 2) // (element.min_size + 6) if limit is None else max(limit, 0)
    return _declare(element=element, is_map=True, max_elements=most, min_size=_NULL_OR_EMPTY)


def _object(schema: Structural) -> DeclType:
    required = frozenset(schema.validation.required)
    fields: dict[str, DeclType] = {}
    min_size = _NULL_OR_EMPTY
    for name, one in schema.properties.items():
        declared = decl_type(one, is_root=one.embedded_resource)
        if declared is None:
            continue
        identifier = escape(name)
        if identifier is not None:
            fields[identifier] = declared
        if name in required and one.default is MISSING:
            min_size += len(name.encode()) + declared.min_size + 4
    return _declare(fields=fields, min_size=min_size)


def _string(validation: ValueValidation) -> DeclType:
    limit = None if validation.max_length is None else max(validation.max_length, 0)
    match validation.format:
        case "byte":
            longest = MAX_REQUEST_BYTES - 2 if limit is None else limit
            return _declare(types.BYTES, max_elements=longest, min_size=_NULL_OR_EMPTY)
        case "duration":
            return _sized(types.DURATION, _DURATION_SIZES)
        case "date":
            return _sized(types.TIMESTAMP, _DATE_SIZES)
        case "date-time":
            return _sized(types.TIMESTAMP, _DATE_TIME_SIZES)
    if limit is not None:
        longest = limit * 4  # lengths are told in characters and counted in bytes
    elif validation.enum:
        longest = max((len(one.encode()) for one in validation.enum if isinstance(one, str)), default=0)
    else:
        longest = MAX_REQUEST_BYTES - 2
    return _declare(types.STRING, max_elements=longest, min_size=_NULL_OR_EMPTY)


def _sized(scalar: Type, sizes: tuple[int, int]) -> DeclType:
    return _declare(scalar, min_size=sizes[0], max_elements=sizes[1])


@lru_cache(1024)
def with_type_and_object_meta(schema: Structural) -> Structural:
    """The schema with apiVersion, kind and metadata.{name,generateName}, and nothing else of metadata."""
    given = schema.properties
    metadata = given.get("metadata", _NOTHING)
    meta = metadata.properties
    if (
        given.get("kind", _NOTHING).type == "string"
        and given.get("apiVersion", _NOTHING).type == "string"
        and metadata.type == "object"
        and meta.get("name", _NOTHING).type == "string"
        and meta.get("generateName", _NOTHING).type == "string"
    ):
        return schema
    names = {
        "name": _capped(meta.get("name", _NOTHING), MAX_NAME_LENGTH),
        "generateName": _capped(meta.get("generateName", _NOTHING), MAX_NAME_LENGTH - 1),
    }
    properties = {
        **given,
        "kind": _PLAIN_STRING,
        "apiVersion": _PLAIN_STRING,
        "metadata": Structural(type="object", properties=names),
    }
    return replace(schema, items=None, properties=properties)


_NOTHING: Final = Structural()
_PLAIN_STRING: Final = Structural(type="string")


def _capped(schema: Structural, limit: int) -> Structural:
    given = schema.validation.max_length
    return Structural(
        type="string", validation=ValueValidation(max_length=limit if given is None else min(given, limit))
    )
