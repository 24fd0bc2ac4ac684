"""The origins of web pages that may use the server."""

from __future__ import annotations

import pytest

from noxu.security.cors import MAX_ORIGIN, AllowedOrigins, check
from tests.rows import rows

NOT_ANCHORED = "regular expression does not pin to start/end of host in the origin header"
PREFIX = "--cors-allowed-origins has an invalid regular expression: "
CHECKED: dict[str, tuple[list[str], str]] = {
    "anchored": (["^https://a\\.example$", "//b(:|$)"], ""),
    "none": ([], ""),
    "open at the start": (["example.com$"], f"{PREFIX}{NOT_ANCHORED}"),
    "open at the end": (["^https//example.com"], f"{PREFIX}{NOT_ANCHORED}"),
    "no expression": (["^(:$"], f"{PREFIX}error parsing regexp: missing closing ): `^(:$`"),
    "an empty one": ([""], "empty value in --cors-allowed-origins"),
    "several faults": (["a", "", "b"], f"[{PREFIX}{NOT_ANCHORED}, empty value in --cors-allowed-origins]"),
}


@pytest.mark.parametrize(("expressions", "message"), CHECKED.values(), ids=CHECKED)
def test_the_check_of_expressions(expressions: list[str], message: str) -> None:
    found = ""
    try:
        check(expressions)
    except ValueError as error:
        found = str(error)
    assert found == message


ORIGINS: dict[str, tuple[str, bool]] = {
    "the host": ("https://example.com", True),
    "a host below it": ("https://a.b.example.com", True),
    "a port": ("http://localhost:3000", True),
    "a host that only begins so": ("https://example.com.evil.test", False),
    "a host that only ends so": ("https://evilexample.com", False),
    "another scheme": ("http://example.com", False),
    "no origin that browsers send": ("https://exämple.com", False),
    "bytes that are no text": ("https://\udcff.example.com", False),
    "a page that has none": ("null", False),
    "too long": (f"https://{'a' * MAX_ORIGIN}.example.com", False),
}


@rows(("origin", "is_allowed"), ORIGINS.values(), ids=ORIGINS)
def test_the_origin(origin: str, is_allowed: bool) -> None:
    allowed = AllowedOrigins([r"^https://(.+\.)?example\.com$", "//localhost(:|$)"])
    assert (origin in allowed) == is_allowed
