"""When is a value clean under a node of a schema? The answer as Python source, for `compiled`.

A condition is an expression over a variable. It may be false for a clean value, but it never holds for one that pruning,
null dropping, embedded metadata or validation would change or complain of. What is common is written out; everything
else asks the validator about this one node, so the rules of validation stand in one place.

Objects with properties are functions, which fill in defaults. A default is filled in only if it is unsuspicious itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from typing import Final, Protocol, TypeAlias

from apiserver.api.types import Json
from apiserver.api.values import copy, equal
from apiserver.schema import embedded, formats, listtype, patterns
from apiserver.schema.defaulting import drop_nulls
from apiserver.schema.numbers import fits, to_int64
from apiserver.schema.pruning import META, prune
from apiserver.schema.structural import MISSING, NO_VALIDATION, NestedValueValidation, Structural, ValueValidation
from apiserver.schema.validation import Validator

WIDE: Final = 24
"""An object with more properties goes through those it has, instead of looking for each that it may have."""
MAX_NESTED: Final = 8
"""Levels of quantors, and names in a branch, that are written out."""
MAX_REMEMBERED: Final = 256
MAX_REMEMBERED_LENGTH: Final = 64
"""Texts that a pattern or a format has accepted, and their characters: the same ones come again and again."""

Accepts: TypeAlias = Callable[[Json], bool]
ANYTHING: Final = Structural(preserve_unknown_fields=True)
NOTHING: Final = Structural()


class Functions(Protocol):
    """Names for what generated source refers to."""

    def constant(self, value: object) -> str: ...

    def function(self, schema: Structural) -> str:
        """The function `accepts` that `source` gives for a node."""
        ...

    def table(self, properties: dict[str, Structural]) -> str:
        """A dict of such functions."""
        ...


def source(schema: Structural, functions: Functions) -> str:
    """A function `accepts(x)` that fills in the defaults in a value, and says whether it is clean."""
    if not _is_record(schema):
        return f"def accepts(x):\n    return {condition('x', schema, functions)}\n"
    narrow = schema.additional_properties is None and len(schema.properties) <= WIDE
    lines = [f"if type(x) is not dict: return {'x is None' if _takes_null(schema) else False}"]
    lines += _narrow(schema, functions) if narrow else _wide(schema, functions)
    lines.append(f"return {_all(_whole(schema, functions))}")
    return "def accepts(x):\n    " + "\n    ".join(lines) + "\n"


def condition(x: str, schema: Structural, functions: Functions) -> str:
    """An expression that holds only if the variable `x` is clean."""
    if _is_record(schema):
        return f"{functions.function(schema)}({x})"
    if schema.int_or_string:
        holds = _int_or_string(x, schema, functions)
    else:
        holds = _CONDITIONS[schema.type](x, schema, functions)
    if _takes_null(schema):
        return f"({x} is None or {holds})"
    return holds


def _all(conditions: Iterable[str]) -> str:
    return " and ".join(conditions) or "True"


def _takes_null(schema: Structural) -> bool:
    return schema.nullable and not schema.validation.enum


def is_anything(_: Json) -> bool:
    return True


def _is_scalar(value: Json) -> bool:
    return type(value) is not dict and type(value) is not list


# -- scalars ----------------------------------------------------------------------------------------------------------

_QUANTORS: Final = ("all_of", "any_of", "one_of", "not_")
_BEYOND_PRESENCE: Final = tuple(one.name for one in fields(ValueValidation) if one.name not in ("required", *_QUANTORS))
_LIMITS: Final = ("format", "maximum", "minimum", "multiple_of")


def _between(number: str, least: int | None, most: int | None) -> Iterator[str]:
    if least is not None or most is not None:
        yield f"{'' if least is None else f'{least} <= '}{number}{'' if most is None else f' <= {most}'}"


def _says(validation: ValueValidation, *keywords: str) -> bool:
    """Whether any of these is given."""
    return any(getattr(validation, name) is not getattr(NO_VALIDATION, name) for name in keywords)


def _ask(schema: Structural) -> Accepts:
    """The validator's answer for values that have nothing below them, or for what is said of them as a whole."""
    return Validator(
        Structural(type=schema.type, int_or_string=schema.int_or_string, validation=schema.validation)
    ).is_valid


def _text(x: str, schema: Structural, functions: Functions) -> str:
    if _says(schema.validation, *_QUANTORS):
        return f"type({x}) is str and {functions.constant(_Remembered(_ask(schema)))}[{x}]"
    return _all([f"type({x}) is str", *_of_text(x, schema.validation, functions)])


def _of_text(x: str, validation: ValueValidation, functions: Functions) -> Iterator[str]:
    """What must hold of a string."""
    yield from _between(f"len({x})", validation.min_length, validation.max_length)
    if validation.enum:
        yield f"{x} in {functions.constant(frozenset(one for one in validation.enum if type(one) is str))}"
    if validation.pattern:
        yield f"{functions.constant(_Remembered(patterns.compile(validation.pattern).search))}[{x}]"
    if validation.format and (is_valid := formats.checker(validation.format)):
        yield f"{functions.constant(_Remembered(is_valid))}[{x}]"


class _Remembered(dict[str, bool]):
    """A check of texts that knows again what it has accepted."""

    def __init__(self, check: Callable[[str], bool]) -> None:
        super().__init__()
        self._check = check

    def __missing__(self, text: str) -> bool:
        holds = self._check(text)
        if holds and len(text) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_REMEMBERED:
                self.clear()
            self[text] = True
        return holds


def _boolean(x: str, schema: Structural, functions: Functions) -> str:
    if _says(schema.validation, "enum", *_QUANTORS):
        return f"type({x}) is bool and {functions.constant(_ask(schema))}({x})"
    return f"type({x}) is bool"


def _number(x: str, schema: Structural, functions: Functions) -> str:
    is_number = f"(type({x}) is float or type({x}) is int)"
    if _says(schema.validation, *_LIMITS, "enum", *_QUANTORS):
        return f"{is_number} and {functions.constant(_ask(schema))}({x})"
    return is_number


def _integer(x: str, schema: Structural, functions: Functions) -> str:
    if not _says(schema.validation, *_LIMITS, "enum", *_QUANTORS):
        return f"type({x}) is int"
    bounds = _bounds(schema.validation)
    if bounds is None or _says(schema.validation, "multiple_of", "enum", *_QUANTORS):
        return f"type({x}) is int and {functions.constant(_ask(schema))}({x})"
    return _all([f"type({x}) is int", *_between(x, *bounds)])


def _bounds(validation: ValueValidation) -> tuple[int | None, int | None] | None:
    """The least and the greatest integer, where there are any; None if a limit is not one itself."""
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
    if not either or _says(schema.validation, *_LIMITS, "enum", "all_of", "one_of", "not_"):
        return f"(type({x}) is int or type({x}) is str) and {functions.constant(_ask(schema))}({x})"
    is_text = _all([f"type({x}) is str", *_of_text(x, schema.validation, functions)])
    return f"(type({x}) is int or {is_text})"


def _only_type(branch: NestedValueValidation) -> Json:
    """The type that a branch allows, None if it says anything else."""
    more = branch.properties or branch.items or branch.additional_properties or branch.validation is not NO_VALIDATION
    return None if more else branch.forbidden.get("type")


def _untyped(x: str, schema: Structural, functions: Functions) -> str:
    """Anything, if nothing is described."""
    if not schema.preserve_unknown_fields or schema.items or schema.additional_properties is not None:
        return "False"
    if schema.validation is NO_VALIDATION:
        return f"{x} is not None"
    return f"{x} is not None and {functions.constant(_ask(schema))}({x})"


# -- lists and maps ---------------------------------------------------------------------------------------------------


def _each(values: str, schema: Structural, functions: Functions) -> str:
    """All of the values are clean."""
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
    elif not schema.preserve_unknown_fields:
        holds.append(f"all(map({functions.constant(_is_scalar)}, {x}))")
    if schema.list_type in ("set", "map"):
        holds.append(f"(len({x}) < 2 or {_distinct(x, schema, functions)})")
    if _says(validation, "enum", *_QUANTORS):
        holds.append(f"{functions.constant(_ask(schema))}({x})")
    return _all(holds)


_SCALARS: Final = frozenset({"string", "boolean", "integer", "number"})


def _distinct(x: str, schema: Structural, functions: Functions) -> str:
    """No item twice. Python takes 1, 1.0 and true for equal and Go does not, so this may be too strict."""
    items, keys = schema.items, schema.list_map_keys
    if items is not None and not items.nullable:
        if schema.list_type == "set" and items.type in _SCALARS:
            return f"len({{*{x}}}) == len({x})"
        kinds = {items.properties[key].type if key in items.properties else "" for key in keys}
        if schema.list_type == "map" and items.type == "object" and keys and kinds <= _SCALARS:
            key = ", ".join(f"i.get({name!a})" for name in keys)
            return f"len({{({key}) for i in {x}}}) == len({x})"
    alone = Structural(type="array", list_type=schema.list_type, list_map_keys=keys)
    return f"not {functions.constant(partial(listtype.has_errors, schema=alone))}({x})"


def _map(x: str, schema: Structural, functions: Functions) -> str:
    """An object without properties of its own."""
    validation = schema.validation
    holds = [f"type({x}) is dict", *_between(f"len({x})", validation.min_properties, validation.max_properties)]
    additional = schema.additional_properties
    if isinstance(additional, Structural):
        holds.append(_each(f"{x}.values()", additional, functions))
    elif additional is None and not schema.preserve_unknown_fields:
        holds.append(f"not {x}")
    elif additional is not None:
        holds.append(f"all(map({functions.constant(_other(schema))}, {x}.values()))")
    return _all(holds)


_CONDITIONS: Final = {
    "string": _text,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "array": _list,
    "object": _map,
    "": _untyped,
}


# -- objects ----------------------------------------------------------------------------------------------------------


def _is_record(schema: Structural) -> bool:
    """Whether it is an object with more to it than being a map."""
    if schema.type not in ("object", "") or schema.int_or_string:
        return False
    if schema.properties or schema.embedded_resource:
        return True
    return schema.type == "object" and _says(schema.validation, "required", "enum", *_QUANTORS)


def _other(schema: Structural) -> Accepts:
    """Whether a field without a schema is clean. Under `additionalProperties: true` pruning empties what it holds."""
    if schema.additional_properties is True:
        return _is_scalar
    if schema.additional_properties is None and schema.preserve_unknown_fields:
        return is_anything
    return _is_nothing


def _is_nothing(_: Json) -> bool:
    return False


def _narrow(schema: Structural, functions: Functions) -> Iterator[str]:
    """Look for each property that there may be."""
    properties = schema.properties
    if not schema.preserve_unknown_fields:
        known = properties.keys() | META if schema.embedded_resource else properties.keys()
        yield f"if not {functions.constant(frozenset(known).issuperset)}(x): return False"
    if undeclared := frozenset(schema.validation.required) - properties.keys():
        yield f"if not x.keys() >= {functions.constant(undeclared)}: return False"
    for name, inner in properties.items():
        holds = condition("v", inner, functions)
        if inner.default is not MISSING and _is_unsuspicious(name, schema):
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


def _wide(schema: Structural, functions: Functions) -> Iterator[str]:
    """Go through the fields that there are."""
    properties, additional = schema.properties, schema.additional_properties
    defaulted = {name: inner.default for name, inner in properties.items() if inner.default is not MISSING}
    filled = {name: default for name, default in defaulted.items() if _is_unsuspicious(name, schema)}
    if filled:
        yield f"for name, default in {functions.constant(filled)}.items():"
        yield f"    if name not in x: x[name] = {functions.constant(copy)}(default)"
    if needed := frozenset({*schema.validation.required, *defaulted}) - filled.keys():
        yield f"if not x.keys() >= {functions.constant(needed)}: return False"
    table = functions.table({**dict.fromkeys(META, ANYTHING), **properties} if schema.embedded_resource else properties)
    other = functions.function(additional) if isinstance(additional, Structural) else functions.constant(_other(schema))
    yield "for name, value in x.items():"
    yield f"    if not {table}.get(name, {other})(value): return False"


def _is_unsuspicious(name: str, schema: Structural) -> bool:
    """Whether a property's default is such that it does not matter whether it is filled in before pruning or after."""
    if schema.embedded_resource and name in META:
        return False
    inner = schema.properties[name]
    value = copy(inner.default)
    prune(value, inner)
    drop_nulls(value, inner)
    try:
        embedded.coerce(value, inner, drop_malformed=False)
    except embedded.Malformed:
        return False
    return equal(value, inner.default)


def _whole(schema: Structural, functions: Functions) -> Iterator[str]:
    """What is said of an object as a whole."""
    yield from _between("len(x)", schema.validation.min_properties, schema.validation.max_properties)
    if schema.embedded_resource:
        yield f"{functions.constant(embedded.is_clean)}(x)"
    if not _says(schema.validation, "enum", *_QUANTORS):
        return
    try:
        yield _all(_presence(schema.validation, MAX_NESTED))
    except _SaysMore:
        alone = Structural(type="object", validation=schema.validation)
        yield f"{functions.constant(_ask(alone))}(x)"


class _SaysMore(Exception):
    """Quantors are about more than which fields an object has."""


def _presence(validation: ValueValidation, levels: int) -> Iterator[str]:
    """What quantors say of the fields that there are, exactly. Raises _SaysMore."""
    if _says(validation, "enum"):
        raise _SaysMore
    quantors = ((validation.all_of, " and ", ""), (validation.any_of, " or ", ""), (validation.one_of, " + ", " == 1"))
    for branches, operator, rest in quantors:
        if branches:
            yield f"({operator.join(_branch(one, levels) for one in branches)}){rest}"
    if validation.not_:
        yield f"not {_branch(validation.not_, levels)}"


def _branch(branch: NestedValueValidation, levels: int) -> str:
    validation = branch.validation
    if branch.forbidden or branch.properties or branch.items or branch.additional_properties:
        raise _SaysMore
    if not levels or _says(validation, *_BEYOND_PRESENCE) or len(validation.required) > MAX_NESTED:
        raise _SaysMore
    return f"({_all([*(f'{name!a} in x' for name in validation.required), *_presence(validation, levels - 1)])})"
