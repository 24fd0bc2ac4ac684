"""Which patterns Go accepts, and its errors for the others."""

from __future__ import annotations

import pytest

from noxu.go.regexp_syntax import PatternError, to_re2
from tests.rows import rows

CLASS = "invalid character class"
RANGE = "invalid character class range"
ESCAPE = "invalid escape sequence"
NAMED = "invalid named capture"
PERL = "invalid or unsupported Perl syntax"
NESTED = "invalid nested repetition operator"
COUNT = "invalid repeat count"
BRACKET = "missing closing ]"
PAREN = "missing closing )"
ARGUMENT = "missing argument to repetition operator"
BACKSLASH = "trailing backslash at end of expression"
UNEXPECTED = "unexpected )"


@rows(
    ("pattern", "code", "fragment"),
    [
        # parentheses
        ("(", PAREN, "("),
        ("(a", PAREN, "(a"),
        ("x(?:a", PAREN, "x(?:a"),
        (")", UNEXPECTED, ")"),
        ("a)b", UNEXPECTED, "a)b"),
        ("(?i)a)", UNEXPECTED, "(?i)a)"),
        # repetition
        ("*", ARGUMENT, "*"),
        ("a|*?", ARGUMENT, "*?"),
        ("(+)", ARGUMENT, "+"),
        ("(?i)*", ARGUMENT, "*"),
        (r"\Q\E*", ARGUMENT, "*"),
        ("{2}", ARGUMENT, "{2}"),
        ("a**", NESTED, "**"),
        ("a+?*", NESTED, "+?*"),
        ("a++b", NESTED, "++"),
        ("a{2}{3}?", NESTED, "{2}{3}?"),
        ("a{2,1}", COUNT, "{2,1}"),
        ("a{1001}", COUNT, "{1001}"),
        ("a{1,1001}?", COUNT, "{1,1001}"),
        ("a{99999999999999999999}", COUNT, "{99999999999999999999}"),
        ("(a{100}){100}", COUNT, "{100}"),
        ("((a{10}){10}){11}", COUNT, "{11}"),
        ("(?:a{2,}){501}", COUNT, "{501}"),
        # groups and flags
        ("(?", PERL, "(?"),
        ("(?i", PERL, "(?i"),
        ("(?x)a", PERL, "(?x"),
        ("(?i-)a", PERL, "(?i-)"),
        ("(?i--s)a", PERL, "(?i--"),
        ("(?-:a)", PERL, "(?-:"),
        ("(?=a)", PERL, "(?="),
        ("(?!a)", PERL, "(?!"),
        ("(?>a)", PERL, "(?>"),
        ("(?#c)", PERL, "(?#"),
        ("(?'n'a)", PERL, "(?'"),
        ("(?P=n)", PERL, "(?P"),
        ("(?P<", PERL, "(?P"),
        ("(?<", PERL, "(?<"),
        ("x(?<=a)b", NAMED, "(?<=a)b"),
        ("(?<!a)b>", NAMED, "(?<!a)b>"),
        ("(?P<n", NAMED, "(?P<n"),
        ("(?P<>a)", NAMED, "(?P<>"),
        ("(?<n-1>a)", NAMED, "(?<n-1>"),
        ("(?P<é>a)", NAMED, "(?P<é>"),
        # classes
        ("[", BRACKET, "["),
        ("a[b", BRACKET, "[b"),
        ("[]", BRACKET, "[]"),
        ("[^]", BRACKET, "[^]"),
        ("[a-", BRACKET, "[a-"),
        ("[z-a]", RANGE, "z-a"),
        (r"[\x41-\t]", RANGE, r"\x41-\t"),
        (r"[a-\d]", ESCAPE, r"\d"),
        ("[[:foo:]]", RANGE, "[:foo:]"),
        ("[[:^foo:]]", RANGE, "[:^foo:]"),
        ("[[::]]", RANGE, "[::]"),
        (r"[\b]", ESCAPE, r"\b"),
        ("[\\", BACKSLASH, ""),
        # escapes
        ("\\", BACKSLASH, ""),
        (r"\1", ESCAPE, r"\1"),
        (r"\8", ESCAPE, r"\8"),
        (r"\19", ESCAPE, r"\1"),
        (r"\C", ESCAPE, r"\C"),
        (r"\Z", ESCAPE, r"\Z"),
        (r"\h", ESCAPE, r"\h"),
        (r"\u0041", ESCAPE, r"\u"),
        (r"\é", ESCAPE, r"\é"),
        (r"\x", ESCAPE, r"\x"),
        (r"\x4", ESCAPE, r"\x4"),
        (r"\x4g1", ESCAPE, r"\x4g"),
        (r"\xg41", ESCAPE, r"\xg4"),
        (r"\x{", ESCAPE, r"\x{"),
        (r"\x{}", ESCAPE, r"\x{}"),
        (r"\x{4g}", ESCAPE, r"\x{4g"),
        (r"\x{41", ESCAPE, r"\x{41"),
        (r"\x{110000}", ESCAPE, r"\x{110000"),
        (r"\x{1100000000}", ESCAPE, r"\x{110000"),
        # Unicode classes
        (r"\p", RANGE, r"\p"),
        (r"\p{", RANGE, r"\p{"),
        (r"a\p{Greek", RANGE, r"\p{Greek"),
        (r"\p{}", RANGE, r"\p{}"),
        (r"\p{^}", RANGE, r"\p{^}"),
        (r"\pé", RANGE, r"\pé"),
        (r"\p{Foo}", RANGE, r"\p{Foo}"),
        (r"[\P{Foo}]", RANGE, r"\P{Foo}"),
        (r"\p{Old_Persian}", RANGE, r"\p{Old_Persian}"),  # no script of two words
        (r"\p{Greek1}", RANGE, r"\p{Greek1}"),
        # the first error is reported
        (r"*\C", ARGUMENT, "*"),
        (r"\C*(", ESCAPE, r"\C"),
        ("(a**", NESTED, "**"),
    ],
)
def test_is_refused_in_go_s_words(pattern: str, code: str, fragment: str) -> None:
    with pytest.raises(PatternError) as caught:
        to_re2(pattern)
    assert str(caught.value) == f"error parsing regexp: {code}: `{fragment}`"


@rows(
    "pattern",
    [
        "", "a", "a|", "|", "()", "(?:)", "(|a)*", "a{,2}", "a{", "a{1", "a{01}", "a{1,", "{", "}", "]", "a(?i)*",
        "a*(?i)*", r"a\Q\E*", "^*", "$+", r"\b*", "(?i)", "(?i-s:a)", "(?-i)a", "(?ismU)a", "(?P<n>a)(?<n>b)",
        "(?<0_Z>a)", "[]a]", "[^]a]", "[a-]", "[-a]", "[--a]", "[[:foo]", "[[:word:][:^alpha:]]", r"[\d\W\pL\P{Lu}]",
        r"\Q(*\E", r"\Q", r"\_\-\.\/\<", r"\08\012\377", r"\x{10FFFF}\x{0041}", r"\a\f\n\r\t\v", r"\A\z\B", "a{1000}",
        "(a{10}){100}", "(?:a{0}b{3}){333}", "a{2}?", "x{2,}", "(a{0,}b{2}){500}",
    ],
)  # fmt: skip
def test_is_unchanged(pattern: str) -> None:
    taken = to_re2(pattern)
    assert taken == pattern or "\\p" in pattern.lower()


@rows(
    ("pattern", "rewritten"),
    [
        (r"\pL", r"[\p{L}]"),
        (r"\pl", r"[\p{L}]"),
        (r"\PL", r"[^\p{L}]"),
        (r"\p{^L}", r"[^\p{L}]"),
        (r"\P{^L}", r"[\p{L}]"),
        (r"a\p{ uppercase-LETTER }b", r"a[\p{Lu}]b"),
        (r"[\p{greek}x]", r"[\p{Greek}x]"),
        (r"\p{any}", r"[\x00-\x{10FFFF}]"),
        (r"\p{ASCII}", r"[\x00-\x7F]"),
        (r"\P{ascii}", r"[^\x00-\x7F]"),
        (r"\p{digit}", r"[\p{Nd}]"),
        (r"\p{punct}", r"[\p{P}]"),
        (r"\p{Lc}", r"[\p{Lu}\p{Ll}\p{Lt}]"),
        (r"\pC", r"[^\pL\pM\pN\pP\pS\pZ]"),
        (r"\p{Assigned}", r"[\pL\pM\pN\pP\pS\pZ\pC]"),
        (r"[\P{Any}a]", r"[\x{D800}a]"),
        (r"[\P{ASCII}]", r"[\x{80}-\x{10FFFF}]"),
    ],
)
def test_unicode_classes_are_spelled_for_re2(pattern: str, rewritten: str) -> None:
    assert to_re2(pattern) == rewritten


def nested(depth: int, inner: str = "a") -> str:
    return "(" * depth + inner + ")" * depth


@rows(
    ("pattern", "code"),
    [
        (nested(999), ""),
        (nested(1000), "expression nests too deeply"),
        (nested(998, "a*"), ""),
        (nested(999, "a*"), "expression nests too deeply"),
        ("(?:" * 5000 + "a" + ")" * 5000, ""),  # groups that capture nothing are no nodes
        ("(" * 5000, PAREN),
        ("(?:" + "a" * 3300 + "){1000}", ""),
        ("(?:" + "a" * 3400 + "){1000}", "expression too large"),
        ("(?:" + "ab*" * 1000 + "){1000}", "expression too large"),
    ],
)
def test_depth_and_size_are_limited(pattern: str, code: str) -> None:
    if not code:
        assert to_re2(pattern) == pattern
        return
    with pytest.raises(PatternError) as caught:
        to_re2(pattern)
    assert str(caught.value) == f"error parsing regexp: {code}: `{pattern}`"


@pytest.mark.slow
def test_hostile_patterns_are_read_in_linear_time() -> None:
    for pattern in ("(?:" * 100_000, r"\x{" + "0" * 300_000, "[" + "a" * 300_000, "a{1" * 100_000, "a|" * 150_000):
        try:
            to_re2(pattern)
        except PatternError:
            continue
