"""kubectl's JSONPath dialect. The expected results are those of upstream's parser and evaluator."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.tables.jsonpath import MAX_OF_ROW as MAX_VALUES
from noxu.tables.jsonpath import MAX_RANGES, Bare, PathError, parse
from tests.rows import rows

OBJECT = {
    "metadata": {"name": "w1", "labels": {"a.b/c": "label"}, "annotations": None},
    "spec": {
        "text": "abc",
        "empty": "",
        "int": 5,
        "float": 2.5,
        "yes": True,
        "null": None,
        "a.b": "dotted",
        "a": {"b": "nested"},
        "x y": "spaced",
        "*": "star",
        "list": ["p", "q", "r"],
        "none": [],
        "nothing": {},
        "deep": [[1, 2], [3]],
        "items": [
            {"n": "x", "v": 3, "f": 1.5, "tags": [1, 2], "ready": True},
            {"n": "y", "v": 4, "w": None},
            {"n": "x", "v": 7},
            {"v": "9"},
        ],
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
}

FOUND = [
    # fields
    ("a field", ".spec.text", ["abc"]),
    ("an empty text", ".spec.empty", [""]),
    ("a null is a result", ".spec.null", [None]),
    ("a list is one result", ".spec.list", [["p", "q", "r"]]),
    ("a missing field is none", ".spec.missing", []),
    ("a field of a missing field", ".missing.text", []),
    ("a field of a text", ".spec.text.x", []),
    ("a field of a null", ".spec.null.x", []),
    ("a field of a list", ".spec.items.n", []),
    ("an escaped dot", ".metadata.labels.a\\.b/c", ["label"]),
    ("an escaped dot within", ".spec.a\\.b", ["dotted"]),
    ("an unescaped dot", ".spec.a.b", ["nested"]),
    ("an escaped space", ".spec.x\\ y", ["spaced"]),
    ("an escaped star is a name", ".spec.\\*", ["star"]),
    ("every backslash is dropped from a name", ".spec.t\\e\\x\\t", ["abc"]),
    ("a field without a name", ".", []),
    # `$` and `@` are ignored
    ("a dollar on the way", ".spec$.text", ["abc"]),
    ("an at on the way", ".spec@.text", ["abc"]),
    ("a dollar after the first dot leaves an empty name", ".$.spec", []),
    # quoted names
    ("a quoted name", "['spec']", [OBJECT["spec"]]),
    ("a quoted name after a field", ".spec['text']", ["abc"]),
    ("a dot in quotes separates all the same", ".spec['a.b']", ["nested"]),
    ("an escaped dot in quotes", ".spec['a\\.b']", ["dotted"]),
    ("a quoted star", ".spec.list['*']", ["p", "q", "r"]),
    ("an empty quoted name", ".spec['']", []),
    # indices and slices
    ("the first item", ".spec.list[0]", ["p"]),
    ("the last item", ".spec.list[-1]", ["r"]),
    ("the second last item", ".spec.list[-2]", ["q"]),
    ("the last item as a slice", ".spec.list[-1:]", ["r"]),
    ("everything", ".spec.list[*]", ["p", "q", "r"]),
    ("everything as a slice", ".spec.list[:]", ["p", "q", "r"]),
    ("from the second on", ".spec.list[1:]", ["q", "r"]),
    ("up to the second", ".spec.list[:2]", ["p", "q"]),
    ("all but the last", ".spec.list[:-1]", ["p", "q"]),
    ("every second item", ".spec.list[::2]", ["p", "r"]),
    ("bounds and a step", ".spec.list[0:3:2]", ["p", "r"]),
    ("nothing in the brackets is the first item", ".spec.list[]", ["p"]),
    ("an empty slice", ".spec.list[1:1]", []),
    ("leading zeros", ".spec.list[" + "0" * 30 + "1]", ["q"]),
    ("all items of an empty list", ".spec.none[*]", []),
    ("an index beyond the end fails", ".spec.list[3]", []),
    ("an index before the start fails", ".spec.list[-4]", []),
    ("an index of an empty list fails", ".spec.none[0]", []),
    ("a stop beyond the end fails", ".spec.list[0:9]", []),
    ("bounds the wrong way round fail", ".spec.list[2:1]", []),
    ("a step of zero fails", ".spec.list[0:3:0]", []),
    ("a negative step fails", ".spec.list[0:3:-1]", []),
    ("an index of a map fails", ".spec[0]", []),
    ("an index of a text fails", ".spec.text[0]", []),
    ("an index of a null is none", ".spec.null[0]", []),
    ("an index of something missing is none", ".spec.missing[0]", []),
    ("an index of each list", ".spec.deep[*][0]", [1, 3]),
    ("an index that one of the lists has not fails", ".spec.deep[*][1]", []),
    ("an empty slice ends the search", ".spec.deep[*][0:0]", []),
    ("items of items", ".spec.deep[*][*]", [1, 2, 3]),
    ("a field of each item, where it is", ".spec.items[*].n", ["x", "y", "x"]),
    # unions
    ("two indices", ".spec.list[0,2]", ["p", "r"]),
    ("with spaces", ".spec.list[ 0 , 2 ]", ["p", "r"]),
    ("a union takes things twice", ".spec.list[0,*]", ["p", "p", "q", "r"]),
    ("two names", ".spec['text','int']", ["abc", 5]),
    ("a missing name in a union", ".spec['missing','int']", [5]),
    ("slices in a union", ".spec.list[0:1,-1:]", ["p", "r"]),
    ("nothing in a union is the first item", ".spec.list[2,]", ["r", "p"]),
    ("a filter in a union", ".spec.items[0,?(@.w)].v", [3, 4]),
    ("one branch fails, all fail", ".spec.list[0,7]", []),
    # wildcards and descents; maps in the order of their keys
    ("all values of a map", ".spec.a.*", ["nested"]),
    ("all items of a list", ".spec.list.*", ["p", "q", "r"]),
    ("all bytes of a text", ".spec.text.*", [97, 98, 99]),
    ("nothing in a number", ".spec.int.*", []),
    ("a map and all that is in it", ".spec.a..", [{"b": "nested"}, "nested"]),
    ("everything called so, parents first", "..b", ["nested"]),
    ("everything below", ".spec.a..b", ["nested"]),
    ("a descent into lists", ".spec..v", [3, 4, 7, "9"]),
    ("what contains something, and nothing else", ".spec.deep..", [[[1, 2], [3]], [1, 2], [3]]),
    ("a descent and an index", ".status..['type']", ["Ready", "Synced"]),
    ("a descent into nothing", ".missing..x", []),
    # filters
    ("equal to a text", '.spec.items[?(@.n=="x")].v', [3, 7]),
    ("in single quotes", ".spec.items[?(@.n=='y')].v", [4]),
    ("with spaces", '.spec.items[?( @.n == "y" )].v', [4]),
    ("a condition", '.status.conditions[?(@.type=="Ready")].status', ["True"]),
    ("without the at", '.status.conditions[?(.type=="Ready")].status', ["True"]),
    ("not equal", '.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
    ("less", ".spec.deep[0][?(@<2)]", [1]),
    ("less or equal", ".spec.deep[0][?(@<=2)]", [1, 2]),
    ("greater", ".spec.deep[0][?(@>1)]", [2]),
    ("greater or equal", ".spec.deep[0][?(@>=1)]", [1, 2]),
    ("texts have an order", '.spec.list[?(@>"p")]', ["q", "r"]),
    ("booleans are equal", ".spec.items[?(@.ready==true)].n", ["x"]),
    ("booleans have no order", ".spec.items[?(@.ready<=true)].n", []),
    ("a float", ".spec.items[?(@.f==1.5)].n", ["x"]),
    ("an integer is no float", ".spec.items[?(@.f==1)].n", []),
    ("an integer is no text", ".spec.items[?(@.v==3)].n", []),
    ("a null has nothing to compare with", '.spec.items[?(@.w=="x")].n', []),
    ("both sides from the item", ".spec.deep[0][?(@==@)]", [1, 2]),
    ("a constant on the left", '.spec.items[?("x"==@.n)].v', [3, 7]),
    ("a signed number", ".spec.deep[0][?(@>-1)]", [1, 2]),
    ("several values on one side fail", ".spec.items[?(@.tags[*]==1)].n", []),
    ("several values on the other side fail", ".spec.deep[?(@[0]==@[*])]", []),
    ("none on the left passes over", ".spec.items[?(@.missing[*]==1)].n", []),
    ("none on the right passes over", ".spec.items[?(@.n==@.missing)].n", []),
    ("a failing left side fails", ".spec.items[?(@.n[0]==1)]", []),
    ("an unknown operator fails", '.spec.items[?(@.n="x")].n', []),
    ("but only where it is to compare", '.spec.items[?(@.missing="x")].n', []),
    ("and where it is given, nothing else is found either", '.spec.items[?(@.w="x")]', []),
    ("a filter on a map fails", '.spec[?(@.n=="x")]', []),
    ("a filter on a null fails", ".spec['null','items'][?(@.n)]", []),
    ("a parenthesis in quotes", '.spec.list[?(@!=")")]', ["p", "q", "r"]),
    ("escapes in quotes", '.spec.list[?(@=="\\x70")]', ["p"]),
    ("exists", ".spec.items[?(@.f)].n", ["x"]),
    ("a null exists", ".spec.items[?(@.w)].n", ["y"]),
    ("nothing at all exists", ".spec.deep[?()]", [[1, 2], [3]]),
    ("the item exists", ".spec.deep[?(@)]", [[1, 2], [3]]),
    ("a failed index leaves the list, which exists", ".spec.items[?(@.tags[9])].n", ["x"]),
    ("a failed union leaves what went in", ".spec.items[?(@.tags['x',9])].n", ["x"]),
    ("a filter after a filter", ".spec['items'][?(@.n==\"x\")].tags[?(@>1)]", [2]),
    # constants
    ("a text in a path", '.spec "text"', ["text"]),
    ("a text even without anything before", '.missing "text"', ["text"]),
    ("a number for each value", ".spec.list[*] 5", [5, 5, 5]),
    ("a number after nothing", ".missing 5", []),
    ("a float in a path", ".spec 1.5", [1.5]),
    ("a number that ends in a dot", ".spec 3.", [3.0]),
    ("a number too large for an integer", ".spec 99999999999999999999", [1e20]),
    ("a boolean in a path", ".spec true", [True]),
    ("false", ".spec false", [False]),
    ("a word fails", ".spec text", []),
    ("end without range fails", ".spec end", []),
    # several parts: the first one counts, a failure in any of them fails
    ("a part after the first", ".spec.text}, {.spec.int", ["abc"]),
    ("text after the first part", ".spec.text} and more", ["abc"]),
    ("a part that fails", ".spec.text}{.spec.list[9]", []),
    # ranges
    ("a range over a list", ".spec.items[*] range}{.n}{end", ["x"]),
    ("a range over one value", ".spec.a range}{.b}{end", ["nested"]),
    ("a range over nothing shows what follows", ".spec.none[*] range}{.n}{end}{.spec.int", [5]),
    ("a range over nothing alone", ".spec.none[*] range}{.n}{end", []),
    ("a range in a range", ".spec.deep[*] range}{[*] range}{@}{end}{end", [1]),
    ("after a range without an end the path continues", ".spec.a range}{.b", ["nested"]),
    ("an end too many", ".spec.a range}{.b}{end}{end", []),
]


@rows(("path", "found"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_values_found_by_a_path(path: str, found: list[object]) -> None:
    result = parse(path).find(OBJECT)
    assert result == found
    assert [isinstance(value, bool) for value in result] == [isinstance(value, bool) for value in found]


REFUSED = [
    ("an open bracket", ".spec["),
    ("an open filter", ".a[?("),
    ("an open filter in quotes", '.a[?(@=="x)]'),
    ("a filter that is not the whole bracket", ".a[?(@.b) ]"),
    ("an open quote", '.a "x'),
    ("a line break", ".a\n.b"),
    ("a tab", ".a\t.b"),
    ("a word as an index", ".a[x]"),
    ("double quotes as a name", '.a["b"]'),
    ("spaces around an index", ".a[ 0 ]"),
    ("a lonely minus as an index", ".a[-]"),
    ("an index too large", ".a[9223372036854775808]"),
    ("an index of thousands of digits", ".a[" + "9" * 5000 + "]"),
    ("four bounds", ".a[1:2:3:4]"),
    ("a bad branch of a union", ".a[0,x]"),
    ("two descents in a row", ".a....b"),
    ("a descent and a star", "..*"),
    ("a comma", ".a,b"),
    ("a pipe", ".a |"),
    ("a closing bracket", ".a]"),
    ("an opening brace", ".a{b"),
    ("a filter in a filter", ".a[?(@.b[?(@.c)])]"),
    ("a text that ends in a backslash", '.a "x\\\\"'),
    ("a backslash before the end", ".a\\"),
    ("a lonely sign", ".a -"),
    ("two points in a number", ".a 1.2.3"),
    ("a number beyond all floats", ".a " + "9" * 400),
    ("digits that are not ASCII", ".a ٣"),
    ("a filter with half a comparison", ".a[?(@.b==)]"),
    ("an unknown escape", '.a "\\q"'),
    ("the other quote escaped", '.a "\\\'"'),
    ("an octal escape beyond a byte", '.a "\\777"'),
    ("a surrogate", '.a "\\ud800"'),
    ("a rune beyond Unicode", '.a "\\U00110000"'),
    ("a quote within quotes", ".a 'x\\\\'y'"),
    ("an error in a part of a filter", ".a[?(@.b}{+ == 1)]"),
]


@rows("path", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_malformed_paths_are_refused(path: str) -> None:
    with pytest.raises(PathError):
        parse(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\tb"', "a\tb"),
        ("'it\\'s'", "it's"),
        ('"\\"\\\\x"', '"\\x'),
        ('"\\x41\\101\\u00e9\\U0001F600"', "AAé😀"),
        ('"\\xff"', "\ufffd"),
        ("'é'", "é"),
        ('""', ""),
    ],
)
def test_texts_are_unquoted_as_go_does(text: str, value: str) -> None:
    assert parse(f".a {text}").find({}) == [value]


def test_a_number_of_the_path_is_reported_from_one_of_the_object() -> None:
    (written,), (stored,) = parse(".spec 5").find(OBJECT), parse(".spec.int").find(OBJECT)
    assert written == stored
    assert (type(written), type(stored)) == (Bare, int)


def test_ranges_work_for_every_object() -> None:
    path = parse(".l[*] range}{.n}{end")
    assert [path.find({"l": [{"n": n}]}) for n in (1, 2, 3)] == [[1], [2], [3]]


def test_maps_are_walked_in_the_order_of_their_keys() -> None:
    value = {"m": {"b": {"x": 2}, "a": {"x": 1}, "c": {"x": 3}}}
    assert parse(".m.*.x").find(value) == parse(".m..x").find(value) == [1, 2, 3]


def _nested(depth: int) -> object:
    value: object = "end"
    for _ in range(depth):
        value = {"a": value}
    return value


def test_objects_may_be_as_deep_as_they_like() -> None:
    assert parse("." + ".".join("a" * 10_000)).find(_nested(10_000)) == ["end"]
    assert len(parse("..").find(_nested(10_000))) == 10_001  # the text at the end contains its bytes


@pytest.mark.parametrize(
    "path",
    [
        "..a..a..a",
        ".l[*,*][*,*]" + "[0,0]" * 40,
        ".l" + "[*]" * 3 + "[*,*]" * 30,
        ".l[*] range}{" * 50 + "end",
        ".*" + ".*" * 9,
    ],
)
def test_no_path_takes_long(path: str) -> None:
    value = {"a": _nested(9_000), "l": [[[[1] * 10] * 10] * 10] * 10}
    parsed = parse(path)
    start = time.process_time()
    parsed.find(value)
    assert time.process_time() - start < 2


def test_the_limit_is_on_values_looked_at() -> None:
    fits, too_many = [0] * (MAX_VALUES // 2), [0] * (MAX_VALUES + 1)
    assert parse(".l[*]").find({"l": fits}) == fits
    assert parse(".l[*]").find({"l": too_many}) == []
    assert parse(".l[?(@.x)]").find({"l": too_many}) == []
    assert parse(".l..").find({"l": [["x"]] * (MAX_VALUES + 1)}) == []


def test_the_limit_is_on_nested_ranges() -> None:
    def nested(count: int) -> str:
        return ".a" + " range}{@" * count + " 'x'" + "}{end" * count

    assert parse(nested(MAX_RANGES)).find({"a": 1}) == ["x"]
    assert parse(nested(MAX_RANGES + 1)).find({"a": 1}) == []


@given(st.text(alphabet=".[]{}()'\"\\@$*,:?!=<>-+ 0a1\tnul", max_size=30))
def test_a_text_is_a_path_or_a_path_error(text: str) -> None:
    try:
        path = parse("." + text)
    except PathError:
        return
    assert isinstance(path.find(OBJECT), list)


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(), min_size=1, max_size=4))
def test_every_field_can_be_named(fields: dict[str, int]) -> None:
    for name, value in fields.items():
        escaped = "".join(f"\\{char}" for char in name if char != "\\")
        expected = fields.get(name.replace("\\", ""))
        if "\\" not in name:
            assert parse("." + escaped).find(fields) == [value]
        elif expected is not None:
            assert parse("." + escaped).find(fields) == [expected]
