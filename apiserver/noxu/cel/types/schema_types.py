"""Types of the values that a rule may refer to, made from structural schemas (upstream's SchemaDeclType).

A `DeclType` holds the type of a value, its largest possible size, and its smallest possible size in JSON. Cost estimates
use these sizes. A schema that has no type (no `type`, or an array or map of such) gives None: rules cannot refer to it.

Field names are escaped as CEL identifiers (upstream's apiserver/pkg/cel/escaping.go):

    my-field  ⇄  my__dash__field        for  ⇄  __for__        a__b  ⇄  a__underscores__b
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from weakref import WeakValueDictionary

from noxu.cel.types import types
from noxu.cel.types.types import Type, TypeKind
from noxu.schema.structural import MISSING, Structural, ValueValidation, of_schema

KEYWORDS: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_SIGNS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPES: Final = {escaped: sign for sign, escaped in _SIGNS.items()}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPABLE: Final = re.compile(r"[A-Za-z0-9_./-]*")
_SIGN: Final = re.compile(r"__|[-./]")
_ESCAPE: Final = re.compile(r"__[^_]+__")


@lru_cache(8192)
def escape(name: str) -> str | None:
    """The identifier of a field; None for a name that cannot be escaped."""
    if not name or name[0] in "0123456789":
        return None
    if name in KEYWORDS:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    if not _ESCAPABLE.fullmatch(name):
        return None
    return _SIGN.sub(lambda match: _SIGNS[match[0]], name)


@lru_cache(8192)
def unescape(identifier: str) -> str | None:
    """The field of an identifier; None if it is not escaped correctly."""
    if "__" not in identifier:
        return identifier
    for sequence in _ESCAPE.findall(identifier):
        keyword = sequence[2:-2] in KEYWORDS
        if sequence not in _ESCAPES and not (keyword and sequence == identifier):
            return None
    return _ESCAPE.sub(lambda sequence: _ESCAPES.get(sequence[0], sequence[0][2:-2]), identifier)


MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
MAX_NAME_LENGTH: Final = 253
_NULL_OR_EMPTY: Final = 2  # "", [], {}
_DURATION_SIZES: Final = (3, 32)  # smallest and largest in JSON
_DATE_SIZES: Final = (12, 12)
_DATE_TIME_SIZES: Final = (21, 32)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DeclType:
    """At most one of `scalar`, `fields` and `element` is set (none: nothing is known).

    `fields` are keyed by their escaped names; `element` is what a list or a map (`is_map`) holds. `max_elements` counts
    elements, bytes or characters; `min_size` counts bytes of JSON. `own_name` names an object type that has a fixed name.

    `_declare` returns the same object for equal arguments, so that types compare by identity and are computed once.
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
        """The checker's type. An object type without a name of its own is called `name`, the types in it by their place:

        named("selfType1") of {ports: [{port: int}]}   →   selfType1; its ports are list(selfType1.ports.@idx)
        """
        if self.scalar is not None:
            return self.scalar
        name = self.own_name or name
        named_type = self._named.get(name)
        if named_type is None:
            named_type = self._named[name] = self._make_type(name)
        return named_type

    def _make_type(self, name: str) -> Type:
        if self.fields is not None:
            return Type(TypeKind.STRUCT, name, declaration=self)
        assert self.element is not None
        if self.is_map:
            return types.map_of(types.STRING, self.element.named(f"{name}.@elem"))
        return types.list_of(self.element.named(f"{name}.@idx"))

    def find(self, name: str) -> tuple[str, DeclType] | None:
        """A field's identifier and type. A field named like a keyword is found without its underscores too."""
        assert self.fields is not None
        for identifier in (name, f"__{name}__") if name in KEYWORDS else (name,):
            declared = self.fields.get(identifier)
            if declared is not None:
                return identifier, declared
        return None

    @property
    def max_cardinality(self) -> int:
        """How many such values fit into a request."""
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
    """The DeclType with these attributes: always the same object."""
    members = None if fields is None else tuple(fields.items())
    key = (scalar, members, element, is_map, max_elements, min_size)
    declaration = _declared.get(key)
    if declaration is None:
        declaration = _declared[key] = DeclType(scalar, fields, element, is_map, max_elements, min_size)
    return declaration


_BOOL: Final = _declare(types.BOOL, min_size=4)
_INT: Final = _declare(types.INT)
_DOUBLE: Final = _declare(types.DOUBLE)


def decl_type(schema: Structural, *, is_root: bool = False) -> DeclType | None:
    """The type of a schema, None if it has none. `is_root`: the schema is of a custom resource or an embedded resource."""
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
    max_items = (MAX_REQUEST_BYTES - 2) // (element.min_size + 1) if limit is None else max(limit, 0)
    return _declare(element=element, max_elements=max_items, min_size=_NULL_OR_EMPTY)


def _map(schema: Structural, values: Structural) -> DeclType | None:
    element = decl_type(values, is_root=values.embedded_resource)
    if element is None:
        return None
    limit = schema.validation.max_properties
    max_entries = (MAX_REQUEST_BYTES - 2) // (element.min_size + 6) if limit is None else max(limit, 0)
    return _declare(element=element, is_map=True, max_elements=max_entries, min_size=_NULL_OR_EMPTY)


def _object(schema: Structural) -> DeclType:
    required = frozenset(schema.validation.required)
    fields: dict[str, DeclType] = {}
    min_size = _NULL_OR_EMPTY
    for name, property_ in schema.properties.items():
        declared = decl_type(property_, is_root=property_.embedded_resource)
        if declared is None:
            continue
        identifier = escape(name)
        if identifier is not None:
            fields[identifier] = declared
        if name in required and property_.default is MISSING:
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
        longest = limit * 4  # maxLength counts characters, sizes count bytes
    elif validation.enum:
        longest = max((len(value.encode()) for value in validation.enum if isinstance(value, str)), default=0)
    else:
        longest = MAX_REQUEST_BYTES - 2
    return _declare(types.STRING, max_elements=longest, min_size=_NULL_OR_EMPTY)


def _sized(scalar: Type, sizes: tuple[int, int]) -> DeclType:
    return _declare(scalar, min_size=sizes[0], max_elements=sizes[1])


@of_schema
def with_type_and_object_meta(schema: Structural) -> Structural:
    """The schema as rules see it: with apiVersion and kind, and with name and generateName as the only metadata."""
    properties = schema.properties
    metadata = properties.get("metadata", _NOTHING)
    meta = metadata.properties
    if (
        properties.get("kind", _NOTHING).type == "string"
        and properties.get("apiVersion", _NOTHING).type == "string"
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
        **properties,
        "kind": _PLAIN_STRING,
        "apiVersion": _PLAIN_STRING,
        "metadata": Structural(type="object", properties=names),
    }
    return replace(schema, items=None, properties=properties)


_NOTHING: Final = Structural()
_PLAIN_STRING: Final = Structural(type="string")


def _capped(schema: Structural, limit: int) -> Structural:
    own_limit = schema.validation.max_length
    return Structural(
        type="string", validation=ValueValidation(max_length=limit if own_limit is None else min(own_limit, limit))
    )
