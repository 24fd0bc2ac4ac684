"""String formats: which exist, and which strings they accept (upstream's strfmt registry behind go-openapi).

A format is looked up without the dashes of its name. These formats apply to strings and to schemas without a type. The
formats of integers and numbers are ranges (see `scalars`). Other combinations are ignored, with the warning
`unrecognized format "zzz"` when the CustomResourceDefinition is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from noxu.expressions import expression
from noxu.go import url as go_url
from noxu.go.mail import is_address
from noxu.go.net import is_cidr, is_ipv4, is_ipv6, is_mac
from noxu.go.time import parse_schema_duration
from noxu.schema import patterns

Check = Callable[[str], bool]

NUMERIC: Final[Mapping[str, frozenset[str]]] = {
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}


def checker(name: str) -> Check | None:
    """The function that checks strings of a format, None if the format is unknown."""
    return _CHECKS.get(name.replace("-", ""))


def is_recognized(name: str, type_: str = "") -> bool:
    """Whether a format has an effect for a type ("" without one); "" is always recognized."""
    if not name:
        return True
    if type_ in ("", "string"):
        return checker(name) is not None
    return name in NUMERIC.get(type_, ())


def _matches(pattern: str) -> Check:
    """One of our own patterns, anchored; `\\d` and `\\s` are ASCII's as in Go."""
    anchored = expression(pattern, re.ASCII)
    return lambda text: anchored.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    try:
        go_url.parse_request_uri(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if not match:
        return False
    year, month, day = map(int, match.groups())  # year 0 exists, and is a leap year
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 and leap else _DAYS[month - 1])


_DATE: Final = expression(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_date_time(text: str) -> bool:
    """A date, t, a time with a zone; everything after a second t is ignored."""
    date, _, rest = text.lower().partition("t")
    time = _TIME.fullmatch(rest.partition("t")[0])
    return time is not None and time[1] <= "23" and time[2] <= "59" and time[3] <= "59" and _is_date(date)


_TIME: Final = expression(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")


def _is_duration(text: str) -> bool:
    try:
        parse_schema_duration(text)
    except ValueError:
        return False
    return True


def _is_hostname(text: str) -> bool:
    """One label, or labels ending in one of letters only; all octets of a label count (RFC 1034)."""
    if len(text) > 255 or len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in text.split(".")):
        return False
    return patterns.compile(_HOSTNAME).search(text)


_LABEL_CHARS: Final = r"a-zA-Z0-9\p{S}\p{L}"
_HOSTNAME: Final = (
    rf"^([{_LABEL_CHARS}](-?[{_LABEL_CHARS}]{{0,62}})?"
    rf"|([{_LABEL_CHARS}]([{_LABEL_CHARS}-]{{0,61}}[{_LABEL_CHARS}])?\.)+[a-zA-Z\p{{L}}]{{2,63}})$"
)


def _is_isbn10(text: str) -> bool:
    digits = _ISBN_SEPARATORS.sub("", text)
    if not _ISBN10.fullmatch(digits):
        return False
    return sum(n * (10 if digit == "X" else int(digit)) for n, digit in enumerate(digits, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _ISBN_SEPARATORS.sub("", text)
    return (
        _ISBN13.fullmatch(digits) is not None
        and sum(map(int, digits[::2])) % 10 == -3 * sum(map(int, digits[1::2])) % 10
    )


_ISBN_SEPARATORS: Final = expression(r"[-\t\n\f\r ]+")
_ISBN10: Final = expression(r"[0-9]{9}[0-9X]")
_ISBN13: Final = expression(r"[0-9]{13}")


def _is_credit_card(text: str) -> bool:
    """A number of a known issuer with a valid Luhn checksum; all other characters are ignored."""
    digits = _NOT_DIGITS.sub("", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(n - 9 if n > 9 else n for n in doubled)) % 10 == 0


_NOT_DIGITS: Final = expression(r"[^0-9]+")
_CREDIT_CARD: Final = expression(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)

_HEX: Final = "[0-9a-fA-F]"
_BYTE_VALUE: Final = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_NAME: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_is_short_name = _matches(_NAME)
_is_long_name = _matches(rf"{_NAME}(?:\.{_NAME})*")


def _uuid(third: str, fourth: str = f"{_HEX}{{4}}") -> Check:
    return _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_CHECKS: Final[Mapping[str, Check]] = {  # by name without dashes
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "uri": _is_uri,
    "email": is_address,
    "hostname": _is_hostname,
    "ipv4": lambda text: "." in text and (is_ipv4(text, sloppy=True) or is_ipv6(text, sloppy=True)),
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _uuid(f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "hexcolor": _matches(f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matches(rf"rgb\({_BYTE_VALUE},{_BYTE_VALUE},{_BYTE_VALUE}\)"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _is_short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _is_long_name(text),
}
