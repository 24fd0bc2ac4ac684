"""YAML scalars as go-yaml resolves them."""

import math

import pytest

from noxu.go.text import float_json
from noxu.go.yaml_scalars import as_json, float_key, is_timestamp, resolve, resolve_tagged
from noxu.values import Json
from tests.rows import rows


@rows("word", ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
def test_words_for_true(word: str) -> None:
    assert resolve(word) is True


@rows("word", ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
def test_words_for_false(word: str) -> None:
    assert resolve(word) is False


@pytest.mark.parametrize("word", ["", "~", "null", "Null", "NULL"])
def test_words_for_null(word: str) -> None:
    assert resolve(word) is None


@rows(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("-12", -12),
        ("1_000", 1000),
        ("1__0_", 10),
        ("010", 8),
        ("0o17", 15),
        ("0O17", 15),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x8000000000000000", -(2**63)),
        ("0b101", 5),
        ("-0b11", -3),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        ("08", 8.0),
        ("1.", 1.0),
        (".5", 0.5),
        (".5_0", 0.5),
        ("+.5", 0.5),
        ("-1.5e3", -1500.0),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("1_0.5", 10.5),
        ("1e-400", 0.0),
        ("18446744073709551616", 2.0**64),
        ("+9223372036854775808", 2.0**63),
        ("-9223372036854775809", -(2.0**63)),
        (".inf", math.inf),
        ("+.Inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_numbers(text: str, number: float) -> None:
    resolved = resolve(text)
    assert (resolved, type(resolved)) == (number, type(number))


@pytest.mark.parametrize("word", [".nan", ".NaN", ".NAN"])
def test_words_for_not_a_number(word: str) -> None:
    assert math.isnan(resolve(word))


@rows(
    "text",
    [
        *[
            "a",
            "yEs",
            "nULL",
            "truE",
            "nan",
            "inf",
            "-",
            "+",
            ".",
            "..",
            "1:30",
            "1.2.3",
            "0x",
            "0xg",
            "0o8",
            "1e",
            "e1",
        ],
        *["5e400", ".5e400", "-.5.", "1,000", "_1", "2001-01-01", "=", "<<", "é", "１", "1 ", "0b2", "--1", "1-"],
    ],
)
def test_other_scalars_are_strings(text: str) -> None:
    assert resolve(text) == text


TAG = "tag:yaml.org,2002:"


@rows(
    ("tag", "text", "value"),
    [
        (f"{TAG}str", "1", "1"),
        (f"{TAG}str", "", ""),
        (f"{TAG}int", "0x10", 16),
        (f"{TAG}float", "1", 1.0),
        (f"{TAG}float", "1.5", 1.5),
        (f"{TAG}bool", "off", False),
        (f"{TAG}null", "~", None),
        (f"{TAG}timestamp", "2001-01-01", "2001-01-01"),
        (f"{TAG}binary", "aG\nk=", "hi"),
        ("!mine", "1", "1"),
        ("!", "1", "1"),
    ],
)
def test_a_tag_decides(tag: str, text: str, value: Json) -> None:
    resolved = resolve_tagged(tag, text)
    assert (resolved, type(resolved)) == (value, type(value))


@pytest.mark.parametrize(
    ("tag", "text", "message"),
    [
        ("int", "x", "cannot decode !!str `x` as a !!int"),
        ("int", "1.5", "cannot decode !!float `1.5` as a !!int"),
        ("int", "2001-01-01", "cannot decode !!str `2001-01-01` as a !!int"),
        ("float", "18446744073709551615", "cannot decode !!int `18446744073709551615` as a !!float"),
        ("bool", "", "cannot decode !!null `` as a !!bool"),
        ("null", "no", "cannot decode !!bool `no` as a !!null"),
        ("timestamp", "2001-13-01", "cannot decode !!str `2001-13-01` as a !!timestamp"),
        ("binary", "*", "!!binary value contains invalid base64 data"),
    ],
)
def test_a_tag_that_does_not_fit_is_an_error(tag: str, text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        resolve_tagged(TAG + tag, text)
    assert str(raised.value) == message


@rows(
    ("text", "yes"),
    [
        ("2001-01-01", True),
        ("2001-1-1", True),
        ("2000-02-29", True),
        ("2001-02-29", False),
        ("0000-02-29", True),
        ("2001-04-31", False),
        ("2001-00-01", False),
        ("2001-12-14T21:59:43Z", True),
        ("2001-12-14t1:2:3.5+05:30", True),
        ("2001-12-14T21:59:43", False),
        ("2001-12-14 21:59:43", True),
        ("2001-12-14 21:59:43.10", True),
        ("2001-12-14 21:59:43Z", False),
        ("2001-12-14  21:59:43", False),
        ("2001-12-14 24:00:00", False),
        ("2001-12-14T00:60:00Z", False),
        ("2001-12-14T00:00:00+25:00", False),
        ("2001-12-14\n", False),
        ("01-01-01", False),
    ],
)
def test_go_yaml_timestamps(text: str, yes: bool) -> None:
    assert is_timestamp(text) is yes


@pytest.mark.parametrize(
    ("value", "through_json"),
    [(1.0, 1), (1e15, 10**15), (1.5, 1.5), (1e21, 1e21), (-0.0, 0), (2**63, 2.0**63), (2.0**62, 4611686018427388000)],
)
def test_numbers_pass_through_json(value: float, through_json: float) -> None:
    assert (as_json(value), type(as_json(value))) == (through_json, type(through_json))


@pytest.mark.parametrize(("value", "literal"), [(2**64 - 1, "18446744073709551615"), (-0.0, "-0")])
def test_numbers_for_a_struct_keep_how_json_writes_them(value: float, literal: str) -> None:
    assert float_json(as_json(value, literals=True)) == literal


@pytest.mark.parametrize("value", [1.0, 2**63 - 1, 1.5, 2.0**64])
def test_other_numbers_for_a_struct_pass_through_json(value: float) -> None:
    assert (as_json(value, literals=True), type(as_json(value, literals=True))) == (
        as_json(value),
        type(as_json(value)),
    )


def test_values_other_than_numbers_are_unchanged() -> None:
    assert [as_json(value) for value in (None, True, "1", [1.0], {})] == [None, True, "1", [1.0], {}]


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_nan_and_infinity_have_no_json_form(value: float, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^json: unsupported value: {name.replace('+', '[+]')}$"):
        as_json(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (1.1, "1.1"), (0.1, "0.1"), (16777217.0, "1.6777216e+07"), (1e-7, "1e-07"), (1e300, ".inf"), (-math.inf, "-.inf"), (math.nan, ".nan")],
)  # fmt: skip
def test_a_float_as_a_key_has_32_bits(value: float, text: str) -> None:
    assert float_key(value) == text
