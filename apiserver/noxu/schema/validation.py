"""Validate values by structural schemas (upstream's kube-openapi validate package behind apiextensions).

Upstream's rules, which therefore hold here:

- Each group of keywords is one check that applies to certain kinds of values (a pattern to strings, a maximum to
  numbers) regardless of the `type`. Checks run in the order type, anyOf/oneOf/allOf/not, string, format, number, array,
  enum, object. Of the string checks only the first failure is reported; all other errors are reported.
- If no branch of anyOf or oneOf is valid, the errors of the branch with most matches are reported, the first among
  equals. A value has as many matches as checks apply to it and to the values in it, and more for some that pass.
- An error with the same text as an earlier one is dropped, wherever it was found.
- Messages name the field relative to where validation starts: errors of the status subresource have the field `status.x`
  and say `x in body …`; those of a default begin with the empty name: ` in body must be of type string`.

`uniqueItems` is not checked: no CustomResourceDefinition may set it.

A `Validator` compiles a schema lazily: the checks for one kind of value at one node are determined when the first such
value comes. Most often there are none.

Ratcheting (`validate_update`): an unchanged value may stay invalid (KEP-4008, as upstream implements it). A node whose
correlated old value is equal has no errors, neither its own nor those of nodes below (`correlation` defines both words).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from noxu.api.codec import decode_stored, encode
from noxu.api.errors import MAX_REPORTED_ERRORS
from noxu.api.field import (
    FieldError,
    Location,
    Path,
    child,
    invalid,
    not_supported,
    path_of,
    required,
    too_long,
    too_many,
)
from noxu.api.field import type_invalid as of_wrong_type
from noxu.cpu_budget import spend
from noxu.go.text import compact_json, quote
from noxu.schema import formats, patterns, scalars
from noxu.schema.correlation import Correlated
from noxu.schema.scalars import is_json_integer, membership
from noxu.schema.structural import NestedValueValidation, Structural, of_schema
from noxu.values import Json, Object

# Validation stops at this number of errors, or of characters in their paths: more take time, and are not reported.
MAX_FOUND: Final = 10 * MAX_REPORTED_ERRORS
MAX_FOUND_TEXT: Final = 4 << 20

# How validation accounts for its work (see `noxu.cpu_budget`).
UNITS_PER_COMPILATION: Final = 10  # of the checks for one kind of value at one node
ITEMS_AT_ONCE: Final = 1024

# CEL rules are not run on an object with one of these errors (upstream's hasBlockingErr).
BLOCKING: Final = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip

Errors: TypeAlias = list[FieldError]
Check: TypeAlias = Callable[[Json, Location, Errors, Correlated | None], int]
"""(value, location, errors found so far, correlated old value when ratcheting) → matches beyond the certain ones."""


def validate(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a value. `path` is the value's; messages name fields relative to it."""
    return validator(schema).validate(value, path=path)


def validate_default(value: Json, schema: Structural, *, path: Path = "") -> list[FieldError]:
    """All errors of a default.

    Upstream validates defaults with another form of the schema: x-kubernetes-int-or-string does not imply types in it,
    and unrecognized formats have an effect.
    """
    return Validator(schema, for_default=True).validate(value, path=path)


def blocks_rules(errors: Iterable[FieldError]) -> bool:
    """Whether an error keeps CEL rules from being run."""
    return any(error.reason in BLOCKING for error in errors)


class Validator:
    """A schema, compiled as far as values have needed it."""

    __slots__ = ("_root",)

    def __init__(self, schema: Structural, *, for_default: bool = False) -> None:
        self._root = _Node(schema, for_default=for_default)

    def validate(self, value: Json, *, path: Path = "", old: Correlated | None = None) -> list[FieldError]:
        """All errors; with `old`, the value correlated with the stored one, except those of unchanged nodes."""
        errors: Errors = []
        _walk(self._root, value, None, errors, old)
        return _reported(errors, path) if errors else errors

    def is_valid(self, value: Json) -> bool:
        """Whether there are no errors. The first one ends the walk."""
        try:
            _walk(self._root, value, None, _RaiseOnError(), None)
        except _Invalid:
            return False
        return True


class _Invalid(Exception):
    """An error was found."""


class _RaiseOnError(list[FieldError]):
    """A list of errors that raises _Invalid for the first one."""

    def append(self, _error: FieldError) -> None:
        raise _Invalid

    def extend(self, errors: Iterable[FieldError]) -> None:
        for error in errors:
            self.append(error)


@of_schema
def validator(schema: Structural) -> Validator:
    """The validator of a schema."""
    return Validator(schema)


def _reported(errors: Errors, prefix: Path) -> list[FieldError]:
    """The errors with equal texts once, and with fields below the prefix.

    A leading dot comes from a name under the empty root. An error without a field is about the prefix.
    """
    unique: dict[object, FieldError] = {}
    for error in errors:
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
    """A node of a schema: for each kind of value (Python type) the certain matches, and the checks to run."""

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
        spend(UNITS_PER_COMPILATION)
        self[kind] = compiled = _for_null(self) if kind is _NULL else _for_value(self, kind)
        return compiled

    def below(self, schema: Structural | NestedValueValidation) -> _Node:
        return _Node(schema, for_default=self.for_default)

    @property
    def only_type(self) -> str:
        return self.types[0] if len(self.types) == 1 else ""


def _types(schema: Structural | NestedValueValidation, *, for_default: bool) -> tuple[str, ...]:
    """The allowed types, () if all are."""
    if isinstance(schema, NestedValueValidation):  # the type in anyOf: [{type: integer}, {type: string}]
        type_ = schema.forbidden.get("type", "")
    elif schema.int_or_string and not for_default:
        return ("integer", "string")
    else:
        type_ = schema.type
    return (type_,) if type_ else ()


def _walk(node: _Node, value: Json, location: Location, errors: Errors, old: Correlated | None) -> int:
    """Check a value and the values in it; returns the number of matches."""
    matches, checks = node[type(value)]
    if old is not None and old.equal():
        return matches  # KEP-4008: an unchanged value may stay invalid
    for check in checks:
        matches += check(value, location, errors, old)
    return matches


def is_enough(errors: Errors) -> bool:
    """Whether to stop: enough errors were found."""
    last = errors[-1]
    return len(errors) >= MAX_FOUND or len(errors) * (len(last.field) + len(last.detail)) >= MAX_FOUND_TEXT


_NULL: Final = type(None)


def _for_null(node: _Node) -> tuple[int, Sequence[Check]]:
    """Only two checks apply to null. No enum allows it, not even one that lists it."""
    checks: list[Check] = []
    types = ",".join(node.types)
    if types and not (isinstance(node.schema, Structural) and node.schema.nullable):
        checks.append(_fails_with(types, "null"))
    if node.schema.validation.enum:
        checks.append(_enum_check(node, _NULL))
    return 1, checks


def _for_value(node: _Node, kind: type) -> tuple[int, Sequence[Check]]:
    matches = 4  # the node, the junctors (which match whatever their result), enum
    checks: list[Check | None] = []
    if node.types or node.format:
        matches += 2
        checks.append(_type_check(node, kind))
    checks += _junctor_checks(node)
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
    """A check of the type, None if it is right. Upstream mixes up types and formats if there is a format."""
    types, format_ = node.types, node.format
    actual, go_type = _TYPES[kind], _GO_TYPES.get(kind, "")
    numeric = "integer" in types or "number" in types
    if actual in types or (kind is int and numeric):
        return None
    if format_ and kind in (str, list) and not numeric:
        return None  # upstream takes any string and any array for one of that format
    if format_ and kind not in (str, list) and go_type != format_:
        fails = _fails_with(format_, go_type)
    else:
        fails = _fails_with(",".join(types), actual)
    if kind is float and "integer" in types:
        return lambda value, location, errors, old: 0 if is_json_integer(value) else fails(value, location, errors, old)
    return fails


def _fails_with(expected: str, actual: str) -> Check:
    """A check that always fails, for a type that is known to be wrong."""

    def check(_value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        errors.append(_type_error(path_of(location), expected, actual))
        return -1

    return check


def _type_error(path: Path, expected: str, actual: str) -> FieldError:
    return of_wrong_type(path, actual, f"{path} in body must be of type {expected}: {quote(actual)}")


# -- anyOf, oneOf, allOf, not -----------------------------------------------------------------------------------------


def _junctor_checks(node: _Node) -> list[Check]:
    """Branches are validated without ratcheting: a junctor's errors are dropped only if its own node did not change."""
    v = node.schema.validation
    junctors = ((_any_of, v.any_of), (_one_of, v.one_of), (_all_of, v.all_of), (_not, (v.not_,) if v.not_ else ()))
    return [junctor([node.below(schema) for schema in schemas]) for junctor, schemas in junctors if schemas]


def _any_of(branches: list[_Node]) -> Check:
    def check(value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        spend(len(branches))
        best, best_errors = -1, errors[:0]
        for branch in branches:
            branch_errors: Errors = []
            matches = _walk(branch, value, location, branch_errors, None)
            if not branch_errors:
                return matches
            if matches > best:
                best, best_errors = matches, branch_errors
        errors.append(_without_field(f"{quote(path_of(location))} must validate at least one schema (anyOf)"))
        errors.extend(best_errors)
        return best

    return check


def _one_of(branches: list[_Node]) -> Check:
    def check(value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        spend(len(branches))
        valid, valid_matches = 0, 0
        best, best_errors = -1, errors[:0]
        for branch in branches:
            branch_errors: Errors = []
            matches = _walk(branch, value, location, branch_errors, None)
            if not branch_errors:
                valid += 1
                valid_matches = matches
            elif matches > best:
                best, best_errors = matches, branch_errors
        if valid == 1:
            return valid_matches
        outcome = f"Found {valid} valid alternatives" if valid else "Found none valid"
        errors.append(
            _without_field(f"{quote(path_of(location))} must validate one and only one schema (oneOf). {outcome}")
        )
        if valid:
            return 0
        errors.extend(best_errors)
        return best

    return check


def _all_of(branches: list[_Node]) -> Check:
    def check(value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        spend(len(branches))
        matches, valid = 0, 0
        for branch in branches:
            before = len(errors)
            matches += _walk(branch, value, location, errors, None)
            valid += len(errors) == before
        if valid < len(branches):
            outcome = "" if valid else ". None validated"
            errors.append(_without_field(f"{quote(path_of(location))} must validate all the schemas (allOf){outcome}"))
        return matches

    return check


def _not(branches: list[_Node]) -> Check:
    def check(value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        branch_errors: Errors = []
        _walk(branches[0], value, location, branch_errors, None)
        if not branch_errors:
            errors.append(_without_field(f"{quote(path_of(location))} must not validate the schema (not)"))
        return 0

    return check


def _without_field(text: str) -> FieldError:
    return invalid("", "", text)


# -- strings and numbers ----------------------------------------------------------------------------------------------


def _string_check(node: _Node) -> Check | None:
    """maxLength, minLength, pattern: the first one that fails. Lengths are in characters, whatever the message says."""
    validation = node.schema.validation
    longest, shortest, pattern = validation.max_length, validation.min_length, validation.pattern
    if longest is None and shortest is None and not pattern:
        return None
    compiled = patterns.compile(pattern) if pattern else None

    def check(value: str, location: Location, errors: Errors, _old: Correlated | None) -> int:
        if longest is not None and len(value) > longest:
            errors.append(too_long(path_of(location), longest))
        elif shortest is not None and len(value) < shortest:
            path = path_of(location)
            errors.append(invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        elif compiled is not None and not compiled.search(value):
            path = path_of(location)
            errors.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        return 0

    return check


def _format_check(format_: str, is_valid: formats.Check) -> Check:
    def check(value: str, location: Location, errors: Errors, _old: Correlated | None) -> int:
        if not is_valid(value):
            errors.append(_type_error(path_of(location), format_, value))
        return 0

    return check


def _number_check(node: _Node, kind: type) -> Check | None:
    type_ = node.only_type if node.only_type in formats.NUMERIC else ""
    format_ = node.format if node.format in formats.NUMERIC.get(type_, ()) else ""
    tests = scalars.tests(kind, type_, format_, node.schema.validation)
    if not tests:
        return None

    def check(value: float, location: Location, errors: Errors, _old: Correlated | None) -> int:
        for test in tests:
            if error := test(value, location):
                errors.append(error)
        return 0

    return check


# -- arrays and objects -----------------------------------------------------------------------------------------------


def _array_check(node: _Node) -> Check | None:
    fewest, most = node.schema.validation.min_items, node.schema.validation.max_items
    items = node.below(node.schema.items) if node.schema.items is not None else None
    if items is None and fewest is None and most is None:
        return None

    def check(value: list[Json], location: Location, errors: Errors, old: Correlated | None) -> int:
        matches = 0
        if items is not None:
            before = len(errors)
            for n, item in enumerate(value):
                if not n % ITEMS_AT_ONCE:
                    spend(min(len(value) - n, ITEMS_AT_ONCE))
                certain, checks = items[type(item)]
                if not checks:
                    matches += certain
                    continue
                matches += _walk(items, item, (location, n), errors, None if old is None else old.index(n))
                if len(errors) > before and is_enough(errors):
                    break
        if fewest is not None and len(value) < fewest:
            path = path_of(location)
            errors.append(invalid(path, len(value), f"{path} in body should have at least {fewest} items"))
        if most is not None and len(value) > most:
            errors.append(too_many(path_of(location), len(value), most))
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

    def check(value: Object, location: Location, errors: Errors, old: Correlated | None) -> int:
        spend(len(value))
        matches, before = 0, len(errors)
        if fewest is not None and len(value) < fewest:
            path = path_of(location)
            errors.append(invalid(path, len(value), f"{path} in body should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            errors.append(too_many(path_of(location), len(value), most))
        for name, item in value.items():
            node = properties.get(name, values)
            if node is not None:
                certain, checks = node[type(item)]
                if not checks:
                    matches += certain
                    continue
                step = name if location is not None or node is not values else f".{name}"
                ratchets = old is not None and (location is not None or name not in _TYPE_META)
                below = (location, step) if step or location is not None else None
                matches += _walk(node, item, below, errors, old.key(name) if old is not None and ratchets else None)
            elif additional is False:
                path = path_of(location)
                errors.append(invalid(path, name, f"{path}.{name} in body is a forbidden property"))
            if len(errors) > before and is_enough(errors):
                break
        missing = [name for name in needed if name not in value] if needed else ()
        if missing:
            path = path_of(location)
            spend(len(needed) // _NAMES_PER_UNIT)
            for name in missing:
                errors.append(required(f"{path}.{name}"))
                if is_enough(errors):
                    break
        return matches

    return check


_NAMES_PER_UNIT: Final = 16
_TYPE_META: Final = ("apiVersion", "kind")  # never ratcheted: old and new are at the requested version


# -- enum -------------------------------------------------------------------------------------------------------------


def _enum_check(node: _Node, kind: type) -> Check:
    """The enum of a definition in force has been stored: 1.0 was written as 1, and read again as an integer."""
    members: Sequence[Json] = node.schema.validation.enum
    if not node.for_default:
        members = [decode_stored(encode(member, sort_keys=True)) for member in members]
    supported = [member if isinstance(member, str) else compact_json(member) for member in members]
    unsupported = not_supported("", None, supported)  # its detail is long, and that of all errors
    is_member = membership(kind, members)
    comparisons = len(members) if kind in (dict, list) else 0

    def check(value: Json, location: Location, errors: Errors, _old: Correlated | None) -> int:
        if comparisons:
            spend(comparisons)
        if not is_member(value):
            errors.append(unsupported._replace(field=path_of(location), value=value))
        return 0

    return check


def validate_update(
    new: Json, old: Json, schema: Structural, *, path: Path = "", ratcheting: bool = True
) -> list[FieldError]:
    """The errors of the new value, except those of unchanged nodes if `ratcheting`.

    Ratcheting only drops errors, so a valid value is not correlated.
    """
    compiled = validator(schema)
    if not ratcheting:
        return compiled.validate(new, path=path)
    if compiled.is_valid(new):
        return []
    return compiled.validate(new, path=path, old=Correlated(new, old, schema))
