"""Classes of characters have the members that RE2 gives them."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from noxu.go.regexp_classes import CLASS_NAMES, class_ranges
from noxu.go.regexp_sets import characters

re2 = pytest.importorskip("re2", reason="package: re2")


def near_edges(names: list[str]) -> str:
    """The characters at both ends of all ranges, and those next to them."""
    codes = {code for name in names for low, high in class_ranges(name) for code in (low - 1, low, high, high + 1)}
    return "".join(chr(code) for code in sorted(codes) if 0 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF)


def members(written: str, text: str, *, ignores_case: bool = False) -> str:
    edges = [edge for low, high in characters(written, ignores_case=ignores_case) for edge in (low, high + 1)]
    assert edges == sorted(set(edges))
    return "".join(char for char in text if bisect_right(edges, ord(char)) % 2)


def by_re2(written: str, text: str) -> str:
    return "".join(re2.findall(f"{written}+", text))


def test_categories_and_scripts_are_those_of_re2() -> None:
    names = sorted(CLASS_NAMES)
    text = near_edges(names)
    assert len(text) > 4_000
    other = {}
    for name in names:
        ranges = class_ranges(name)
        taken = "".join(chr(code) for low, high in ranges for code in (low, high) if not 0xD800 <= code < 0xE000)
        outside = "".join(
            chr(code)
            for low, high in ranges
            for code in (low - 1, high + 1)
            if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000
        )
        if by_re2(rf"\p{{{name}}}", taken) != taken or (len(name) > 1 and by_re2(rf"\p{{{name}}}", outside)):
            other[name] = (taken, outside)
    assert not other


@pytest.mark.parametrize(
    "written",
    [
        r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", "[[:alpha:]]", "[[:^punct:]x]", "[^[:space:]]", r"[\w-]", "[k-s]", "[^k]",
        r"[\x{212A}]", r"[\p{Greek}]", r"[^\p{Lu}]", r"[\P{Ll}a]", r"[]\]^-]", r"[\101\x42\n]", r"[a-z\d\p{Nd}]", "[µ]", "[ß]",
        r"[\pL]", r"[\PL]", "[[:^word:]]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ignores_case", [False, True])
def test_classes_are_those_of_re2(written: str, ignores_case: bool) -> None:
    text = near_edges(["Lu", "Greek", "Nd"]) + "".join(map(chr, range(0x500)))
    assert members(written, text, ignores_case=ignores_case) == by_re2("(?i)" * ignores_case + written, text)
