"""Label and field selectors: matching, the canonical form, and parse errors."""

import gc
import itertools
import time
import weakref
from collections.abc import Callable

import pytest

from noxu.api import selectors
from noxu.api.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    LabelSelector,
    label_selector,
    parse_fields,
    parse_labels,
)
from tests.rows import rows
from tests.timing import cpu_seconds

LABELS = {"app": "web", "tier": "front", "n": "5", "empty": ""}

SELECTS = [
    ("no requirement at all", "", True),
    ("white space only", " \t\r\n", True),
    ("a present label", "app", True),
    ("an absent label", "nope", False),
    ("the absence of a present label", "!app", False),
    ("the absence of an absent label", "!nope", True),
    ("a space after the exclamation mark", "! nope", True),
    ("a value", "app=web", True),
    ("a value, with ==", "app==web", True),
    ("another value", "app=db", False),
    ("any value but one", "app!=db", True),
    ("any value but this", "app!=web", False),
    ("any value but one, of an absent label", "nope!=x", True),
    ("an empty value", "empty=", True),
    ("an empty value of an absent label", "nope=", False),
    ("one of several values", "app in (db,web)", True),
    ("none of several values", "app notin (db,web)", False),
    ("none of several values, of an absent label", "nope notin (db,web)", True),
    ("one of several values, of an absent label", "nope in (db,web)", False),
    ("an empty set of values, which is the empty value", "empty in ()", True),
    ("an empty place between commas", "empty in (x,,y)", True),
    ("an empty place before the first comma", "empty in (,x)", True),
    ("an empty place after the last comma", "empty in (x,)", True),
    ("no empty place", "empty in (x,y)", False),
    ("a greater number", "n>4", True),
    ("an equal number", "n>5", False),
    ("a smaller number", "n<6", True),
    ("numbers of a label that is no number", "app>4", False),
    ("numbers of an absent label", "nope<4", False),
    ("two requirements that hold", "app=web,tier=front", True),
    ("two requirements of which one fails", "app=web,tier=back", False),
    ("space wherever it may be", " app  in ( web , db ) ,\ttier = front ", True),
    ("words of the grammar as keys", "in,notin", False),
    ("words of the grammar as values", "app in (in,notin)", False),
    ("words of the grammar as the one value", "app!=notin", True),
    ("a NUL at the start ends the text", "\0nope", True),
    ("a NUL after a word is passed over", "app\0=web", True),
]


@rows(("text", "selected"), [row[1:] for row in SELECTS], ids=[row[0] for row in SELECTS])
def test_a_label_selector_selects(text: str, selected: bool) -> None:
    assert parse_labels(text).matches(LABELS) is selected


@rows(
    ("text", "written"),
    [
        ("", ""),
        ("b,a", "a,b"),
        ("! a", "!a"),
        ("a == b", "a==b"),
        ("a=b", "a=b"),
        ("a!=b", "a!=b"),
        ("a in (c,b,b)", "a in (b,c)"),
        ("a notin ( )", "a notin ()"),
        ("a>1,a<2", "a>1,a<2"),
        ("x.y/z in (1)", "x.y/z in (1)"),
    ],
)
def test_a_label_selector_has_one_canonical_form(text: str, written: str) -> None:
    selector = parse_labels(text)
    assert str(selector) == written
    assert parse_labels(written) == selector


KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
REQUIREMENT = "unable to parse requirement: "


@rows(
    ("text", "message"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in (b) c", "found 'c', expected: ',' or 'end of string'"),
        ("!", f"{REQUIREMENT}found '', expected: identifier"),
        ("!!a", f"{REQUIREMENT}found '!', expected: identifier"),
        ("a b", f"{REQUIREMENT}found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a ( b )", f"{REQUIREMENT}found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a = (", f"{REQUIREMENT}found '(', expected: identifier"),
        ("a in", f"{REQUIREMENT}found '' expected: '('"),
        ("a in b", f"{REQUIREMENT}found 'b' expected: '('"),
        ("a in (", f"{REQUIREMENT}found '', expected: ',', ')' or identifier"),
        ("a in (b", f"{REQUIREMENT}found '', expected: ',' or ')'"),
        ("a in (b c)", f"{REQUIREMENT}found 'c', expected: ',' or ')'"),
        ("a in (b,", f"{REQUIREMENT}found '', expected: ',', or identifier"),
        ("a in (,!)", f"{REQUIREMENT}found '!', expected: ',', or identifier"),
        ("-x", f'{REQUIREMENT}<nil>: Invalid value: "-x": {KEY}'),
        ("a=-", f'{REQUIREMENT}values[0][a]: Invalid value: "-": {VALUE}'),
        ("a in (-,b,_)", f'{REQUIREMENT}[values[0][a]: Invalid value: "-": {VALUE}, '
                         f'values[1][a]: Invalid value: "_": {VALUE}]'),
        ("a>b", f"{REQUIREMENT}values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>9223372036854775808", f'{REQUIREMENT}values[0]: Invalid value: "9223372036854775808": '
                                  "for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)  # fmt: skip
def test_malformed_label_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        parse_labels(text)
    assert str(raised.value) == message


def test_a_number_may_have_leading_zeros_but_must_fit_into_int64() -> None:
    assert parse_labels(f"n<{'0' * 50}6").matches(LABELS)
    assert not parse_labels("n<6").matches({"n": "9" * 60})


def test_everything_and_nothing() -> None:
    assert (EVERYTHING.empty, EVERYTHING.matches({})) == (True, True)
    assert (NOTHING.empty, NOTHING.matches({})) == (False, False)
    assert parse_labels("") is EVERYTHING


OBJECTS = [
    ("nothing given", None, "", False),
    ("everything", {}, "", True),
    ("everything, with empty parts", {"matchLabels": {}, "matchExpressions": None}, "", True),
    ("labels", {"matchLabels": {"tier": "front", "app": "web"}}, "app=web,tier=front", True),
    ("In", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["b", "a"]}]}, "app in (a,b)", False),
    ("NotIn", {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]}, "app notin (b)", True),
    ("Exists", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "app", True),
    ("DoesNotExist", {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, "!app", False),
]


@pytest.mark.parametrize(
    ("given", "written", "selected"), [row[1:] for row in OBJECTS], ids=[row[0] for row in OBJECTS]
)
def test_a_selector_may_be_an_object(given: dict[str, object] | None, written: str, selected: bool) -> None:
    selector = label_selector(given)
    assert (str(selector), selector.matches(LABELS)) == (written, selected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1"]}, '"Gt" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        ({"key": "", "operator": "Exists"}, f'key: Invalid value: "": name part must be non-empty; {KEY}'),
    ],
)
def test_an_object_that_is_no_selector_is_refused(expression: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        label_selector({"matchExpressions": [expression]})
    assert str(raised.value) == message


FIELDS = {"metadata.name": "a", "spec.x": "1,2=3\\4", "spec.empty": ""}


@rows(
    ("text", "selected"),
    [
        ("", True),
        (",", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("metadata.name=b", False),
        ("metadata.name=a,metadata.name!=b", True),
        ("spec.empty=", True),
        ("spec.absent=", True),
        ("spec.absent!=x", True),
        (r"spec.x=1\,2\=3\\4", True),
        ("metadata.name= a", False),
        ("=", True),
    ],
)
def test_a_field_selector_selects(text: str, selected: bool) -> None:
    assert parse_fields(text).matches(FIELDS) is selected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("b=1,a==2", "a=2,b=1"),
        ("a!=b", "a!=b"),
        (r"a=\,\=\\", r"a=\,\=\\"),
    ],
)
def test_a_field_selector_has_one_canonical_form(text: str, written: str) -> None:
    assert str(parse_fields(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo", "invalid selector: 'foo'; can't understand 'foo'"),
        ("a=b,foo", "invalid selector: 'a=b,foo'; can't understand 'foo'"),
        (r"a\=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=r\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a!=!=b", "invalid field selector: unescaped character in value: 61"),
        ("a===b", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_malformed_field_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        parse_fields(text)
    assert str(raised.value) == message


def test_a_field_selector_knows_the_value_that_a_field_must_equal() -> None:
    selector = parse_fields("metadata.name=a,spec.x!=b")
    assert (selector.exact("metadata.name"), selector.exact("spec.x"), selector.exact("other")) == ("a", None, None)
    assert not selector.empty
    assert parse_fields(",").empty


def test_a_long_selector_is_read_in_linear_time() -> None:
    text = "a in (" + ",".join(f"v{n}" for n in range(20_000)) + ")"
    assert len(parse_labels(text).requirements[0].values) == 20_000
    assert parse_fields("\\," * 50_000 + "=x").terms == (selectors.Term("\\," * 50_000, True, "x"),)


@pytest.mark.parametrize(
    "text",
    [",".join(f"a{n}=b" for n in range(10_000)), ",".join(["a=b"] * 20_000), ",".join(f"a{n} in (b,c)" for n in range(5_000))],
    ids=["equal", "the same", "one of"],
)  # fmt: skip
def test_thousands_of_requirements_take_linear_time(text: str) -> None:
    began = time.thread_time()
    selector = selectors.parse_labels(text)
    assert not selector.matches({"a0": "b"}) or "a=b" in text
    assert selector.cost >= 10_000
    assert time.thread_time() - began < 2.0


@pytest.mark.parametrize("parse", [parse_labels, parse_fields])
def test_a_parsed_selector_is_shared_as_long_as_it_is_used(
    parse: Callable[[str], LabelSelector | FieldSelector],
) -> None:
    first = parse("shared=1")
    assert parse("shared=1") is first
    assert parse("shared=2") is not first
    known = weakref.ref(first)
    del first
    gc.collect()
    assert known() is None


# -- the fast path -----------------------------------------------------------------------------------------------------


def test_the_fast_path_of_label_selectors_accepts_only_what_the_parser_reads_in_the_same_way() -> None:
    """All texts of up to five of these characters, and longer ones."""
    short = ("".join(chars) for length in range(1, 6) for chars in itertools.product("a!=,-\n", repeat=length))
    longer = [
        "a,!b,c=d,e==f,g!=h,i=",
        f"{'a' * 63}=b",
        f"{'a' * 64}=b",
        f"a={'b' * 64}",
        "a in (b),c",
        "x/a=b",
        "a=b\x00",
    ]
    accepted = 0
    for text in (*short, *longer):
        found = selectors._plain(text)
        if found is not None:
            accepted += 1
            assert found == selectors._LabelParser(text).parse(), text
    assert accepted > 80


def test_the_fast_path_of_field_selectors_reads_terms_as_the_parser_does() -> None:
    for length in range(1, 7):
        for chars in itertools.product("a!=\\", repeat=length):
            piece = "".join(chars)
            found = selectors._plain_term(piece)
            if found is not None:
                assert found == selectors._term(piece, piece), piece


@pytest.mark.parametrize(
    "text",
    [
        ",".join(f"key-{n}" for n in range(3_000)),
        ",".join(f"key-{n}!=value" for n in range(2_000)),
        "a" * 120_000,
        "a." * 60_000,
        ("a" * 63 + ",") * 1_900 + "-",
        ("a" * 62 + ".,") * 1_900,
        "!" * 100_000,
        "a=" * 50_000,
    ],
    ids=[
        "keys",
        "values",
        "one name",
        "dots",
        "wrong at the end",
        "wrong in each",
        "exclamation marks",
        "equals signs",
    ],
)
def test_the_fast_path_is_linear(text: str) -> None:
    assert cpu_seconds(lambda: selectors._plain(text)) < 0.02


@pytest.mark.parametrize(
    ("text", "cost"),
    [("", 0), ("ua", 1), ("ua,ub", 2), ("ua=b\\,c", 1), ("ua in (b,c)", 2)],
)
def test_the_cost_of_a_selector_is_known_before_it_is_parsed(text: str, cost: int) -> None:
    assert selectors.cost_of(text) == cost


def test_a_selector_in_use_costs_nothing_more() -> None:
    kept = selectors.parse_labels("one,two,three")
    assert (kept.cost, selectors.cost_of("one,two,three")) == (3, 0)
