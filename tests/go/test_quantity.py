"""Quantities as apimachinery parses, compares, adds and prints them; most rows are its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.go import quantity
from noxu.go.quantity import Format, Quantity, add, approximate_float, as_int64, compare, parse, scaled_value, subtract
from tests.rows import rows
from tests.timing import cpu_seconds

SI, BINARY, EXPONENT = Format.DECIMAL_SI, Format.BINARY_SI, Format.DECIMAL_EXPONENT
MAX = 2**63 - 1

# fmt: off
PARSED: list[tuple[str, int, int, Format]] = [  # text, digits and exponent of an equal number, format
    ("0", 0, 0, SI), ("0n", 0, 0, SI), ("0Ki", 0, 0, BINARY), ("0k", 0, 0, SI), (".", 0, 0, SI), ("+", 0, 0, SI),
    ("1", 1, 0, SI), ("1.", 1, 0, SI), ("1.G", 1, 9, SI), (".001", 1, -3, SI), ("007", 7, 0, SI), ("+1", 1, 0, SI),
    ("1Ki", 1024, 0, BINARY), ("7Mi", 7 << 20, 0, BINARY), ("6Gi", 6 << 30, 0, BINARY), ("5Ti", 5 << 40, 0, BINARY),
    ("4Pi", 4 << 50, 0, BINARY), ("3Ei", 3 << 60, 0, BINARY), ("100Ti", 100 << 40, 0, BINARY),
    ("5n", 5, -9, SI), ("4u", 4, -6, SI), ("3m", 3, -3, SI), ("8k", 8, 3, SI), ("7M", 7, 6, SI), ("6G", 6, 9, SI),
    ("5T", 5, 12, SI), ("2P", 2, 15, SI), ("1E", 1, 18, SI), ("12E", 12, 18, SI), ("100.035k", 100035, 0, SI),
    ("1E-3", 1, -3, EXPONENT), ("1e3", 1, 3, EXPONENT), ("1E18", 1, 18, EXPONENT), ("1.2e3", 12, 2, EXPONENT),
    ("1.3E+6", 13, 5, EXPONENT), ("0.5e-1", 5, -2, EXPONENT), ("1e14", 1, 14, EXPONENT),
    # finer than nano: rounded away from zero
    ("3.001n", 4, -9, SI), ("1.1E-9", 2, -9, EXPONENT), ("0.0000000001", 1, -9, SI), ("0.9n", 1, -9, SI),
    ("0.00000012345", 124, -9, SI), ("1e-999999", 1, -9, EXPONENT),
    # binary quantities are limited to an int64, and those below 1 are decimal
    ("9Ei", MAX, 0, BINARY), ("9223372036854775807Ki", MAX, 0, BINARY),
    ("100.035Ki", 10243584, -2, BINARY), ("0.5Mi", 1 << 19, 0, BINARY), ("0.05Gi", 536870912, -1, BINARY),
    ("0.000000000001Ki", 2, -9, SI),
]
# fmt: on


@rows("sign, text, digits, exponent, format_", [(sign, *row) for sign in ("", "-") for row in PARSED])
def test_a_quantity_is_parsed(sign: str, text: str, digits: int, exponent: int, format_: Format) -> None:
    found = parse(sign + text.removeprefix("+") if sign else text)
    assert compare(found, Quantity(-digits if sign else digits, exponent)) == 0
    assert found.format is format_


FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX = "unable to parse quantity's suffix"
REFUSED = [
    ("no text", "", FORM),
    ("no number", "aoeu", FORM),
    ("two points", "1.1.M", FORM),
    ("a sign in the middle", "1+1.0M", FORM),
    ("white space before", " 1", FORM),
    ("white space after", "1 ", FORM),
    ("a unit that is none", "0.1am", FORM),
    ("a small unit with an i", "0.1mi", SUFFIX),
    ("an i alone", "1i", SUFFIX),
    ("an i after a fraction", ".5i", SUFFIX),
    ("an exponent without digits", "-3.01e-", SUFFIX),
    ("two units", "1kM", SUFFIX),
    ("an exponent beyond int64", "1e99999999999999999999", SUFFIX),
    ("too many digits", "1" * 4001, "unable to parse numeric part of quantity"),
]


@rows(("text", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse(text)
    assert str(error.value) == message


# fmt: off
PRINTED = [  # text, canonical form
    ("1Ki", "1Ki"), ("1024Mi", "1Gi"), ("307200Ki", "300Mi"), ("1025024Mi", "1001Gi"), ("1024Gi", "1Ti"),
    ("1000M", "1G"), ("0.001T", "1G"), ("1000u", "1m"), ("1.08", "1080m"), ("1080000000n", "1080m"), ("0.5", "500m"),
    ("5000m", "5"), (".001e12", "1e9"), ("0.001e0", "1e-3"), ("1000e-12", "1e-9"), ("00", "0"), ("0Ki", "0"),
    (".001Ki", "1024m"), (".000001Ki", "1024u"), (".000000001Ki", "1024n"), (".000000000001Ki", "2n"),
    ("1000E", "1e21"), ("5000E", "5e21"), ("12345678901234567890123", "12345678901234567890123"),
    ("1025", "1025"), ("1234567m", "1234567m"), ("80m", "80m"), ("300M", "300M"), ("1e3", "1e3"), ("1.5Gi", "1536Mi"),
    ("9Ei", "9223372036854775807"), ("-1024Mi", "-1Gi"), ("-0", "0"), ("1e30", "1e30"),
    ("+1", "+1"), ("01.500", "01.500"),  # taken for canonical, and printed as they were written
]
# fmt: on


@rows(("text", "canonical"), PRINTED, ids=[row[0] for row in PRINTED])
def test_a_quantity_is_printed(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


COMPUTED = [
    ("a small binary number is printed in decimal", Quantity(1000, 0, True, BINARY), "1k"),
    ("and so is a fraction", Quantity(1234567, -3, True, BINARY), "1234567m"),
    ("an exponent becomes a multiple of three", Quantity(5, 4), "50k"),
    ("or a negative one", Quantity(108, -8), "1080n"),
    ("with the format of exponents", Quantity(3, 4, True, EXPONENT), "30e3"),
    ("upstream prints no suffix beyond Ei", Quantity(1 << 70, 0, False, BINARY), "1"),
]


@pytest.mark.parametrize(("value", "text"), [row[1:] for row in COMPUTED], ids=[row[0] for row in COMPUTED])
def test_a_computed_quantity_is_printed(value: Quantity, text: str) -> None:
    assert str(value) == text


def test_a_quantity_of_many_digits_is_printed_and_compared() -> None:
    total = add(parse("1e9999"), parse("1"))
    assert str(total) == f"1{'0' * 9998}1"
    assert compare(total, parse("1e9999")) == 1
    assert compare(total, parse("2e9999")) == -1


@rows(
    ("left", "right", "order"),
    [
        ("0", "0", 0), ("100m", "50m", 1), ("50m", "100m", -1), ("10000T", "100Gi", 1), ("1Ki", "1024", 0),
        ("1", "1000m", 0), ("1.0", "1", 0), ("1e999999999", "1", 1), ("-1e999999999", "1", -1), ("0", "-1n", 1),
        ("-2", "-1", -1), ("9223372036854775807", "1e19", -1), ("0k", "0Ki", 0), ("15e-1", "2", -1),
    ],
)  # fmt: skip
def test_quantities_are_compared(left: str, right: str, order: int) -> None:
    assert compare(parse(left), parse(right)) == order
    assert compare(parse(right), parse(left)) == -order


INTEGERS = [
    ("a whole number", "50k", 50_000),
    ("a negative one", "-5", -5),
    ("a binary one", "1Gi", 1 << 30),
    ("zero of any size", "0E", 0),
    ("the largest that has 18 digits", "999999999999999999", 999_999_999_999_999_999),
    ("none with a fraction", "1.0", None),
    ("none in thousandths", "1000m", None),
    ("none with more than 18 digits", "9223372036854775807", None),
    ("none that exceeds an int64", "100E", None),
    ("none of a fraction of a binary unit", "0.5Mi", None),
]


@rows(("text", "integer"), [row[1:] for row in INTEGERS], ids=[row[0] for row in INTEGERS])
def test_an_integer_is_what_upstream_can_convert(text: str, integer: int | None) -> None:
    assert as_int64(parse(text)) == integer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5), ("1Ki", 1024.0), ("1e308", 1e308), ("1e309", float("inf")), ("-1e309", float("-inf")),
        ("50k", 50_000.0), ("0.1", 0.1), ("1e400", float("inf")),
    ],
)  # fmt: skip
def test_a_float_is_approximate(text: str, number: float) -> None:
    assert approximate_float(parse(text)) == number


@rows(
    "text, places, number",
    [
        ("1.5", 0, 2), ("-1.5", 0, -1), ("1.5", 3, 1500), ("1n", 3, 1), ("0", 3, 0), ("2Ki", 3, 2_048_000),
        ("9e18", 0, 9 * 10**18), ("9e18", 3, MAX), ("1e999999999", 0, MAX), ("-1e999999999", 0, -MAX - 1),
        ("0e999999999", 0, 0),
    ],
)  # fmt: skip
def test_a_scaled_value_is_rounded_up_to_an_int64(text: str, places: int, number: int) -> None:
    assert scaled_value(parse(text), places) == number


SUMS = [
    ("the format is that of the left side", "1Ki", "1000", "2024", BINARY),
    ("unless that is zero", "0", "1Ki", "1Ki", BINARY),
    ("or a zero of another format", "0Ki", "100m", "100m", SI),
    ("zero on the right changes nothing", "1Gi", "0", "1Gi", BINARY),
    ("scales are aligned", "1", "1m", "1001m", SI),
    ("a sum may exceed an int64", "999999999999999999", "9999999999999999999", "10999999999999999998", SI),
    ("scales may be far apart", "1e30", "1", "1000000000000000000000000000001", EXPONENT),
]


@pytest.mark.parametrize(("left", "right", "total", "format_"), [row[1:] for row in SUMS], ids=[row[0] for row in SUMS])
def test_quantities_are_added(left: str, right: str, total: str, format_: Format) -> None:
    found = add(parse(left), parse(right))
    assert (str(found), found.format) == (total, format_)


@pytest.mark.parametrize(("left", "right", "rest"), [("1", "1m", "999m"), ("0", "1Gi", "-1Gi"), ("1Gi", "1Gi", "0")])
def test_quantities_are_subtracted(left: str, right: str, rest: str) -> None:
    assert str(subtract(parse(left), parse(right))) == rest


def test_a_sum_that_would_have_too_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="quantity out of range"):
        add(parse("1e200000"), parse("1"))


@given(st.integers(min_value=0, max_value=10**40))
def test_digits_are_counted(number: int) -> None:
    assert quantity.digit_count(number) == len(str(number))


@rows("power", [1, 2, 3, 17, 18, 19, 4000, 10_000, 100_000])
def test_digits_are_counted_around_powers_of_ten(power: int) -> None:
    assert [quantity.digit_count(10**power + n) for n in (-1, 0, 1)] == [power, power + 1, power + 1]


@given(
    st.integers(min_value=-(10**20), max_value=10**20),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-2", "e10"]),
)
def test_the_canonical_form_is_equal_to_what_was_parsed(number: int, suffix: str) -> None:
    parsed = parse(f"{number}{suffix}")
    assert compare(parse(str(parsed)), parsed) == 0


@pytest.mark.parametrize(
    "text", ["1" * 50_000 + "x", "0" * 50_000 + "x", "1." + "1" * 50_000 + "x", "1" * 50_000 + "e+"]
)
def test_a_long_text_is_refused_in_linear_time(text: str) -> None:
    def refused() -> None:
        with pytest.raises(ValueError, match="quantit"):
            parse(text)

    assert cpu_seconds(refused) < 0.2
