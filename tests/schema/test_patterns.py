"""Patterns match as Go's regular expressions do, and in linear time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from noxu.go.regexp_syntax import PatternError
from noxu.schema import patterns
from noxu.values import Object
from tests.rows import rows
from tests.timing import cpu_seconds


@pytest.fixture(params=["UTF-8", "an alphabet of its own"])
def _compiled_as(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every pattern is compiled in this way: without memory for UTF-8, in the other one."""
    if request.param != "UTF-8":
        monkeypatch.setattr(patterns, "MEMORY", 1)
        patterns._compile_cached.cache_clear()
    yield
    patterns._compile_cached.cache_clear()


@pytest.mark.usefixtures("_compiled_as")
@rows(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True),  # anywhere
        ("^b", "abc", False),
        ("c$", "abc", True),
        ("c$", "abc\n", False),  # the end is the end
        (r"c\z", "abc", True),
        ("(?m)c$", "abc\nd", True),
        ("(?m)^d", "abc\nd", True),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("^.$", "é", True),  # a character, not an octet
        ("^.$", "😀", True),
        (r"^\d$", "٣", False),  # ASCII only
        (r"^\w$", "é", False),
        (r"^\s$", "\v", False),
        (r"^\s$", "\f", True),
        (r"\bfoo\b", "a foo b", True),
        (r"\B", "aéb", False),  # nor within a character
        (r"^\Ba*(?i)*$", "", True),  # repeats what is before the flags
        ("(?i)^straße$", "STRAßE", True),
        ("(?i)^k$", "\u212a", True),  # the Kelvin sign
        ("(?i)^s$", "ſ", True),
        (r"^\pL+$", "aé日", True),
        (r"^\p{Greek}$", "α", True),
        (r"^\p{^Greek}$", "α", False),
        (r"^\PL$", "1", True),
        (r"^\p{lowercase letter}$", "a", True),
        (r"^\p{Cn}$", "\u0378", True),
        (r"^\pC$", "\u0378", True),  # unassigned ones are others
        (r"^\PC$", "a", True),
        (r"^[\PC1]$", "a", True),
        (r"^[^\PC]$", "a", False),
        (r"^\p{LC}$", "ǅ", True),
        (r"^[\P{LC}x]$", "日", True),
        (r"^[\P{LC}x]$", "X", False),
        (r"^\P{Any}$", "a", False),
        (r"^[\P{Any}a]$", "a", True),
        (r"(?i)^\P{ASCII}$", "k", False),
        ("^a{,2}$", "a{,2}", True),  # no repetition
        ("^a{0}$", "", True),
        (r"^\Qa.c\E$", "a.c", True),
        (r"^\Qa.c\E$", "abc", False),
        ("^[[:alpha:]-]+$", "a-b", True),
        (r"^\0\x41\x{e9}\101$", "\0Aé\x41", True),
        ("", "", True),
        ("$^", "", True),
        ("a^", "a", False),
        (r"^[^\x00-\x{10FFFF}]", "a", False),
    ],
)
def test_search(pattern: str, text: str, matches: bool) -> None:
    assert patterns.compile(pattern).search(text) is matches


@pytest.mark.usefixtures("_compiled_as")
@rows(
    ("pattern", "text", "found"),
    [
        ("b+", "abbab", ["bb", "b"]),
        ("x", "abc", []),
        ("b*", "abc", ["", "b", ""]),  # none right behind "b"
        ("", "aé", ["", "", ""]),
        ("a|ab", "ab", ["a"]),  # the first alternative wins
        ("a+?", "aaa", ["a", "a", "a"]),
        ("(?U)a+", "aaa", ["a", "a", "a"]),
        ("(a)(b)?", "ab a", ["ab", "a"]),
        (r"\b", "é a", ["", ""]),
        (r"\B", "1é", [""]),
        ("^a", "aaa", ["a"]),
        ("é|日", "xé日", ["é", "日"]),
        ("(?m)^.*$", "a\n\nb", ["a", "", "b"]),
    ],
)
def test_find_and_find_all(pattern: str, text: str, found: list[str]) -> None:
    compiled = patterns.compile(pattern)
    assert list(compiled.find_all(text)) == found
    assert compiled.find(text) == (found[0] if found else None)


def test_a_bad_pattern_is_a_value_error_in_go_s_words() -> None:
    with pytest.raises(ValueError, match=r"^error parsing regexp: missing closing \): `a\(b`$"):
        patterns.compile("a(b")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\pL{400}$", "é" * 400),
        (r"^\pL{900}\pL{900}$", "日" * 1_800),
        (r"(?i)^[\p{Greek}\p{Cyrillic}]{1,1000}k$", "Ωж\u212a"),
        (r"^\p{Lu}{500}\P{Lu}{500}$", "É" * 500 + "é" * 500),
        (r"\pL" * 2_000, "é" * 2_000),
        ("^" + "a{1000}" * 70, "a" * 70_000),
    ],
    ids=["letters", "twice", "ignoring case", "and others", "written often", "ASCII"],
)
def test_a_large_pattern_compiles_in_bounded_time(pattern: str, text: str) -> None:
    """Nothing interrupts RE2 while it compiles one program."""
    compiled = patterns.compile(pattern)
    assert compiled.search(text)
    assert not compiled.search("1" + text[1:])
    assert compiled.size <= 78_000


TOO_LARGE = {
    "too many instructions": "a{1000}" * 200,
    "too many sorts of characters in too many instructions": f"(?:{''.join(map(chr, range(0x4E00, 0x4F00)))}){{500}}",
    "too many classes": "".join(f"[{chr(n)}-{chr(n + 3)}]" for n in range(0x4E00, 0x5300)),
    "too long": "a" * (patterns.MAX_LENGTH + 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="expression too large"):
        patterns.compile(pattern)


@pytest.mark.slow
def test_no_program_takes_longer_than_the_loop_may_be_blocked() -> None:
    """Of the steps of compiling a large pattern, RE2's are those that cannot be interrupted."""
    slowest = "a{1000}" * 77
    assert cpu_seconds(lambda: patterns._program(slowest, slowest)) < 0.05


def test_a_large_pattern_is_not_cached() -> None:
    """Those who use it keep it."""
    large = r"\pL{9}"
    assert patterns.size(large) == patterns.compile(large).size > patterns.MAX_CACHED_SIZE
    assert patterns.compile(large) is not patterns.compile(large)


def test_a_pattern_is_compiled_once() -> None:
    assert patterns.compile("once") is patterns.compile("once")


EVIL = [
    "^(a+)+$", "(a*)*b", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x", "(.*a){20}$", "(x+x+)+y",
    "([a-zA-Z]+)*$", "^(a?){30}a{30}$", r"\s+$", r"(\w+\s?)+$", "^.*foo.*bar.*baz$", "(a+)*b(a+)*c", "[ab]*a[ab]{15}$",
    "(?i)(k|s)+$", r"(\pL+)*\d$", "^((ab)*)*$", ".*.*.*.*=.*", "^(.*?,){11}P",
]  # fmt: skip


@pytest.mark.slow
def test_evil_patterns_take_linear_time() -> None:
    text = "a" * 1_000_000 + "!"
    compiled = [patterns.compile(pattern) for pattern in EVIL]
    start = time.process_time()
    for pattern in compiled:
        pattern.search(text)
    assert time.process_time() - start < 1  # 0.03 s; twenty backtracking searches would not end


# Random patterns, and the result of Go's regexp package: its error, or all matches in each of TEXTS.
BY_CHANCE = [json.loads(line) for line in Path(__file__).with_name("patterns.jsonl").read_text().splitlines()]
TEXTS = ["", "abc", "aab\n", "é☃K", "a.*b 1_", "ſs\t"]


@pytest.mark.slow
@rows("row", BY_CHANCE, ids=lambda row: row["pattern"])
def test_patterns_match_as_in_go(row: Object) -> None:
    assert judged(row["pattern"]) == row


@rows("row", BY_CHANCE[::30], ids=lambda row: row["pattern"])
def test_patterns_with_an_alphabet_match_as_in_go(row: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MEMORY", 1)
    patterns._compile_cached.cache_clear()
    assert judged(row["pattern"]) == row


def judged(pattern: str) -> Object:
    """What a row says about a pattern."""
    try:
        compiled = patterns.compile(pattern)
    except ValueError as error:
        return {"pattern": pattern, "error": str(error)}
    return {"pattern": pattern, "found": [list(compiled.find_all(text)) for text in TEXTS]}
