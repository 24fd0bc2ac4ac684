"""The language's own functions (cel-go's common/stdlib): operators, sizes, conversions, strings, times.

Logic, conditionals, equality and indexing are only declared here: the interpreter implements them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Function, Implementation, Overload, overload
from noxu.cel.memory import TEXT, allocate, allocate_text
from noxu.cel.types.types import DURATION, TIMESTAMP
from noxu.cel.values import conversions, equality, numbers, times
from noxu.cel.values.numbers import int_in_range, uint_in_range
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import NUMBERS, Value, type_of
from noxu.go.regexp_syntax import PatternError
from noxu.schema import patterns

_DURATION: Final = DURATION.name
_TIMESTAMP: Final = TIMESTAMP.name
ADDERS: Final = frozenset({"bytes", "double", _DURATION, "int", "list", "string", _TIMESTAMP, "uint"})
COMPARERS: Final = frozenset({"bool", "bytes", "double", _DURATION, "int", "string", _TIMESTAMP, "uint"})
_DIVIDERS: Final = frozenset({"double", "int", "uint"})
_MODDERS: Final = frozenset({"int", "uint"})
_SUBTRACTORS: Final = frozenset({"double", _DURATION, "int", _TIMESTAMP, "uint"})
_NEGATERS: Final = frozenset({"bool", "double", _DURATION, "int"})
_SIZERS: Final = frozenset({"bytes", "list", "map", "string"})


def _arithmetic(on_ints: Callable[[int, int], int], on_doubles: Callable[[float, float], float]) -> Implementation:
    """An operator on two numbers of the same type."""

    def run(left: Value, right: Value) -> Value:
        kind = type(left)
        if type(right) is not kind:
            raise no_such_overload()
        if kind is float:
            return on_doubles(left, right)
        result = on_ints(left, right)
        return int_in_range(result) if kind is int else uint_in_range(result)

    return run


_add_numbers: Final = _arithmetic(lambda a, b: a + b, lambda a, b: a + b)
_subtract_numbers: Final = _arithmetic(lambda a, b: a - b, lambda a, b: a - b)
multiply: Final = _arithmetic(lambda a, b: a * b, lambda a, b: a * b)
divide: Final = _arithmetic(numbers.divide, numbers.divide_doubles)


def add(left: Value, right: Value) -> Value:
    match left:
        case int() | float():
            return _add_numbers(left, right)
        case str():
            if type(right) is not str:
                raise no_such_overload()
            allocate_text(len(left) + len(right), left, right)
            return left + right
        case bytes():
            if type(right) is not bytes:
                raise no_such_overload()
            allocate(TEXT + len(left) + len(right))
            return left + right
        case Duration():
            if isinstance(right, Duration):
                return times.nanos_in_range(left.nanos + right.nanos)
            if isinstance(right, Timestamp):
                return times.add(right, left.nanos)
            raise no_such_overload()
        case Timestamp():
            if isinstance(right, Duration):
                return times.add(left, right.nanos)
            raise no_such_overload()
    return equality.add_lists(left, right)


def subtract(left: Value, right: Value) -> Value:
    match left, right:
        case Duration(), Duration():
            return times.nanos_in_range(left.nanos - right.nanos)
        case Timestamp(), Duration():
            return times.add(left, times.nanos_in_range(-right.nanos).nanos)
        case Timestamp(), Timestamp():
            return times.difference(left, right)
        case (Duration(), _) | (Timestamp(), _):
            raise no_such_overload()
    return _subtract_numbers(left, right)


def modulo(left: Value, right: Value) -> Value:
    if type(left) is not type(right):
        raise no_such_overload()
    return type(left)(numbers.modulo(left, right))


def negate(value: Value) -> Value:
    match value:
        case bool():
            raise no_such_overload()
        case Duration():
            return times.nanos_in_range(-value.nanos)
        case float():
            return -value
    return int_in_range(-value)


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. Raises CelError if the two have no order."""
    kind = type(left)
    if kind in NUMBERS and type(right) in NUMBERS:
        return numbers.compare(left, right)
    if type(right) is not kind:
        raise no_such_overload()
    if kind is Duration:
        left, right = left.nanos, right.nanos
    elif kind is Timestamp:
        left, right = left.moment, right.moment
    return int(left > right) - int(left < right)


def negated(value: Value) -> bool:
    if type(value) is not bool:
        raise no_such_overload()
    return not value


def search(text: Value, pattern: Value) -> bool:
    """`text.matches(pattern)`."""
    if type(pattern) is not str:
        raise no_such_overload()
    return compile_pattern(pattern).search(text)


def compile_pattern(pattern: str) -> patterns.Pattern:
    try:
        return patterns.compile(pattern)
    except PatternError as error:
        raise CelError(str(error)) from None


def _on_strings(test: Callable[[str, str], bool]) -> Implementation:
    def run(text: Value, part: Value) -> bool:
        if type(text) is not str or type(part) is not str:
            raise no_such_overload()
        return test(text, part)

    return run


def _is_in(value: Value, container: Value) -> bool:
    return equality.contains(container, value)


_KINDS: Final = {
    "bool": "bool", "int": "int64", "uint": "uint64", "double": "double", "string": "string", "bytes": "bytes",
    "timestamp": "timestamp", "duration": "duration",
}  # fmt: skip
_ORDERED: Final = (
    ("bool", "bool"), ("int", "int"), ("int", "double"), ("int", "uint"), ("uint", "uint"), ("uint", "double"),
    ("uint", "int"), ("double", "double"), ("double", "int"), ("double", "uint"), ("string", "string"),
    ("bytes", "bytes"), ("timestamp", "timestamp"), ("duration", "duration"),
)  # fmt: skip


def _comparison(name: str, identifier: str, holds: Callable[[int], bool]) -> Function:
    rows = []
    for left, right in _ORDERED:
        suffix = _KINDS[left] if left == right else f"{_KINDS[left]}_{_KINDS[right]}"
        rows.append(overload(f"{identifier}_{suffix}", f"{name}({left}, {right}) -> bool")[1])
    return Function(name, rows, lambda left, right: holds(compare(left, right)), COMPARERS)


def _operator(name: str, run: Implementation, traits: frozenset[str] | None, *rows: tuple[str, str]) -> Function:
    """Rows are (overload id, "argument, … -> result")."""
    return Function(name, [_row(name, *row) for row in rows], run, traits)


def _row(name: str, identifier: str, signature: str) -> Overload:
    args, _, result = signature.partition(" -> ")
    return overload(identifier, f"{name}({args}) -> {result}")[1]


def _declared(name: str, *rows: tuple[str, str]) -> Function:
    return Function(name, [_row(name, *row) for row in rows])


def _conversion(name: str, run: Implementation, *sources: tuple[str, str]) -> Function:
    """`sources` are (type, overload id)."""
    rows = [overload(identifier, f"{name}({source}) -> {name}", run)[1] for source, identifier in sources]
    return Function(name, rows)


def _part(name: str, identifier: str, with_zone: str, of_duration: str = "") -> Function:
    """`getHours` …: the ids of the overloads without and with a time zone, and of that for durations."""

    def run(moment: Value, zone: str = "UTC") -> int:
        return moment.part(name, zone)  # type: ignore[no-any-return]

    rows = [
        overload(identifier, f"timestamp.{name}() -> int", run)[1],
        overload(with_zone, f"timestamp.{name}(string) -> int", run)[1],
    ]
    if of_duration:
        rows.append(overload(of_duration, f"duration.{name}() -> int", lambda span: span.part(name))[1])
    return Function(name, rows)


def _date_parts() -> list[Function]:
    names = {
        "getFullYear": "year", "getMonth": "month", "getDayOfYear": "day_of_year", "getDayOfMonth": "day_of_month",
        "getDate": "day_of_month_1_based", "getDayOfWeek": "day_of_week",
    }  # fmt: skip
    return [_part(name, f"timestamp_to_{part}", f"timestamp_to_{part}_with_tz") for name, part in names.items()]


FUNCTIONS: Final[list[Function]] = [
    _declared("_?_:_", ("conditional", "bool, A, A -> A")),
    _declared("_&&_", ("logical_and", "bool, bool -> bool")),
    _declared("_||_", ("logical_or", "bool, bool -> bool")),
    _operator("!_", negated, None, ("logical_not", "bool -> bool")),
    _declared("@not_strictly_false", ("not_strictly_false", "bool -> bool")),
    _declared("_==_", ("equals", "A, A -> bool")),
    _declared("_!=_", ("not_equals", "A, A -> bool")),
    _operator(
        "_+_", add, ADDERS,
        ("add_bytes", "bytes, bytes -> bytes"),
        ("add_double", "double, double -> double"),
        ("add_duration_duration", "duration, duration -> duration"),
        ("add_duration_timestamp", "duration, timestamp -> timestamp"),
        ("add_timestamp_duration", "timestamp, duration -> timestamp"),
        ("add_int64", "int, int -> int"),
        ("add_list", "list(A), list(A) -> list(A)"),
        ("add_string", "string, string -> string"),
        ("add_uint64", "uint, uint -> uint"),
    ),
    _operator(
        "_/_", divide, _DIVIDERS,
        ("divide_double", "double, double -> double"),
        ("divide_int64", "int, int -> int"),
        ("divide_uint64", "uint, uint -> uint"),
    ),
    _operator("_%_", modulo, _MODDERS, ("modulo_int64", "int, int -> int"), ("modulo_uint64", "uint, uint -> uint")),
    _operator(
        "_*_", multiply, _DIVIDERS,
        ("multiply_double", "double, double -> double"),
        ("multiply_int64", "int, int -> int"),
        ("multiply_uint64", "uint, uint -> uint"),
    ),
    _operator("-_", negate, _NEGATERS, ("negate_double", "double -> double"), ("negate_int64", "int -> int")),
    _operator(
        "_-_", subtract, _SUBTRACTORS,
        ("subtract_double", "double, double -> double"),
        ("subtract_duration_duration", "duration, duration -> duration"),
        ("subtract_int64", "int, int -> int"),
        ("subtract_timestamp_duration", "timestamp, duration -> timestamp"),
        ("subtract_timestamp_timestamp", "timestamp, timestamp -> duration"),
        ("subtract_uint64", "uint, uint -> uint"),
    ),
    _comparison("_<_", "less", lambda order: order < 0),
    _comparison("_<=_", "less_equals", lambda order: order <= 0),
    _comparison("_>_", "greater", lambda order: order > 0),
    _comparison("_>=_", "greater_equals", lambda order: order >= 0),
    _declared("_[_]", ("index_list", "list(A), int -> A"), ("index_map", "map(A, B), A -> B")),
    _operator("@in", _is_in, None, ("in_list", "A, list(A) -> bool"), ("in_map", "A, map(A, B) -> bool")),
    Function(
        "size",
        [
            row
            for kind, text in (("bytes", "bytes"), ("list", "list(A)"), ("map", "map(A, B)"), ("string", "string"))
            for row in (
                overload(f"size_{kind}", f"size({text}) -> int")[1],
                overload(f"{kind}_size", f"{text}.size() -> int")[1],
            )
        ],
        len,
        _SIZERS,
    ),
    _operator("type", type_of, None, ("type", "A -> type(A)")),
    _operator("dyn", lambda value: value, None, ("to_dyn", "A -> dyn")),
    _conversion("bool", conversions.to_bool, ("bool", "bool_to_bool"), ("string", "string_to_bool")),
    _conversion("bytes", conversions.to_bytes, ("bytes", "bytes_to_bytes"), ("string", "string_to_bytes")),
    _conversion(
        "double", conversions.to_double,
        ("double", "double_to_double"), ("int", "int64_to_double"), ("string", "string_to_double"),
        ("uint", "uint64_to_double"),
    ),
    _conversion(
        "duration", conversions.to_duration, ("duration", "duration_to_duration"), ("string", "string_to_duration")
    ),
    _conversion(
        "int", conversions.to_int,
        ("int", "int64_to_int64"), ("double", "double_to_int64"), ("duration", "duration_to_int64"),
        ("string", "string_to_int64"), ("timestamp", "timestamp_to_int64"), ("uint", "uint64_to_int64"),
    ),
    _conversion(
        "string", conversions.to_string,
        ("string", "string_to_string"), ("bool", "bool_to_string"), ("bytes", "bytes_to_string"),
        ("double", "double_to_string"), ("duration", "duration_to_string"), ("int", "int64_to_string"),
        ("timestamp", "timestamp_to_string"), ("uint", "uint64_to_string"),
    ),
    _conversion(
        "timestamp", conversions.to_timestamp,
        ("timestamp", "timestamp_to_timestamp"), ("int", "int64_to_timestamp"), ("string", "string_to_timestamp"),
    ),
    _conversion(
        "uint", conversions.to_uint,
        ("uint", "uint64_to_uint64"), ("double", "double_to_uint64"), ("int", "int64_to_uint64"),
        ("string", "string_to_uint64"),
    ),
    *(
        Function(
            name, [overload(identifier, f"string.{name}(string) -> bool", _on_strings(test))[1]], guarded=False
        )
        for name, identifier, test in (
            ("contains", "contains_string", lambda text, part: part in text),
            ("endsWith", "ends_with_string", str.endswith),
            ("startsWith", "starts_with_string", str.startswith),
        )
    ),
    Function(
        "matches",
        [
            overload("matches", "matches(string, string) -> bool")[1],
            overload("matches_string", "string.matches(string) -> bool")[1],
        ],
        search,
        frozenset({"string"}),
    ),
    *_date_parts(),
    _part("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", "duration_to_hours"),
    _part("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", "duration_to_minutes"),
    _part("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", "duration_to_seconds"),
    _part(
        "getMilliseconds", "timestamp_to_milliseconds", "timestamp_to_milliseconds_with_tz", "duration_to_milliseconds"
    ),
]  # fmt: skip
