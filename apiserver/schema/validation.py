"""Is a value valid under a structural schema? (upstream's kube-openapi validate package behind apiextensions)

What upstream does, and what therefore holds here:

- Each group of keywords is one check that applies to certain kinds of values (a pattern to strings, a maximum to
  numbers) whatever the `type`. Checks run in the order type, anyOf/oneOf/allOf/not, string, format, number, array,
  enum, object. Of the string checks only the first failure is told, everything else is told completely.
- Where no branch of anyOf or oneOf is valid, the errors of the one with most matches are told, the first among
  equals. A value has as many matches as checks apply to it and to what is below it, and more for some that pass.
- An error whose text was told already is not told again, wherever it was found.
- Texts name the field relative to where validation began: errors of the status subresource have the field `status.x`
  and say `x in body …`, those of a default begin with nothing at all: ` in body must be of type string`.

`uniqueItems` is not here: no CustomResourceDefinition may set it.

A `Validator` compiles a schema lazily: what there is to check for one kind of value at one node is determined when
the first such value comes. Most often there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from apiserver.api.codec import decode_stored, encode
from apiserver.api.errors import MAX_TOLD_ERRORS
from apiserver.api.field import FieldError, Path, child, invalid, not_supported, required, too_long, too_many
from apiserver.api.field import type_invalid as of_wrong_type
from apiserver.api.gotext import compact_json, quote
from apiserver.api.types import Json, Object
from apiserver.api.values import equal
from apiserver.schema import formats, numbers, patterns
from apiserver.schema.numbers import is_json_integer, to_int64
from apiserver.schema.structural import Node, Structural, ValueValidation

if TYPE_CHECKING:
    from apiserver.schema.ratcheting import Correlated

MAX_FOUND: Final = 10 * MAX_TOLD_ERRORS  # then validation stops: it takes time, and nobody is told

# Rules of CEL are not run over an object with one of these errors (upstream's hasBlockingErr).
BLOCKING: Final = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip

Found: TypeAlias = list[FieldError]
Check: TypeAlias = "Callable[[Json, Path, Found, Correlated | None], int]"
"""(value, path, errors found so far, its correlation when ratcheting) → matches beyond those that are sure."""


def validate(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a value. `path` is where the value is; texts are relative to it."""
    return validator(schema).validate(value, path=path)


def validate_default(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a default.

    Upstream validates defaults by another rendering of the schema: x-kubernetes-int-or-string does not imply types
    there, and formats count even where they are not recognized.
    """
    return Validator(schema, for_default=True).validate(value, path=path)


def blocks_rules(errors: Sequence[FieldError]) -> bool:
    return any(error.reason in BLOCKING for error in errors)


class Validator:
    """A schema, compiled as far as values have needed it."""

    __slots__ = ("_root",)

    def __init__(self, schema: Structural, *, for_default: bool = False) -> None:
        self._root = _Node(schema, for_default=for_default)

    def validate(self, value: Json, *, path: Path = "", old: Correlated | None = None) -> list[FieldError]:
        """All errors; with `old`, the correlation of the value with its old self, without those of unchanged nodes."""
        found: Found = []
        _walk(self._root, value, "", found, old)
        return _told(found, path) if found else found


@lru_cache(maxsize=256)
def validator(schema: Structural) -> Validator:
    """The validator of a schema (schemas are compared by identity)."""
    return Validator(schema)


def _told(found: Found, prefix: Path) -> list[FieldError]:
    """Every text once, and fields below the prefix.

    A leading dot comes from a name under the empty root. Errors that are not about a field are about the prefix.
    """
    unique: dict[object, FieldError] = {}
    for error in found:
        reason, name, _, detail = error
        unique.setdefault(detail if reason in _WITH_FIELD_IN_DETAIL else (reason, name, detail), error)
    return [
        error if not prefix and error.field[:1] != "." else error._replace(field=_below(prefix, error.field))
        for error in unique.values()
    ]


_WITH_FIELD_IN_DETAIL: Final = frozenset({"FieldValueInvalid", "FieldValueTypeInvalid"})


def _below(prefix: Path, name: Path) -> Path:
    return child(prefix, name.removeprefix(".")) if name not in ("", ".") else prefix


# -- the walk ---------------------------------------------------------------------------------------------------------


class _Node(dict[type, "tuple[int, Sequence[Check]]"]):
    """A node of a schema: for each kind of value the matches that are sure, and the checks there are to make."""

    __slots__ = ("for_default", "schema")

    def __init__(self, schema: Node, *, for_default: bool) -> None:
        super().__init__()
        self.schema = schema
        self.for_default = for_default

    def __missing__(self, kind: type) -> tuple[int, Sequence[Check]]:
        self[kind] = plan = _compiled(self.schema, kind, for_default=self.for_default)
        return plan


def _walk(node: _Node, value: Json, path: Path, found: Found, old: Correlated | None) -> int:
    """Check a value and all below it. The answer is the number of matches."""
    matches, checks = node[type(value)]
    before = len(found)
    for check in checks:
        matches += check(value, path, found, old)
    if old is not None and len(found) > before and old.equal():
        del found[before:]  # KEP-4008: what did not change may stay wrong
    return matches


def _compiled(schema: Node, kind: type, *, for_default: bool) -> tuple[int, Sequence[Check]]:
    types, nullable = _types(schema, for_default=for_default)
    validation = schema.validation
    format_ = validation.format
    if not for_default and not formats.is_recognized(format_, types[0] if len(types) == 1 else ""):
        format_ = ""
    if kind is _NULL:
        return _compiled_for_null(types, validation, nullable=nullable, for_default=for_default)
    matches = 4  # the node itself, quantors (which apply and match whatever they say), enum
    checks: list[Check | None] = []
    if types or format_:
        matches += 2
        checks.append(_type_check(kind, types, format_))
    checks += _quantor_checks(validation, for_default=for_default)
    if kind is str:
        matches += 1
        checks.append(_string_check(validation))
        if is_valid := formats.checker(format_):
            matches += 1
            checks.append(_format_check(format_, is_valid))
    elif kind in (int, float):
        matches += 2
        checks.append(_number_check(kind, types, format_, validation))
    elif kind is list:
        matches += 2
        checks.append(_array_check(schema, validation, for_default=for_default))
    if validation.enum:
        checks.append(_enum_check(kind, validation.enum, for_default=for_default))
    if kind is dict:
        matches += 1
        checks.append(_object_check(schema, validation, for_default=for_default))
    return matches, [check for check in checks if check is not None]


_NULL: Final = type(None)


def _types(schema: Node, *, for_default: bool) -> tuple[tuple[str, ...], bool]:
    """The types allowed, none if all are, and whether null is allowed, too."""
    if isinstance(schema, Structural):
        type_, int_or_string, nullable = schema.type, schema.int_or_string, schema.nullable
    else:  # only as anyOf: [{type: integer}, {type: string}]
        type_, int_or_string, nullable = schema.forbidden.get("type", ""), False, False
    if int_or_string and not for_default:
        return ("integer", "string"), nullable
    return ((type_,) if type_ else ()), nullable


def _compiled_for_null(
    types: tuple[str, ...], validation: ValueValidation, *, nullable: bool, for_default: bool
) -> tuple[int, Sequence[Check]]:
    """Null meets two checks only. No enum allows it, even one that lists it."""
    checks: list[Check] = []
    if types and not nullable:
        checks.append(_fails_with(lambda path: _type_error(path, ",".join(types), "null")))
    if validation.enum:
        checks.append(_enum_check(_NULL, validation.enum, for_default=for_default))
    return 1, checks


# -- type -------------------------------------------------------------------------------------------------------------

_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_GO_TYPES: Final = {int: "int64", float: "float64"}


def _type_check(kind: type, types: tuple[str, ...], format_: str) -> Check | None:
    """Does the type fit? Where there is a format, upstream's notion of a type gets mixed up with it."""
    actual, go_type = _TYPES[kind], _GO_TYPES.get(kind, "")
    numeric = "integer" in types or "number" in types
    if actual in types or (actual == "integer" and numeric):
        return None
    if format_ and kind not in (str, list):
        expected, actual = (",".join(types), actual) if go_type == format_ else (format_, go_type)
    elif format_ and not numeric:
        return None  # a string or an array passes for any format
    else:
        expected = ",".join(types)
    fails = _fails_with(lambda path: _type_error(path, expected, actual))
    if kind is float and "integer" in types:
        return lambda value, path, found, old: 0 if is_json_integer(value) else fails(value, path, found, old)
    return fails


def _fails_with(error: Callable[[Path], FieldError]) -> Check:
    """A check of something that is known to be wrong, and therefore does not match."""

    def check(_value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        found.append(error(path))
        return -1

    return check


def _type_error(path: Path, expected: str, actual: str) -> FieldError:
    return of_wrong_type(path, actual, f"{path} in body must be of type {expected}: {quote(actual)}")


# -- anyOf, oneOf, allOf, not -----------------------------------------------------------------------------------------


def _quantor_checks(validation: ValueValidation, *, for_default: bool) -> list[Check]:
    """Branches are validated without ratcheting: a quantor's errors go when its own node did not change."""
    checks = []
    for check, schemas in (
        (_any_of, validation.any_of),
        (_one_of, validation.one_of),
        (_all_of, validation.all_of),
        (_not, (validation.not_,) if validation.not_ else ()),
    ):
        if schemas:
            checks.append(check([_Node(schema, for_default=for_default) for schema in schemas]))
    return checks


def _any_of(branches: list[_Node]) -> Check:
    def check(value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        best, best_errors = -1, found[:0]
        for branch in branches:
            errors: Found = []
            matches = _walk(branch, value, path, errors, None)
            if not errors:
                return matches
            if matches > best:
                best, best_errors = matches, errors
        found.append(_quantor_error(f"{quote(path)} must validate at least one schema (anyOf)"))
        found += best_errors
        return best

    return check


def _one_of(branches: list[_Node]) -> Check:
    def check(value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        valid, valid_matches = 0, 0
        best, best_errors = -1, found[:0]
        for branch in branches:
            errors: Found = []
            matches = _walk(branch, value, path, errors, None)
            if not errors:
                valid += 1
                valid_matches = matches
            elif matches > best:
                best, best_errors = matches, errors
        if valid == 1:
            return valid_matches
        outcome = f"Found {valid} valid alternatives" if valid else "Found none valid"
        found.append(_quantor_error(f"{quote(path)} must validate one and only one schema (oneOf). {outcome}"))
        if valid:
            return 0
        found += best_errors
        return best

    return check


def _all_of(branches: list[_Node]) -> Check:
    def check(value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        matches, valid = 0, 0
        for branch in branches:
            before = len(found)
            matches += _walk(branch, value, path, found, None)
            valid += len(found) == before
        if valid < len(branches):
            outcome = "" if valid else ". None validated"
            found.append(_quantor_error(f"{quote(path)} must validate all the schemas (allOf){outcome}"))
        return matches

    return check


def _not(branches: list[_Node]) -> Check:
    def check(value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        errors: Found = []
        _walk(branches[0], value, path, errors, None)
        if not errors:
            found.append(_quantor_error(f"{quote(path)} must not validate the schema (not)"))
        return 0

    return check


def _quantor_error(text: str) -> FieldError:
    return invalid("", "", text)


# -- strings ----------------------------------------------------------------------------------------------------------


def _string_check(validation: ValueValidation) -> Check | None:
    """maxLength, minLength, pattern: the first that fails. Lengths count characters, whatever the message says."""
    longest, shortest, pattern = validation.max_length, validation.min_length, validation.pattern
    if longest is None and shortest is None and not pattern:
        return None
    search = patterns.compile(pattern).search if pattern else None

    def check(value: str, path: Path, found: Found, _old: Correlated | None) -> int:
        if longest is not None and len(value) > longest:
            found.append(too_long(path, longest))
        elif shortest is not None and len(value) < shortest:
            found.append(invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        elif search is not None and not search(value):
            found.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        return 0

    return check


def _format_check(format_: str, is_valid: formats.Check) -> Check:
    def check(value: str, path: Path, found: Found, _old: Correlated | None) -> int:
        if not is_valid(value):
            found.append(_type_error(path, format_, value))
        return 0

    return check


# -- numbers ----------------------------------------------------------------------------------------------------------


def _number_check(kind: type, types: tuple[str, ...], format_: str, validation: ValueValidation) -> Check | None:
    type_ = types[0] if len(types) == 1 and types[0] in formats.NUMERIC else ""
    tests = numbers.tests(kind, type_, format_ if format_ in formats.NUMERIC.get(type_, ()) else "", validation)
    if not tests:
        return None

    def check(value: float, path: Path, found: Found, _old: Correlated | None) -> int:
        for test in tests:
            if error := test(value, path):
                found.append(error)
        return 0

    return check


# -- arrays and objects -----------------------------------------------------------------------------------------------


def _array_check(schema: Node, validation: ValueValidation, *, for_default: bool) -> Check | None:
    fewest, most = validation.min_items, validation.max_items
    items = _Node(schema.items, for_default=for_default) if schema.items is not None else None
    if items is None and fewest is None and most is None:
        return None

    def check(value: list[Json], path: Path, found: Found, old: Correlated | None) -> int:
        matches = 0
        if items is not None:
            for n, item in enumerate(value):
                sure, checks = items[type(item)]
                if not checks:
                    matches += sure
                    continue
                matches += _walk(items, item, f"{path}[{n}]", found, None if old is None else old.index(n))
                if len(found) >= MAX_FOUND:
                    break
        if fewest is not None and len(value) < fewest:
            found.append(invalid(path, len(value), f"{path} in body should have at least {fewest} items"))
        if most is not None and len(value) > most:
            found.append(too_many(path, len(value), most))
        return matches

    return check


def _object_check(schema: Node, validation: ValueValidation, *, for_default: bool) -> Check | None:
    fewest, most, needed = validation.min_properties, validation.max_properties, validation.required
    properties = {name: _Node(inner, for_default=for_default) for name, inner in schema.properties.items()}
    additional = schema.additional_properties
    values = _Node(additional, for_default=for_default) if not isinstance(additional, bool | None) else None
    unbounded = values is None and additional is not False and fewest is None and most is None
    if unbounded and not properties and not needed:
        return None

    def check(value: Object, path: Path, found: Found, old: Correlated | None) -> int:
        matches = 0
        if fewest is not None and len(value) < fewest:
            found.append(invalid(path, len(value), f"{path} in body should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            found.append(too_many(path, len(value), most))
        for name, item in value.items():
            node = properties.get(name, values)
            if node is None:
                if additional is False:
                    found.append(invalid(path, name, f"{path}.{name} in body is a forbidden property"))
                continue
            sure, checks = node[type(item)]
            if not checks:
                matches += sure
                continue
            item_path = f"{path}.{name}" if path or node is values else name
            item_old = None if old is None or (not path and name in _TYPE_META) else old.key(name)
            matches += _walk(node, item, item_path, found, item_old)
            if len(found) >= MAX_FOUND:
                break
        for name in needed:
            if name not in value:
                found.append(required(f"{path}.{name}"))
        return matches

    return check


_TYPE_META: Final = ("apiVersion", "kind")  # these changes are invisible, conversion made both sides alike


# -- enum -------------------------------------------------------------------------------------------------------------


def _enum_check(kind: type, members: Sequence[Json], *, for_default: bool) -> Check:
    """Of a definition that is in force the enum has been stored: what was 1.0 was written as 1 and is an integer."""
    if not for_default:
        members = [decode_stored(encode(member, sort_keys=True)) for member in members]
    told = [member if isinstance(member, str) else compact_json(member) for member in members]
    is_member = _membership(kind, members)

    def check(value: Json, path: Path, found: Found, _old: Correlated | None) -> int:
        if not is_member(value):
            found.append(not_supported(path, value, told))
        return 0

    return check


def _membership(kind: type, members: Sequence[Json]) -> Callable[[Json], bool]:
    """A value is a member if Go can convert it to the member's type and then they are equal.

    That takes 1.7 for the integer 1, and the integer 65 for the string "A".
    """
    if kind is _NULL:
        return lambda _: False
    same = [member for member in members if type(member) is kind]
    if kind in (str, bool):
        return frozenset(same).__contains__
    if kind not in (int, float):
        return lambda value: any(equal(value, member) for member in same)
    integers = {member for member in members if type(member) is int}
    floats = {member for member in members if type(member) is float}
    if kind is float:
        return lambda value: value in floats or to_int64(value) in integers
    texts = {member for member in members if type(member) is str}
    return lambda value: value in integers or float(value) in floats or (bool(texts) and _character(value) in texts)


def _character(code: int) -> str:
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
