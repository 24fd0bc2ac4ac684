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

from collections.abc import Callable, Iterable, Sequence
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
from apiserver.schema.structural import NestedValueValidation, Structural
from apiserver.schema.trail import Trail, written

if TYPE_CHECKING:
    from apiserver.schema.ratcheting import Correlated

# Validation stops at so many errors, or so many characters of paths in them: it takes time, and nobody is told.
MAX_FOUND: Final = 10 * MAX_TOLD_ERRORS
MAX_FOUND_TEXT: Final = 64 << 20

# Rules of CEL are not run over an object with one of these errors (upstream's hasBlockingErr).
BLOCKING: Final = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip

Found: TypeAlias = list[FieldError]
Check: TypeAlias = "Callable[[Json, Trail, Found, Correlated | None], int]"
"""(value, where it is, errors found so far, its correlation when ratcheting) → matches beyond those that are sure."""


def validate(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a value. `path` is where the value is; texts are relative to it."""
    return validator(schema).validate(value, path=path)


def validate_default(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a default.

    Upstream validates defaults by another rendering of the schema: x-kubernetes-int-or-string does not imply types
    there, and formats count even where they are not recognized.
    """
    return Validator(schema, for_default=True).validate(value, path=path)


def blocks_rules(errors: Iterable[FieldError]) -> bool:
    return any(error.reason in BLOCKING for error in errors)


class Validator:
    """A schema, compiled as far as values have needed it."""

    __slots__ = ("_root",)

    def __init__(self, schema: Structural, *, for_default: bool = False) -> None:
        self._root = _Node(schema, for_default=for_default)

    def validate(self, value: Json, *, path: Path = "", old: Correlated | None = None) -> list[FieldError]:
        """All errors; with `old`, the correlation of the value with its old self, without those of unchanged nodes."""
        found: Found = []
        _walk(self._root, value, None, found, old)
        return _told(found, path) if found else found

    def is_valid(self, value: Json) -> bool:
        """Whether there are no errors at all. The first one ends the walk."""
        try:
            _walk(self._root, value, None, _NothingFound(), None)
        except _Invalid:
            return False
        return True


class _Invalid(Exception):
    """An error was found."""


class _NothingFound(list[FieldError]):
    """A list that takes no errors."""

    def append(self, _error: FieldError) -> None:
        raise _Invalid

    def extend(self, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self.append(error)


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

    __slots__ = ("for_default", "format", "schema", "types")

    def __init__(self, schema: Structural | NestedValueValidation, *, for_default: bool) -> None:
        super().__init__()
        self.schema = schema
        self.for_default = for_default
        self.types = _types(schema, for_default=for_default)
        self.format = schema.validation.format
        if not for_default and not formats.is_recognized(self.format, self.only_type):
            self.format = ""

    def __missing__(self, kind: type) -> tuple[int, Sequence[Check]]:
        self[kind] = compiled = _for_null(self) if kind is _NULL else _for_value(self, kind)
        return compiled

    def below(self, schema: Structural | NestedValueValidation) -> _Node:
        return _Node(schema, for_default=self.for_default)

    @property
    def only_type(self) -> str:
        return self.types[0] if len(self.types) == 1 else ""


def _types(schema: Structural | NestedValueValidation, *, for_default: bool) -> tuple[str, ...]:
    """The types allowed, none if all are."""
    if isinstance(schema, NestedValueValidation):  # as in anyOf: [{type: integer}, {type: string}], only there
        type_ = schema.forbidden.get("type", "")
    elif schema.int_or_string and not for_default:
        return ("integer", "string")
    else:
        type_ = schema.type
    return (type_,) if type_ else ()


def _walk(node: _Node, value: Json, trail: Trail, found: Found, old: Correlated | None) -> int:
    """Check a value and all below it. The answer is the number of matches."""
    matches, checks = node[type(value)]
    if old is not None and old.equal():
        return matches  # KEP-4008: what did not change may stay wrong
    for check in checks:
        matches += check(value, trail, found, old)
    return matches


def is_enough(found: Found) -> bool:
    """Whether to stop: so many errors were found that nobody will read them."""
    path = found[-1].field or found[-1].detail
    return len(found) >= MAX_FOUND or len(found) * len(path) >= MAX_FOUND_TEXT


_NULL: Final = type(None)


def _for_null(node: _Node) -> tuple[int, Sequence[Check]]:
    """Null meets two checks only. No enum allows it, even one that lists it."""
    checks: list[Check] = []
    types = ",".join(node.types)
    if types and not (isinstance(node.schema, Structural) and node.schema.nullable):
        checks.append(_fails_with(types, "null"))
    if node.schema.validation.enum:
        checks.append(_enum_check(node, _NULL))
    return 1, checks


def _for_value(node: _Node, kind: type) -> tuple[int, Sequence[Check]]:
    matches = 4  # the node itself, anyOf to not (they apply, and match whatever comes out), enum
    checks: list[Check | None] = []
    if node.types or node.format:
        matches += 2
        checks.append(_type_check(node, kind))
    checks += _quantor_checks(node)
    if kind is str:
        matches += 1
        checks.append(_string_check(node))
        if is_valid := formats.checker(node.format):
            matches += 1
            checks.append(_format_check(node.format, is_valid))
    elif kind in (int, float):
        matches += 2
        checks.append(_number_check(node, kind))
    elif kind is list:
        matches += 2
        checks.append(_array_check(node))
    if node.schema.validation.enum:
        checks.append(_enum_check(node, kind))
    if kind is dict:
        matches += 1
        checks.append(_object_check(node))
    return matches, [check for check in checks if check is not None]


# -- type -------------------------------------------------------------------------------------------------------------

_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_GO_TYPES: Final = {int: "int64", float: "float64"}


def _type_check(node: _Node, kind: type) -> Check | None:
    """Does the type fit? Where there is a format, upstream's notion of a type gets mixed up with it."""
    types, format_ = node.types, node.format
    actual, go_type = _TYPES[kind], _GO_TYPES.get(kind, "")
    numeric = "integer" in types or "number" in types
    if actual in types or (kind is int and numeric):
        return None
    if format_ and kind in (str, list) and not numeric:
        return None  # for upstream any string and any array has that format
    if format_ and kind not in (str, list) and go_type != format_:
        fails = _fails_with(format_, go_type)
    else:
        fails = _fails_with(",".join(types), actual)
    if kind is float and "integer" in types:
        return lambda value, trail, found, old: 0 if is_json_integer(value) else fails(value, trail, found, old)
    return fails


def _fails_with(expected: str, actual: str) -> Check:
    """A check of a type that is known to be wrong, and therefore does not match."""

    def check(_value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        found.append(_type_error(written(trail), expected, actual))
        return -1

    return check


def _type_error(path: Path, expected: str, actual: str) -> FieldError:
    return of_wrong_type(path, actual, f"{path} in body must be of type {expected}: {quote(actual)}")


# -- anyOf, oneOf, allOf, not -----------------------------------------------------------------------------------------


def _quantor_checks(node: _Node) -> list[Check]:
    """Branches are validated without ratcheting: a quantor's errors go when its own node did not change."""
    v = node.schema.validation
    quantors = ((_any_of, v.any_of), (_one_of, v.one_of), (_all_of, v.all_of), (_not, (v.not_,) if v.not_ else ()))
    return [quantor([node.below(schema) for schema in schemas]) for quantor, schemas in quantors if schemas]


def _any_of(branches: list[_Node]) -> Check:
    def check(value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        best, best_errors = -1, found[:0]
        for branch in branches:
            errors: Found = []
            matches = _walk(branch, value, trail, errors, None)
            if not errors:
                return matches
            if matches > best:
                best, best_errors = matches, errors
        found.append(_without_field(f"{quote(written(trail))} must validate at least one schema (anyOf)"))
        found.extend(best_errors)
        return best

    return check


def _one_of(branches: list[_Node]) -> Check:
    def check(value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        valid, valid_matches = 0, 0
        best, best_errors = -1, found[:0]
        for branch in branches:
            errors: Found = []
            matches = _walk(branch, value, trail, errors, None)
            if not errors:
                valid += 1
                valid_matches = matches
            elif matches > best:
                best, best_errors = matches, errors
        if valid == 1:
            return valid_matches
        outcome = f"Found {valid} valid alternatives" if valid else "Found none valid"
        found.append(
            _without_field(f"{quote(written(trail))} must validate one and only one schema (oneOf). {outcome}")
        )
        if valid:
            return 0
        found.extend(best_errors)
        return best

    return check


def _all_of(branches: list[_Node]) -> Check:
    def check(value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        matches, valid = 0, 0
        for branch in branches:
            before = len(found)
            matches += _walk(branch, value, trail, found, None)
            valid += len(found) == before
        if valid < len(branches):
            outcome = "" if valid else ". None validated"
            found.append(_without_field(f"{quote(written(trail))} must validate all the schemas (allOf){outcome}"))
        return matches

    return check


def _not(branches: list[_Node]) -> Check:
    def check(value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        errors: Found = []
        _walk(branches[0], value, trail, errors, None)
        if not errors:
            found.append(_without_field(f"{quote(written(trail))} must not validate the schema (not)"))
        return 0

    return check


def _without_field(text: str) -> FieldError:
    return invalid("", "", text)


# -- strings and numbers ----------------------------------------------------------------------------------------------


def _string_check(node: _Node) -> Check | None:
    """maxLength, minLength, pattern: the first that fails. Lengths count characters, whatever the message says."""
    validation = node.schema.validation
    longest, shortest, pattern = validation.max_length, validation.min_length, validation.pattern
    if longest is None and shortest is None and not pattern:
        return None
    search = patterns.compile(pattern).search if pattern else None

    def check(value: str, trail: Trail, found: Found, _old: Correlated | None) -> int:
        if longest is not None and len(value) > longest:
            found.append(too_long(written(trail), longest))
        elif shortest is not None and len(value) < shortest:
            path = written(trail)
            found.append(invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        elif search is not None and not search(value):
            path = written(trail)
            found.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        return 0

    return check


def _format_check(format_: str, is_valid: formats.Check) -> Check:
    def check(value: str, trail: Trail, found: Found, _old: Correlated | None) -> int:
        if not is_valid(value):
            found.append(_type_error(written(trail), format_, value))
        return 0

    return check


def _number_check(node: _Node, kind: type) -> Check | None:
    type_ = node.only_type if node.only_type in formats.NUMERIC else ""
    format_ = node.format if node.format in formats.NUMERIC.get(type_, ()) else ""
    tests = numbers.tests(kind, type_, format_, node.schema.validation)
    if not tests:
        return None

    def check(value: float, trail: Trail, found: Found, _old: Correlated | None) -> int:
        for test in tests:
            if error := test(value, trail):
                found.append(error)
        return 0

    return check


# -- arrays and objects -----------------------------------------------------------------------------------------------


def _array_check(node: _Node) -> Check | None:
    fewest, most = node.schema.validation.min_items, node.schema.validation.max_items
    items = node.below(node.schema.items) if node.schema.items is not None else None
    if items is None and fewest is None and most is None:
        return None

    def check(value: list[Json], trail: Trail, found: Found, old: Correlated | None) -> int:
        matches = 0
        if items is not None:
            before = len(found)
            for n, item in enumerate(value):
                sure, checks = items[type(item)]
                if not checks:
                    matches += sure
                    continue
                matches += _walk(items, item, (trail, n), found, None if old is None else old.index(n))
                if len(found) > before and is_enough(found):
                    break
        if fewest is not None and len(value) < fewest:
            path = written(trail)
            found.append(invalid(path, len(value), f"{path} in body should have at least {fewest} items"))
        if most is not None and len(value) > most:
            found.append(too_many(written(trail), len(value), most))
        return matches

    return check


def _object_check(node: _Node) -> Check | None:
    validation = node.schema.validation
    fewest, most, needed = validation.min_properties, validation.max_properties, validation.required
    properties = {name: node.below(inner) for name, inner in node.schema.properties.items()}
    additional = node.schema.additional_properties
    values = node.below(additional) if not isinstance(additional, bool | None) else None
    unbounded = values is None and additional is not False and fewest is None and most is None
    if unbounded and not properties and not needed:
        return None

    def check(value: Object, trail: Trail, found: Found, old: Correlated | None) -> int:
        matches, before = 0, len(found)
        if fewest is not None and len(value) < fewest:
            path = written(trail)
            found.append(invalid(path, len(value), f"{path} in body should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            found.append(too_many(written(trail), len(value), most))
        for name, item in value.items():
            node = properties.get(name, values)
            if node is not None:
                sure, checks = node[type(item)]
                if not checks:
                    matches += sure
                    continue
                step = name if trail is not None or node is not values else f".{name}"
                ratchets = old is not None and (trail is not None or name not in _TYPE_META)
                below = (trail, step) if step or trail is not None else None
                matches += _walk(node, item, below, found, old.key(name) if old is not None and ratchets else None)
            elif additional is False:
                path = written(trail)
                found.append(invalid(path, name, f"{path}.{name} in body is a forbidden property"))
            if len(found) > before and is_enough(found):
                break
        if needed:
            found.extend(required(f"{written(trail)}.{name}") for name in needed if name not in value)
        return matches

    return check


_TYPE_META: Final = ("apiVersion", "kind")  # they change unseen: old and new are of the version asked for


# -- enum -------------------------------------------------------------------------------------------------------------


def _enum_check(node: _Node, kind: type) -> Check:
    """Of a definition that is in force the enum has been stored: what was 1.0 was written as 1 and is an integer."""
    members: Sequence[Json] = node.schema.validation.enum
    if not node.for_default:
        members = [decode_stored(encode(member, sort_keys=True)) for member in members]
    told = [member if isinstance(member, str) else compact_json(member) for member in members]
    is_member = _membership(kind, members)

    def check(value: Json, trail: Trail, found: Found, _old: Correlated | None) -> int:
        if not is_member(value):
            found.append(not_supported(written(trail), value, told))
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
