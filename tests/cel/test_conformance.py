"""The language's public conformance cases (google/cel-spec), as far as they apply to the rules of CRDs.

`NOT_APPLICABLE` lists the groups of cases about what rules cannot do, `DIFFERENT` the cases in which upstream's rules differ
from the language, each with its reason.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.program import InstantiationError, Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.types import types
from noxu.cel.types.types import Type
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import ABSENT, LISTS, MAPS, MapValue, Optional, Value
from tests.cel import textproto
from tests.cel.textproto import Message
from tests.optional import SHARED, needs_data
from tests.rows import rows

FOLDER: Final = SHARED / "cel-spec"
GENEROUS: Final = 10**9  # costs are not what is tested here


class Case(NamedTuple):
    file: str
    section: str
    test: Message

    @property
    def name(self) -> str:
        return f"{self.file}/{self.section}/{text(self.test, 'name')}"

    @property
    def expression(self) -> str:
        return text(self.test, "expr")


def text(message: Message, name: str) -> str:
    given = message.get(name, [b""])[0]
    assert isinstance(given, bytes)
    return given.decode()


def inner(message: Message, *names: str) -> Message:
    for name in names:
        found = message[name][0]
        assert isinstance(found, dict)
        message = found
    return message


def cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.textproto")):
        for section in textproto.read(file.read_text())["section"]:
            assert isinstance(section, dict)
            for test in section.get("test", []):
                assert isinstance(test, dict)
                yield Case(file.stem, text(section, "name"), test)


WELL_KNOWN_VARIABLE: Final = re.compile(r"google\.protobuf\.(?!Timestamp|Duration)")
# Cases about what rules cannot do, by the reason.
NOT_APPLICABLE: Final[dict[str, Callable[[Case], bool]]] = {
    "messages of a schema in protocol buffers; objects are JSON": lambda case: (
        "TestAllTypes" in str(case.test) or "google.protobuf.Any" in case.expression
    ),
    "variables that are messages; objects are JSON": lambda case: bool(
        WELL_KNOWN_VARIABLE.search(str(case.test.get("type_env")))
    ),
    "names inside a container; rules have none": lambda case: "container" in case.test,
    "functions declared for the test": lambda case: "function" in str(case.test.get("type_env", "")),
    "evaluation without a type check; rules are always checked": lambda case: (
        "disable_check" in case.test and problem(case) != ""
    ),
}
# Cases in which upstream's rules differ from the language, as recorded from upstream, by the reason and the section.
DIFFERENT: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "the elements of a literal have one type, and so have its keys and values": {
        "dynamic/list": ("literal",),
        "dynamic/value_struct": ("literal",),
        "dynamic/value_list": ("literal",),
        "comparisons/eq_literal": (
            "not_eq_list_null",
            "eq_list_mixed_type_numbers",
            "not_eq_list_mixed_type_numbers",
            "not_eq_list_false_vs_types",
            "not_eq_map_null",
            "eq_map_mixed_type_numbers",
            "not_eq_map_false_vs_types",
            "eq_map_value_mixed_types",
            "not_eq_list_elem_null",
            "not_eq_map_value_null",
        ),
        "comparisons/in_list_literal": (
            "elem_in_mixed_type_list",
            "elem_in_mixed_type_list_cross_type",
        ),
        "comparisons/in_map_literal": (
            "key_in_mixed_key_type_map",
            "key_in_mixed_key_type_map_cross_type",
        ),
        "conversions/dyn": ("dyn_heterogeneous_list",),
        "fields/map_fields": (
            "map_key_int64",
            "map_key_uint64",
            "map_key_mixed_type",
            "map_key_mixed_numbers_double_key",
            "map_key_mixed_numbers_uint_key",
            "map_key_mixed_numbers_int_key",
            "map_value_mix_type",
        ),
        "fields/quoted_map_fields": (
            "field_access_dash",
            "has_field_dash",
        ),
        "fields/in": (
            "mixed_numbers_and_keys_present",
            "mixed_numbers_and_keys_absent",
        ),
        "macros/exists": (
            "list_elem_type_shortcircuit",
            "list_elem_type_exhaustive",
            "map_key_type_shortcircuit",
            "map_key_type_exhaustive",
        ),
        "macros/all": ("list_elem_type_shortcircuit",),
        "macros2/exists": (
            "list_elem_type_shortcircuit",
            "list_elem_type_exhaustive",
            "map_key_type_shortcircuit",
            "map_key_type_exhaustive",
        ),
        "macros2/all": (
            "list_elem_type_shortcircuit",
            "list_elem_type_exhaustive",
        ),
        "optionals/optionals": (
            "optional_chaining_13",
            "map_key_mixed_type_optindex_value",
            "map_key_mixed_numbers_double_key_optindex_value",
            "map_key_mixed_numbers_uint_key_optindex_value",
            "map_key_mixed_numbers_int_key_optindex_value",
        ),
        "type_deduction/flexible_type_parameter_assignment": (
            "optional_dyn_promotion",
            "optional_dyn_promotion_2",
        ),
        "type_deduction/legacy_nullable_types": ("null_assignable_to_abstract_parameter_candidate",),
    },
    "a value that cannot be a key is an error before the expression runs": {
        "fields/map_fields": (
            "map_bad_key_type_or_true",
            "map_bad_key_type_and_false",
        ),
    },
    "a duplicate key is no error, the last one counts": {
        "fields/qualified_identifier_resolution": ("map_value_repeat_key",),
    },
    "IPv4-mapped IPv6 addresses are refused": {
        "network_ext/ipv4": (
            "ipv4_equals_ipv6",
            "ipv4_not_equals_ipv6",
        ),
    },
    "a field of an optional scalar is absent": {
        "optionals/optionals": (
            "map_null_entry_no_such_key",
            "map_present_key_invalid_field",
        ),
    },
    "string.format is that of version 2 of the strings library": {
        "string_ext/format": (
            "scientific notation formatting clause",
            "default precision for fixed-point clause with int",
            "default precision for fixed-point clause with uint",
            "default precision for scientific notation",
            "default precision for scientific notation with int",
            "default precision for scientific notation with uint",
            "NaN support for scientific notation",
            "positive infinity support for scientific notation",
            "negative infinity support for scientific notation",
            "NaN support for decimal",
            "positive infinity support for decimal",
            "negative infinity support for decimal",
            "positive infinity support for fixed-point",
            "negative infinity support for fixed-point",
            "list support for string",
            "map support for string",
            "map support (all key types)",
            "dyntype support for scientific notation",
            "dyntype NaN/infinity support",
            "dyntype support for lists",
            "dyntype support for maps",
            "scientific notation formatting clause in a string variable",
        ),
    },
    "an index beyond the end of a string gives -1 instead of an error": {
        "string_ext/value_errors": (
            "indexof_out_of_range",
            "lastindexof_out_of_range",
        ),
    },
    "string.reverse came with version 3 of the strings library": {
        "string_ext/reverse": (
            "empty",
            "single_character",
            "multiple",
        ),
    },
    "getMilliseconds of a duration is the whole duration": {
        "timestamps/duration_converters": ("get_milliseconds",),
    },
}


def problem(case: Case) -> str:
    """What keeps the expression from running."""
    try:
        Program(case.expression, environment(case.test)).instantiate()
    except (CompileError, InstantiationError) as error:
        return str(error)
    return ""


def not_applicable(case: Case) -> str:
    """Why a case does not apply, "" if it does."""
    return next((reason for reason, applies in NOT_APPLICABLE.items() if applies(case)), "")


def different(case: Case) -> str:
    """Why upstream differs in a case, "" if it does not."""
    section, name = f"{case.file}/{case.section}", text(case.test, "name")
    return next((reason for reason, sections in DIFFERENT.items() if name in sections.get(section, ())), "")


# -- types and values -------------------------------------------------------------------------------------------------

PRIMITIVES: Final = {
    "BOOL": types.BOOL, "INT64": types.INT, "UINT64": types.UINT, "DOUBLE": types.DOUBLE, "STRING": types.STRING,
    "BYTES": types.BYTES,
}  # fmt: skip
WELL_KNOWN: Final = {"TIMESTAMP": types.TIMESTAMP, "DURATION": types.DURATION, "ANY": types.DYN}


def read_type(given: Message) -> Type:
    ((kind, (value,)),) = given.items()
    match kind, value:
        case "primitive", str():
            return PRIMITIVES[value]
        case "well_known", str():
            return WELL_KNOWN[value]
        case "dyn", _:
            return types.DYN
        case "null", _:
            return types.NULL
        case "type", dict():
            return types.type_of(read_type(value)) if value else types.TYPE
        case "list_type", dict():
            return types.list_of(read_type(inner(value, "elem_type")))
        case "map_type", dict():
            return types.map_of(read_type(inner(value, "key_type")), read_type(inner(value, "value_type")))
        case "message_type", bytes():
            return {one.name: one for one in (types.TIMESTAMP, types.DURATION)}[value.decode()]
        case "abstract_type", dict():
            params = (read_type(one) for one in value.get("parameter_types", []) if isinstance(one, dict))
            return Type(types.TypeKind.OPAQUE, text(value, "name"), tuple(params))
    raise AssertionError(given)


def read_value(given: Message) -> Value:
    ((kind, (value,)),) = given.items()
    match kind, value:
        case "bool_value", str():
            return value == "true"
        case "int64_value", str():
            return int(value, 0)
        case "uint64_value", str():
            return Uint(int(value, 0))
        case "double_value", str():
            return float(value)
        case "string_value", bytes():
            return value.decode()
        case "bytes_value", bytes():
            return value
        case "null_value", _:
            return None
        case "type_value", bytes():
            return KUBERNETES.type_names[value.decode()]
        case "list_value", dict():
            return [read_value(one) for one in value.get("values", []) if isinstance(one, dict)]
        case "map_value", dict():
            entries = [one for one in value.get("entries", []) if isinstance(one, dict)]
            return MapValue((read_value(inner(one, "key")), read_value(inner(one, "value"))) for one in entries)
        case "object_value", dict():
            ((name, (content,)),) = value.items()
            assert isinstance(content, dict)
            seconds, nanos = (int(str(content.get(part, ["0"])[0])) for part in ("seconds", "nanos"))
            if name.endswith("Duration]"):
                return Duration(seconds * 10**9 + nanos)
            assert name.endswith("Timestamp]"), name
            return Timestamp(seconds, nanos)
    raise AssertionError(given)


def typed(value: Value) -> Any:
    """A value with its types, comparable."""
    if isinstance(value, LISTS):
        return [typed(one) for one in value]
    if isinstance(value, MAPS):
        return sorted(((typed(key), typed(value.find(key))) for key in value), key=repr)
    if isinstance(value, Optional):
        return ("optional", "none" if value.value is ABSENT else typed(value.value))
    if type(value) is Type:
        return ("type", value.name)
    return (type(value).__name__, "NaN" if value != value else value)


# -- running ----------------------------------------------------------------------------------------------------------


def environment(test: Message) -> Any:
    given = {}
    for one in test.get("type_env", []):
        assert isinstance(one, dict)
        if "ident" in one:
            given[text(one, "name")] = read_type(inner(one, "ident", "type"))
    return KUBERNETES.extend(given)


def failure(case: Case) -> str:
    """What is wrong; "" for nothing."""
    test = case.test
    try:
        program = Program(case.expression, environment(test))
        program.instantiate()
    except (CompileError, InstantiationError) as error:
        return "" if "eval_error" in test else f"does not compile: {error}"
    if "typed_result" in test:
        result = inner(test, "typed_result")
        wanted = read_type(inner(result, "deduced_type"))
        if program.type != wanted:
            return f"is of type {program.type}, not {wanted}"
        test = {"value": result["result"]} if "result" in result else test
    if "check_only" in test:
        return ""
    variables = {text(one, "key"): read_value(inner(one, "value", "value")) for one in bindings(test)}
    outcome = program.evaluate(variables, GENEROUS)
    if "eval_error" in test:
        return "" if outcome.error is not None else f"gives {outcome.value}"
    if outcome.error is not None:
        return outcome.error
    wanted_value = read_value(inner(test, "value")) if "value" in test else True
    return "" if typed(outcome.value) == typed(wanted_value) else f"gives {outcome.value!r}, not {wanted_value!r}"


def bindings(test: Message) -> list[Message]:
    return [one for one in test.get("bindings", []) if isinstance(one, dict)]


def applicable() -> Iterator[Any]:
    for case in cases():
        if not not_applicable(case) and not different(case):
            yield pytest.param(case, id=case.name)


@pytest.mark.slow
@needs_data("cel-spec")
@rows("case", list(applicable()))
def test_case(case: Case) -> None:
    assert failure(case) == ""


@needs_data("cel-spec")
def test_cases_that_differ_would_fail() -> None:
    listed = {
        f"{section}/{name}" for sections in DIFFERENT.values() for section, names in sections.items() for name in names
    }
    assert {case.name for case in cases() if different(case) and failure(case)} == listed


@needs_data("cel-spec")
def test_tally() -> None:
    """How many cases there are of each kind; `pytest -s` prints it."""
    tally = Counter(not_applicable(case) or different(case) or "as in the language" for case in cases())
    for reason, count in tally.most_common():
        sys.stdout.write(f"\n{count:6} {reason}")
    assert tally["as in the language"] > 1_370
