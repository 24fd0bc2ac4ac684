"""Without RE2, patterns are matched alike, and in time that is linear in the text."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.cpu_budget import limited_by
from noxu.go import regexp_matching
from noxu.go.regexp_syntax import PatternError, to_re2
from noxu.schema import patterns
from tests.optional import SHARED, needs_data, needs_re2
from tests.timing import cpu_seconds


def pure(pattern: str) -> patterns.Pattern:
    return patterns._compile_pure(pattern, to_re2(pattern))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b+", "abbab", ["bb", "b"]),
        ("b*", "abc", ["", "b", ""]),
        ("a|ab", "ab", ["a"]),  # the first alternative wins
        ("(?:a|ab)(?:c|bcd)", "abcd", ["abcd"]),
        ("a+?", "aaa", ["a", "a", "a"]),
        ("(?U)a+", "aaa", ["a", "a", "a"]),
        ("(?U)a+?", "aaa", ["aaa"]),
        ("(|a)*", "aa", ["", "", ""]),  # an empty iteration is preferred and ends the repetition
        ("(|a)+", "aa", ["", "", ""]),
        ("a{2,3}", "aaaaa", ["aaa", "aa"]),
        ("a{2,3}?", "aaaaa", ["aa", "aa"]),
        ("a{01}", "a{01}", ["a{01}"]),
        (r"\b\w", "é ab_ c", ["a", "c"]),
        (r"\B", "ab", [""]),
        ("(?m)^.*$", "a\n\nb", ["a", "", "b"]),
        (r"\Aa|b\z", "aabb", ["a", "b"]),
        ("(?i)k+", "kK\u212a", ["kK\u212a"]),
        ("(?i:a)b", "Ab aB", ["Ab"]),
        ("[^a]", "aé\n", ["é", "\n"]),
        ("(?s).", "\n", ["\n"]),
        (r"\p{Greek}+", "abγδ", ["γδ"]),
        ("a(?:^|$)", "ba", ["a"]),
    ],
)
def test_find_all(pattern: str, text: str, found: list[str]) -> None:
    assert list(pure(pattern).find_all(text)) == found
    assert pure(pattern).search(text)


@pytest.mark.parametrize(
    "pattern",
    ["a{1000}" * 200, "(?:" + "ab" * 50 + "){0,1000}", r"(?:\pL|\d){1000}[a-c]{1000}" * 80],
    ids=["copies", "optional copies", "alternatives"],
)
def test_too_large_programs_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="expression too large"):
        pure(pattern)


LARGE = {
    "alternatives": "|".join(f"abc{n}" for n in range(9_000)),
    "empty alternatives": "a|" * 20_000,
    "copies": "a{1000}" * 77 + "|xabc",
    "groups": "(?:" * 20_000 + "a" + ")" * 20_000,
}


@pytest.mark.slow
@needs_re2
@pytest.mark.parametrize("pattern", LARGE.values(), ids=LARGE)
def test_what_re2_takes_is_not_too_large(pattern: str) -> None:
    text = "xabc7"
    assert patterns._compile(pattern).search(text)
    assert pure(pattern).search(text)


ATOMS = st.sampled_from([
    "a", "b", "k", "é", "☃", ".", r"\d", r"\w", r"\W", r"\s", "[ab]", "[^a]", "[a-cé]", r"\pL", r"\PL", r"[\p{Lu}_]",
    "[[:alpha:]]", "^", "$", r"\b", r"\B", r"\A", r"\z", "(?i)", "(?m)", "(?s)", "(?U)", "", "{", "\\x61", r"\Qa.\E",
])  # fmt: skip
OPERATORS = st.sampled_from(["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,3}", "{2,}", "{0,2}?", "**"])
PATTERNS = st.recursive(
    st.builds(str.__add__, ATOMS, OPERATORS),
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner),
        st.builds("({}){}".format, inner, OPERATORS),
        st.builds("(?i:{})".format, inner),  # RE2 finds A by (?i:(a??)*)* where Go and we find the empty text
        st.builds("(?ms-U:{})".format, inner),
    ),
    max_leaves=8,
)
TEXTS = st.text(st.sampled_from("aabkKé☃A1_ \n.ſ\u212a"), max_size=8)


@pytest.mark.slow
@needs_re2
@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=4))
def test_verdicts_are_those_of_re2(pattern: str, texts: list[str]) -> None:
    assert judged(pure, pattern, texts) == judged(patterns.compile, pattern, texts)


@needs_re2
@needs_data("crds/crd")
def test_verdicts_on_patterns_of_real_definitions_are_those_of_re2() -> None:
    """Each pattern on its own text, and on values as objects have them."""
    written = {
        line
        for file in (SHARED / "crds/crd").iterdir()
        for line in re.findall(r"^ *pattern: (.+)$", gzip.decompress(file.read_bytes()).decode(), re.MULTILINE)
    }
    found = []
    for scalar in sorted(written):
        try:
            found.append(str(yaml.safe_load(scalar)))
        except yaml.YAMLError:
            continue  # it goes on in the next line
    assert len(found) > 50
    other = [
        pattern
        for pattern in found
        if judged(pure, pattern, [*VALUES, pattern]) != judged(patterns.compile, pattern, [*VALUES, pattern])
    ]
    assert not other


VALUES = [
    "", "a", "web-1", "example.com", "https://example.com/a?b=c#d", "10.0.0.1", "10.0.0.0/8", "fe80::1/64", "10m", "1h30m5s",
    "100Mi", "-1.5e3", "2024-02-30T01:02:03.5Z", "v1.2.3-rc.1+b", "arn:aws:iam::012345678901:role/a", "a/b:latest",
    "registry.example.com:5000/a/b@sha256:" + "0" * 64, "A_B", "x" * 64, "é", "a b\n", "app=web,tier!=db", "50%", "True",
]  # fmt: skip


def judged(compile_: Callable[[str], patterns.Pattern], pattern: str, texts: list[str]) -> object:
    try:
        compiled = compile_(pattern)
    except PatternError as error:
        return str(error)
    return [(compiled.search(text), compiled.find(text), list(compiled.find_all(text))) for text in texts]


@pytest.mark.parametrize("states", [1, 2, 5])
def test_an_automaton_that_begins_again_finds_the_same(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "abbabaabab" * 20
    expected = [pure(pattern).search(text) for pattern in FORGETFUL]
    monkeypatch.setattr(regexp_matching, "MAX_STATES", states)
    assert [pure(pattern).search(text) for pattern in FORGETFUL] == expected == [True, False, True, False]


FORGETFUL = ["[ab]*a[ab]{6}$", r"a\b[ab]", "(ab|ba|bb)+$", "^(abb|aba)*$"]


def test_the_states_of_an_automaton_are_bounded() -> None:
    pattern = pure("[ab]*a[ab]{12}c")
    assert isinstance(pattern, patterns._PurePattern)
    text = "".join("ab"[n * n % 7 % 3 % 2 ^ (n >> 3 & 1) ^ (n % 11 == 0)] for n in range(6_000))
    assert not pattern.search(text)
    assert 1 < len(pattern._automaton._states) <= regexp_matching.MAX_STATES


EVIL = [
    "^(a+)+$", "(a*)*b", "(a|aa)+$", "(a|a?)+$", "(.*)*x", "(.*a){20}$", "(x+x+)+y", "^(a?){30}a{30}$", "(a+)*b(a+)*c",
    "[ab]*a[ab]{15}$", r"(\pL+)*\d$", "((a{0,10}){0,10}){0,10}$", r"(\w+\s?)+$", "^(.*?,){11}P", "(?:a?){1000}$",
]  # fmt: skip


def test_evil_patterns_take_linear_time() -> None:
    """Four times the text takes about four times as long, compared within this run; it would be 16 times if it was squared."""
    compiled = [pure(pattern) for pattern in EVIL]

    def search(length: int) -> None:
        for pattern in compiled:
            pattern.search("a" * length + "!")

    search(10)
    assert cpu_seconds(lambda: search(80_000)) < 10 * cpu_seconds(lambda: search(20_000))


def test_each_character_visits_an_instruction_once() -> None:
    """The units of work that a search announces, for a text on which no state is known."""

    class Counter:
        spent = 0

        def begin(self) -> None: ...
        def check(self, upcoming_cost: int = 0) -> None: ...
        def checkpoint(self) -> None: ...
        def require_imported(self, module: str, name: str) -> None: ...
        def spend(self, units: int) -> None:
            self.spent += units

    pattern = pure("(?:(?:a?b?)*){200}$")
    text = "ab" * 50 + "!"
    for work in (lambda: pattern.search(text), lambda: pattern.find(text)):
        counter = Counter()
        with limited_by(counter):
            work()
        assert 0 < counter.spent <= 4 * len(text) * pattern.size // regexp_matching.VISITS_PER_UNIT


@pytest.mark.parametrize("absent", ["asked for by the environment", "not installed"])
def test_the_engine_takes_the_place_of_re2(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent == "not installed":
        monkeypatch.setitem(sys.modules, "re2", None)
    else:
        monkeypatch.setenv(patterns.PURE_VARIABLE, "1")
    for cached in (patterns._re2, patterns._compile_cached):
        cached.cache_clear()
    try:
        assert isinstance(patterns.compile(r"^[\PL1]\p{Greek}$"), patterns._PurePattern)
        assert patterns.compile(r"^[\PL1]\p{Greek}$").search("1γ")
        with pytest.raises(ValueError, match=r"^error parsing regexp: missing closing \): `a\(b`$"):
            patterns.compile("a(b")
    finally:
        monkeypatch.undo()
        for cached in (patterns._re2, patterns._compile_cached):
            cached.cache_clear()
