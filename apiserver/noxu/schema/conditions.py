"""Python source that accepts clean values of a schema's node, for `compiled`.

A condition is an expression over a variable. It may be false for a clean value, but is never true for one that pruning,
null dropping, coercion of embedded metadata or validation would change or refuse. Common keywords become source; for all
others the source calls the validator for this one node, so that the rules of validation exist only once.

An object with properties becomes a function, which also fills in defaults (those that pruning and validation would leave
unchanged). For `required: [name]` and the properties name (a string, maxLength 63), replicas (an integer, minimum 0,
default 1) and args (a list of strings):

    def accepts(x):
        if type(x) is not dict: return False
        room[0] -= 13                                       # of what defaults may add, `"replicas":1,` takes 13 bytes
        if room[0] < 0: return False
        if not c1(x): return False                          # c1: {name, replicas, args}.issuperset
        if 'name' in x:
            v = x['name']
            if not (type(v) is str and len(v) <= 63): return False
        else: return False                                  # it is required
        v = x['replicas'] if 'replicas' in x else x.setdefault('replicas', c2)      # c2: 1
        if not (type(v) is int and 0 <= v): return False
        if 'args' in x:
            v = x['args']
            if not (type(v) is list and c3(map(type, v))): return False             # c3: {str}.issuperset
        return True

For an object that shares parts with an accepted one, `old`, there is a second function. It skips each part that is the
same object as the part of `old` in the same place, with which it has been accepted:

    def accepts(x, old):
        ...
        if 'args' in x:
            v = x['args']
            if not (v is old.get('args', c4) or (type(v) is list and c3(map(type, v)))): return False

Names from the schema get into the source as literals only (`{name!a}`); everything else is a constant (`c1`) or another
function (`f1`) of the namespace in which the source runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from typing import Final, Protocol, TypeAlias

from noxu.schema import embedded, formats, listtype, patterns
from noxu.schema.defaulting import default_size, drop_nulls
from noxu.schema.pruning import META, prune
from noxu.schema.scalars import fits, to_int64
from noxu.schema.structural import MISSING, NO_VALIDATION, NestedValueValidation, Structural, ValueValidation
from noxu.schema.validation import Validator
from noxu.values import Json, copy, equal

WIDE: Final = 24
"""If more properties are declared, the source loops over the members of the object instead of looking up each property."""
MAX_NESTED: Final = 8
"""Levels of junctors, and names in a branch, that become source."""
MAX_CACHED: Final = 256
MAX_CACHED_LENGTH: Final = 64
"""Strings that a pattern or a format has accepted are cached, up to this number and length: the same ones recur."""

Accepts: TypeAlias = Callable[[Json], bool]
ANYTHING: Final = Structural(preserve_unknown_fields=True)
IDENTITY: Final = Structural(preserve_unknown_fields=True)
"""The node of apiVersion, kind and metadata of a whole object, which are checked elsewhere."""
NOTHING: Final = Structural()


class Functions(Protocol):
    """Gives names to the objects that generated source refers to."""

    def constant(self, value: object) -> str:
        """The name of a constant."""
        ...

    def function(self, schema: Structural) -> str:
        """The name of the function that accepts values of a node."""
        ...

    def change(self, schema: Structural) -> str:
        """The name of the function that accepts objects of a node that share parts with an accepted one."""
        ...

    def room(self) -> str:
        """The name of a list with one integer: the bytes that defaults may still add to the value."""
        ...

    def table(self, properties: dict[str, Structural]) -> str:
        """The name of a dict of such functions by property."""
        ...

    def inexact(self) -> None:
        """Note that the source accepts floats, or values of several types that may be equal in Python (1 and True)."""
        ...


def source(schema: Structural, functions: Functions) -> str:
    """The source of a function `accepts(x)` that fills in defaults, and returns whether the value is clean."""
    if not _is_struct(schema):
        return f"def accepts(x):\n    return {condition('x', schema, functions)}\n"
    return _function("x", schema, functions, old="")


def change_source(schema: Structural, functions: Functions) -> str:
    """The source of a function `accepts(x, old)` for an object that shares parts with an accepted one, `old`."""
    return _function("x, old", schema, functions, old="old")


def _function(arguments: str, schema: Structural, functions: Functions, *, old: str) -> str:
    """A function for objects. `old` is the variable of an accepted object, "" if there is none."""
    narrow = schema.additional_properties is None and len(schema.properties) <= WIDE
    lines = [f"if type(x) is not dict: return {'x is None' if _accepts_null(schema) else False}"]
    lines += _room(schema, functions)
    lines += (_narrow if narrow else _wide)(schema, functions, old)
    lines.append(f"return {_all(_whole(schema, functions))}")
    return f"def accepts({arguments}):\n    " + "\n    ".join(lines) + "\n"


def condition(x: str, schema: Structural, functions: Functions) -> str:
    """The source of an expression that is true only if the variable `x` is clean."""
    if _is_struct(schema):
        return f"{functions.function(schema)}({x})"
    if schema.int_or_string:
        holds = _int_or_string(x, schema, functions)
    else:
        holds = _CONDITIONS[schema.type](x, schema, functions)
    if _accepts_null(schema):
        return f"({x} is None or {holds})"
    return holds


def _all(conditions: Iterable[str]) -> str:
    return " and ".join(conditions) or "True"


def _accepts_null(schema: Structural) -> bool:
    return schema.nullable and not schema.validation.enum


def is_anything(_: Json) -> bool:
    return True


def _is_scalar(value: Json) -> bool:
    return type(value) is not dict and type(value) is not list


# -- scalars ----------------------------------------------------------------------------------------------------------

_JUNCTORS: Final = ("all_of", "any_of", "one_of", "not_")
_BEYOND_PRESENCE: Final = tuple(
    attribute.name for attribute in fields(ValueValidation) if attribute.name not in ("required", *_JUNCTORS)
)
_LIMITS: Final = ("format", "maximum", "minimum", "multiple_of")


def _between(number: str, least: int | None, most: int | None) -> Iterator[str]:
    if least is not None or most is not None:
        yield f"{'' if least is None else f'{least} <= '}{number}{'' if most is None else f' <= {most}'}"


def _has(validation: ValueValidation, *keywords: str) -> bool:
    """Whether any of these keywords is set."""
    return any(getattr(validation, name) is not getattr(NO_VALIDATION, name) for name in keywords)


def _validate(schema: Structural) -> Accepts:
    """The validator's check of this node alone: of a scalar, or of a container without its members."""
    return Validator(
        Structural(type=schema.type, int_or_string=schema.int_or_string, validation=schema.validation)
    ).is_valid


def _string(x: str, schema: Structural, functions: Functions) -> str:
    if _has(schema.validation, *_JUNCTORS):
        return f"type({x}) is str and {functions.constant(_CachedCheck(_validate(schema)))}[{x}]"
    return _all([f"type({x}) is str", *_string_conditions(x, schema.validation, functions)])


def _string_conditions(x: str, validation: ValueValidation, functions: Functions) -> Iterator[str]:
    """The conditions for a string, besides its type."""
    yield from _between(f"len({x})", validation.min_length, validation.max_length)
    if validation.enum:
        yield f"{x} in {functions.constant(frozenset(member for member in validation.enum if type(member) is str))}"
    if validation.pattern:
        yield f"{functions.constant(_CachedCheck(patterns.compile(validation.pattern).search))}[{x}]"
    if validation.format and (is_valid := formats.checker(validation.format)):
        yield f"{functions.constant(_CachedCheck(is_valid))}[{x}]"


class _CachedCheck(dict[str, bool]):
    """A check of strings, as a dict: `check[text]`. Accepted strings are cached."""

    def __init__(self, check: Callable[[str], bool]) -> None:
        super().__init__()
        self._check = check

    def __missing__(self, text: str) -> bool:
        holds = self._check(text)
        if holds and len(text) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[text] = True
        return holds


def _boolean(x: str, schema: Structural, functions: Functions) -> str:
    if _has(schema.validation, "enum", *_JUNCTORS):
        return f"type({x}) is bool and {functions.constant(_validate(schema))}({x})"
    return f"type({x}) is bool"


def _number(x: str, schema: Structural, functions: Functions) -> str:
    functions.inexact()
    is_number = f"(type({x}) is float or type({x}) is int)"
    if _has(schema.validation, *_LIMITS, "enum", *_JUNCTORS):
        return f"{is_number} and {functions.constant(_validate(schema))}({x})"
    return is_number


def _integer(x: str, schema: Structural, functions: Functions) -> str:
    if not _has(schema.validation, *_LIMITS, "enum", *_JUNCTORS):
        return f"type({x}) is int"
    bounds = _bounds(schema.validation)
    if bounds is None or _has(schema.validation, "multiple_of", "enum", *_JUNCTORS):
        return f"type({x}) is int and {functions.constant(_validate(schema))}({x})"
    return _all([f"type({x}) is int", *_between(x, *bounds)])


def _bounds(validation: ValueValidation) -> tuple[int | None, int | None] | None:
    """The least and the greatest integer, None for no limit; None for both if a limit is not an integer itself."""
    format_ = "int32" if validation.format == "int32" else ""
    least, most = (-(2**31), 2**31 - 1) if format_ else (None, None)
    for limit in (validation.minimum, validation.maximum):
        if limit is not None and not fits(limit, "integer", format_):
            return None
    if validation.minimum is not None:
        least = to_int64(validation.minimum) + validation.exclusive_minimum
    if validation.maximum is not None:
        most = to_int64(validation.maximum) - validation.exclusive_maximum
    return least, most


def _int_or_string(x: str, schema: Structural, functions: Functions) -> str:
    branches = schema.validation.any_of
    either = not branches or {_only_type(branch) for branch in branches} == {"integer", "string"}
    if not either or _has(schema.validation, *_LIMITS, "enum", "all_of", "one_of", "not_"):
        return f"(type({x}) is int or type({x}) is str) and {functions.constant(_validate(schema))}({x})"
    is_string = _all([f"type({x}) is str", *_string_conditions(x, schema.validation, functions)])
    return f"(type({x}) is int or {is_string})"


def _only_type(branch: NestedValueValidation) -> Json:
    """The type that a branch allows, None if the branch has other keywords."""
    more = branch.properties or branch.items or branch.additional_properties or branch.validation is not NO_VALIDATION
    return None if more else branch.forbidden.get("type")


def _untyped(x: str, schema: Structural, functions: Functions) -> str:
    """Any value but null, if the node declares nothing."""
    if not schema.preserve_unknown_fields or schema.items or schema.additional_properties is not None:
        return "False"
    if schema is not IDENTITY:
        functions.inexact()
    if schema.validation is NO_VALIDATION:
        return f"{x} is not None"
    return f"{x} is not None and {functions.constant(_validate(schema))}({x})"


# -- lists and maps ---------------------------------------------------------------------------------------------------


def _each(values: str, schema: Structural, functions: Functions) -> str:
    """A condition that all of the values are clean."""
    holds = condition("x", schema, functions)
    if plain := _PLAIN.get(holds):
        return f"{functions.constant({plain}.issuperset)}(map(type, {values}))"
    return f"all(map({functions.function(schema)}, {values}))"


_PLAIN: Final = {f"type(x) is {kind.__name__}": kind for kind in (str, bool, int)}


def _list(x: str, schema: Structural, functions: Functions) -> str:
    validation, items = schema.validation, schema.items
    holds = [f"type({x}) is list", *_between(f"len({x})", validation.min_items, validation.max_items)]
    if items is not None:
        holds.append(_each(x, items, functions))
    else:
        functions.inexact()
        if not schema.preserve_unknown_fields:
            holds.append(f"all(map({functions.constant(_is_scalar)}, {x}))")
    if schema.list_type in ("set", "map"):
        holds.append(f"(len({x}) < 2 or {_distinct(x, schema, functions)})")
    if _has(validation, "enum", *_JUNCTORS):
        holds.append(f"{functions.constant(_validate(schema))}({x})")
    return _all(holds)


_SCALARS: Final = frozenset({"string", "boolean", "integer", "number"})


def _distinct(x: str, schema: Structural, functions: Functions) -> str:
    """A condition that no item repeats. It may be too strict: 1, 1.0 and true are equal in Python, but not in Go."""
    items, keys = schema.items, schema.list_map_keys
    if items is not None and not items.nullable:
        if schema.list_type == "set" and items.type in _SCALARS:
            return f"len({{*{x}}}) == len({x})"
        kinds = {items.properties[key].type if key in items.properties else "" for key in keys}
        if schema.list_type == "map" and items.type == "object" and keys and kinds <= _SCALARS:
            key = ", ".join(f"i.get({name!a})" for name in keys)
            return f"len({{({key}) for i in {x}}}) == len({x})"
    list_alone = Structural(type="array", list_type=schema.list_type, list_map_keys=keys)
    return f"not {functions.constant(partial(listtype.has_errors, schema=list_alone))}({x})"


def _map(x: str, schema: Structural, functions: Functions) -> str:
    """An object without properties: a map."""
    validation = schema.validation
    holds = [f"type({x}) is dict", *_between(f"len({x})", validation.min_properties, validation.max_properties)]
    additional = schema.additional_properties
    if isinstance(additional, Structural):
        holds.append(_each(f"{x}.values()", additional, functions))
    elif additional is None and not schema.preserve_unknown_fields:
        holds.append(f"not {x}")
    else:
        functions.inexact()
        if additional is not None:
            holds.append(f"all(map({functions.constant(_undeclared(schema))}, {x}.values()))")
    return _all(holds)


_CONDITIONS: Final = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "array": _list,
    "object": _map,
    "": _untyped,
}


# -- objects ----------------------------------------------------------------------------------------------------------


def _is_struct(schema: Structural) -> bool:
    """Whether a node is an object with properties, or with keywords about the presence of fields."""
    if schema.type not in ("object", "") or schema.int_or_string:
        return False
    if schema.properties or schema.embedded_resource:
        return True
    return schema.type == "object" and _has(schema.validation, "required", "enum", *_JUNCTORS)


def _undeclared(schema: Structural) -> Accepts:
    """The check of a field without a schema. Under `additionalProperties: true`, pruning empties objects in it."""
    if schema.additional_properties is True:
        return _is_scalar
    if schema.additional_properties is None and schema.preserve_unknown_fields:
        return is_anything
    return _never


def _never(_: Json) -> bool:
    return False


def _room(schema: Structural, functions: Functions) -> Iterator[str]:
    """Count what defaults add to an object, as if all of them were missing."""
    added = sum(
        len(name) + default_size(inner) for name, inner in schema.properties.items() if inner.default is not MISSING
    )
    if added:
        yield f"{functions.room()}[0] -= {added}"
        yield f"if {functions.room()}[0] < 0: return False"


def _narrow(schema: Structural, functions: Functions, old: str) -> Iterator[str]:
    """The body of a function that looks up each declared property."""
    properties = schema.properties
    if schema.preserve_unknown_fields or schema.embedded_resource:
        functions.inexact()
    if not schema.preserve_unknown_fields:
        names = properties.keys() | META if schema.embedded_resource else properties.keys()
        yield f"if not {functions.constant(frozenset(names).issuperset)}(x): return False"
    if undeclared := frozenset(schema.validation.required) - properties.keys():
        yield f"if not x.keys() >= {functions.constant(undeclared)}: return False"
    for name, inner in properties.items():
        holds = condition("v", inner, functions)
        if old and (_is_struct(inner) or inner.type in ("object", "array")):
            holds = _unless_kept(holds, f"{old}.get({name!a}, {functions.constant(_ABSENT)})", inner, functions)
        if inner.default is not MISSING and _has_clean_default(name, schema):
            default = functions.constant(inner.default)
            if isinstance(inner.default, (dict, list)):
                default = f"{functions.constant(copy)}({default})"
            yield f"v = x[{name!a}] if {name!a} in x else x.setdefault({name!a}, {default})"
            yield f"if not ({holds}): return False"
        else:
            yield f"if {name!a} in x:"
            yield f"    v = x[{name!a}]"
            yield f"    if not ({holds}): return False"
            if inner.default is not MISSING or name in schema.validation.required:
                yield "else: return False"


def _unless_kept(holds: str, before: str, schema: Structural, functions: Functions) -> str:
    """The condition `holds` of a part, unless it is the old object's, the expression `before`."""
    if _is_struct(schema):
        holds = f"({functions.change(schema)}(v, {before}) if type({before}) is dict else {holds})"
    return f"v is {before} or ({holds})"


_ABSENT: Final = object()


def _wide(schema: Structural, functions: Functions, old: str) -> Iterator[str]:
    """The body of a function that loops over the members of the object."""
    properties, additional = schema.properties, schema.additional_properties
    defaulted = {name: inner.default for name, inner in properties.items() if inner.default is not MISSING}
    filled = {name: default for name, default in defaulted.items() if _has_clean_default(name, schema)}
    if filled:
        yield f"for name, default in {functions.constant(filled)}.items():"
        yield f"    if name not in x: x[name] = {functions.constant(copy)}(default)"
    if needed := frozenset({*schema.validation.required, *defaulted}) - filled.keys():
        yield f"if not x.keys() >= {functions.constant(needed)}: return False"
    table = functions.table({**dict.fromkeys(META, ANYTHING), **properties} if schema.embedded_resource else properties)
    if isinstance(additional, Structural):
        fallback = functions.function(additional)
    else:
        undeclared = _undeclared(schema)
        if undeclared is not _never:
            functions.inexact()
        fallback = functions.constant(undeclared)
    yield "for name, value in x.items():"
    if old:
        yield f"    if value is {old}.get(name, {functions.constant(_ABSENT)}): continue"
    yield f"    if not {table}.get(name, {fallback})(value): return False"


def _has_clean_default(name: str, schema: Structural) -> bool:
    """Whether pruning and coercion leave a property's default unchanged, so that it may be filled in before them."""
    if schema.embedded_resource and name in META:
        return False
    inner = schema.properties[name]
    value = copy(inner.default)
    prune(value, inner)
    drop_nulls(value, inner)
    try:
        embedded.coerce(value, inner, drop_malformed=False)
    except embedded.MalformedMetadata:
        return False
    return equal(value, inner.default)


def _whole(schema: Structural, functions: Functions) -> Iterator[str]:
    """The conditions for an object as a whole."""
    yield from _between("len(x)", schema.validation.min_properties, schema.validation.max_properties)
    if schema.embedded_resource:
        yield f"{functions.constant(embedded.is_clean)}(x)"
    if not _has(schema.validation, "enum", *_JUNCTORS):
        return
    try:
        yield _all(_presence(schema.validation, MAX_NESTED))
    except _NotPresence:
        object_alone = Structural(type="object", validation=schema.validation)
        yield f"{functions.constant(_validate(object_alone))}(x)"


class _NotPresence(Exception):
    """A junctor is about more than the presence of fields."""


def _presence(validation: ValueValidation, levels: int) -> Iterator[str]:
    """Junctors about the presence of fields, exactly. Raises _NotPresence.

    `oneOf: [{required: [a]}, {required: [b]}]` becomes `(('a' in x) + ('b' in x)) == 1`.
    """
    if _has(validation, "enum"):
        raise _NotPresence
    junctors = ((validation.all_of, " and ", ""), (validation.any_of, " or ", ""), (validation.one_of, " + ", " == 1"))
    for branches, operator, rest in junctors:
        if branches:
            yield f"({operator.join(_branch(branch, levels) for branch in branches)}){rest}"
    if validation.not_:
        yield f"not {_branch(validation.not_, levels)}"


def _branch(branch: NestedValueValidation, levels: int) -> str:
    validation = branch.validation
    if branch.forbidden or branch.properties or branch.items or branch.additional_properties:
        raise _NotPresence
    if not levels or _has(validation, *_BEYOND_PRESENCE) or len(validation.required) > MAX_NESTED:
        raise _NotPresence
    return f"({_all([*(f'{name!a} in x' for name in validation.required), *_presence(validation, levels - 1)])})"
