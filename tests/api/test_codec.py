"""Decoding and encoding of bodies, and errors for bad requests."""

import json
import math
import re
import tracemalloc

import pytest

from noxu.api import codec
from noxu.api.codec import JSON, YAML
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from noxu.go import json as go_json
from noxu.go import yaml as go_yaml
from noxu.values import Json
from tests.rows import rows

FOO = GroupVersionKind("g.example.com", "v1", "Foo")


def same(left: Json, right: Json) -> bool:
    """Equal, and 1 is not 1.0 (nor 0.0 -0.0)."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


# Reading

DECODED: list[tuple[str, bytes, Json]] = [
    ("an object", b'{"a":[1,2.5,"x",null,true]}', {"a": [1, 2.5, "x", None, True]}),
    ("pretty-printed", b'{\n  "a" : 1\n}\n', {"a": 1}),
    ("colons in text and in keys", b'{"a:b":":","c":"\\":"}', {"a:b": ":", "c": '":'}),
    ("an escaped colon", rb'{"a\u003ab":"\u003A"}', {"a:b": ":"}),
    ("large integers", b"[9007199254740993,9223372036854775807,-9223372036854775808]", [2**53 + 1, 2**63 - 1, -(2**63)]),
    ("integers beyond int64", b"[9223372036854775808,18446744073709551615]", [2.0**63, 2.0**64]),
    ("long digits in text", b'{"a":"9223372036854775808","b":12345678901234567}', {"a": "9223372036854775808", "b": 12345678901234567}),
    ("a bad byte", b'{"a":"\xff"}', {"a": "\ufffd"}),
    ("a lone surrogate", rb'{"a":"\ud800"}', {"a": "\ufffd"}),
    ("deeper than 254", b"[" * 300 + b"]" * 300, None),
    ("deeper than 1024", b"[" * 1100 + b"]" * 1100, None),
]  # fmt: skip


@rows(("body", "value"), [row[1:] for row in DECODED], ids=[row[0] for row in DECODED])
def test_json_is_decoded(body: bytes, value: Json) -> None:
    decoded = codec.decode_json(body)
    assert list(decoded.duplicates) == []
    if value is not None:
        assert same(decoded.value, value)
    assert codec.encode(codec.decode_stored(body), sort_keys=False) == codec.encode(decoded.value, sort_keys=False)


@rows(
    ("body", "duplicates"),
    [
        (b'{"a":1,"a":2}', ['duplicate field "a"']),
        (b'{"a":1,"a":1}\n', ['duplicate field "a"']),
        (b'{"a":{"b":1,"b":2},"c":":"}', ['duplicate field "a.b"']),
        (rb'{"a":1,"a":"\u003a"}', ['duplicate field "a"']),  # the escape makes up for the colon that is missing
        (rb'{"a":"\u003A","\u0061":1}', ['duplicate field "a"']),
        (b'{"a":[{"x":{},"x":{}}]}', ['duplicate field "a[0].x"']),
        (b'{"\\"":1,"\\"":2}', [r'duplicate field "\""']),
        (b'{"a":1,"a":9223372036854775808}', ['duplicate field "a"']),
        (b"[" * 300 + b'{"a":1,"a":2}' + b"]" * 300, [f'duplicate field "{"[0]" * 300}.a"']),
    ],
)
def test_repeated_keys_are_noticed_and_reported(body: bytes, duplicates: list[str]) -> None:
    decoded = codec.decode_json(body)
    assert (list(decoded.duplicates), list(decoded.strict)) == (duplicates, duplicates)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"[NaN]", "invalid character 'N' looking for beginning of value"),
        (b"[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ("{}".encode("utf-16"), "invalid character 'ÿ' looking for beginning of value"),
    ],
)
def test_invalid_json_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        codec.decode_json(body)
    assert str(raised.value) == message


JSON_IN_YAML = [
    b'{"a":[1,-2,0.5,true,null,"x"],"b":{"c":{}},"d":[]}',
    b'{\n  "a": 1,\n  "b": [\n    "c"\n  ]\n}\n',
    b'{"a":"\\"\\\\\\n\\t\\b\\f"}',
    b'{"a":1.0,"b":1e3,"c":1E-7,"d":1e400}',
    b'{"a":12345678901234567890,"b":-0}',
    b'{"a":1,"a":2}',
    b'{"a" :1}',
    b'{"a"\n:1}',
    b'{"a":\t1}',
    '{"a":"é"}'.encode(),
    b'{"a":"\\u00e9"}',
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\\/"}',
    b'{"a":"\x7f"}',
    b'{"' + b"k" * 1100 + b'":1}',
    b'{"a":"' + b"v" * 1100 + b'"}',
    b'{"a":"' + b"v" * 1100 + b'","b:":":"}',
    b'{"a":{"b":{"c":' + b"[" * 300 + b"]" * 300 + b"}}}",
    b'{"a":1}x',
    b'{"a":1} # comment',
    b"{a: 1}",
    b"{}",
]


@rows("body", JSON_IN_YAML)
def test_json_in_a_yaml_body_is_read_as_yaml_reads_it(body: bytes) -> None:
    def outcome(read: object) -> object:
        try:
            result = read(body)  # type: ignore[operator]
        except ValueError as error:
            return str(error)
        return json.dumps(result.value, sort_keys=True), list(result.duplicates)

    assert outcome(codec.decode_yaml) == outcome(go_yaml.read)


def test_json_in_a_yaml_body_that_is_too_deep_is_refused_as_yaml() -> None:
    with pytest.raises(ValueError, match=r"^yaml: exceeded max depth of 10000$"):
        codec.decode_yaml(b'{"a":' * 10_001)


def test_repeated_keys_in_yaml_are_warnings_one_by_one_and_one_refusal() -> None:
    decoded = codec.decode_yaml(b"a: 1\na: 2\nb: 3\nb: 4\n")
    lines = ['line 2: key "a" already set in map', 'line 4: key "b" already set in map']
    assert list(decoded.duplicates) == lines
    assert list(decoded.strict) == [f"yaml: unmarshal errors:\n  {lines[0]}\n  {lines[1]}"]
    assert list(codec.decode_yaml(b"a: 1").strict) == []


# Writing

ENCODED: list[tuple[str, Json, str]] = [
    ("keys are sorted by code point", {"b": 1, "a": {"z": 1, "Z": 2, "é": 3}}, '{"a":{"Z":2,"z":1,"é":3},"b":1}'),
    ("HTML characters are escaped", {"<a>": "&"}, '{"\\u003ca\\u003e":"\\u0026"}'),
    ("line separators are escaped", "\u2028\u2029\u2027", '"\\u2028\\u2029\u2027"'),
    ("control characters", "\b\f\n\r\t\0\x1f\x7f", '"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
    ("quotes, backslash, slash", '"\\/', '"\\"\\\\/"'),
    ("integers", [0, -1, 2**63 - 1, -(2**63)], "[0,-1,9223372036854775807,-9223372036854775808]"),
    ("whole floats", {"a": 1.0, "b": [-2.0, 1e3]}, '{"a":1,"b":[-2,1000]}'),
    ("a whole float alone", 1.0, "1"),
    ("minus zero", [-0.0, 0.0], "[-0,0]"),
    ("floats that orjson writes with an exponent", [1e16, 1e20, 1.5e18, 0.00001, 0.000001],
     "[10000000000000000,100000000000000000000,1500000000000000000,0.00001,0.000001]"),
    ("floats that Go writes with an exponent", [1e21, 1e-7, -1.5e300, 5e-324], "[1e+21,1e-7,-1.5e+300,5e-324]"),
    ("floats that are the same in both", {"a": 0.5, "b": [1.25, -3.75]}, '{"a":0.5,"b":[1.25,-3.75]}'),
    ("text that looks like such numbers", [":1.0,", "[1.0]", ",1e16}", "nginx:1.0"], '[":1.0,","[1.0]",",1e16}","nginx:1.0"]'),
    ("a float after an integer in a list", [1, 2.0], "[1,2]"),
    ("a lone surrogate", ["\ud800"], '["\ufffd\ufffd\ufffd"]'),
    ("an integer beyond 64 bits", [2**70], "[1180591620717411303424]"),
    ("nothing", [{}, [], None, True, False, ""], '[{},[],null,true,false,""]'),
]  # fmt: skip


@rows(("value", "text"), [row[1:] for row in ENCODED], ids=[row[0] for row in ENCODED])
def test_json_is_written_as_go_writes_it(value: Json, text: str) -> None:
    assert codec.encode(value, sort_keys=True).decode() == text


def test_keys_stay_in_their_order_unless_they_are_to_be_sorted() -> None:
    assert codec.encode({"b": 1.0, "a": {"d": 1, "c": 2}}, sort_keys=False) == b'{"b":1,"a":{"d":1,"c":2}}'
    assert codec.pretty({"b": 1, "a": 2}, sort_keys=False) == b'{\n  "b": 1,\n  "a": 2\n}'


@rows(("value", "text"), [row[1:] for row in ENCODED], ids=[row[0] for row in ENCODED])
def test_pretty_json_decodes_to_the_same_value(value: Json, text: str) -> None:
    assert (
        re.sub(
            r'\n *|(?<="): ', lambda space: ":" if ":" in space[0] else "", codec.pretty(value, sort_keys=True).decode()
        )
        == text
    )


@pytest.mark.parametrize("number", [1, 1.0])  # by orjson, and without it
def test_pretty_json_has_two_spaces_and_no_line_end(number: float) -> None:
    assert codec.pretty({"b": [number, {"c": "<,{[:"}], "a": {}, "d": []}, sort_keys=True).decode() == (
        '{\n  "a": {},\n  "b": [\n    1,\n    {\n      "c": "\\u003c,{[:"\n    }\n  ],\n  "d": []\n}'
    )


def chain(levels: int, end: Json = 1) -> Json:
    for _ in range(levels):
        end = {"a": end}
    return end


NOT_INDENTED: list[tuple[str, Json]] = [
    ("a chain of objects", chain(9_000)),
    ("several of them", {"a": chain(5_000), "b": chain(5_000)}),
    ("a long list far inside", chain(250, [1] * 50_000)),
    ("a long list far inside, which orjson does not read", chain(300, [1] * 50_000)),
    ("large objects far inside", chain(200, [{"b": 1, "c": 2}] * 20_000)),
]
INDENTED: list[tuple[str, Json]] = [
    ("a small object", {"a": {"b": [1, 2]}}),
    ("a chain of some hundred objects", chain(700)),
    ("a long list", {"a": {"b": [1] * 50_000}}),
    ("long texts far inside", chain(250, ["x" * 1_000] * 100)),
]


@pytest.mark.parametrize("value", [row[1] for row in NOT_INDENTED], ids=[row[0] for row in NOT_INDENTED])
def test_what_indentation_multiplies_is_not_indented(value: Json) -> None:
    compact = codec.encode(value, sort_keys=True)
    assert codec.pretty(value, sort_keys=True) == compact
    assert codec.to_yaml(value) == compact + b"\n"


@pytest.mark.parametrize("value", [row[1] for row in INDENTED], ids=[row[0] for row in INDENTED])
def test_what_is_indented_has_a_bounded_size(value: Json) -> None:
    compact = codec.encode(value, sort_keys=True)
    for written in (codec.pretty(value, sort_keys=True), codec.to_yaml(value)):
        assert b"\n" in written.rstrip()
        assert len(written) < 2 * codec.MAX_INDENTATION + 20 * len(compact)


@pytest.mark.parametrize("write", [codec.encode, codec.pretty])
def test_deeply_nested_values_are_encoded(write: object) -> None:
    value: Json = 1.5
    for _ in range(9_999):
        value = {"a": value}
    written = write(value, sort_keys=True)  # type: ignore[operator]
    assert written.count(b'"a"') == 9_999


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": "<&>\u2028", "a": 1}, '{"b":"<&>\u2028","a":1}'),
        ({"b": "<&>\u2028", "a": [1.0, 1e21]}, '{"b":"<&>\u2028","a":[1,1e+21]}'),
        ({"<": 1.0}, '{"<":1}'),
    ],
)
def test_version_2_of_encoding_json_does_not_escape_html(value: Json, text: str) -> None:
    assert codec.encode_unescaped(value) == text.encode()


def test_yaml_is_written_with_sorted_keys() -> None:
    assert codec.to_yaml({"b": [1, {"c": "y"}], "a": 1.0}) == b'a: 1\nb:\n- 1\n- c: "y"\n'


@pytest.mark.parametrize("padding", range(5))
def test_integers_beyond_int64_are_found_anywhere(padding: int) -> None:
    name = "a" * padding
    assert type(codec.decode_stored(f'{{"{name}":9223372036854775808}}'.encode())[name]) is float


def test_stored_floats_beyond_int64_stay_floats() -> None:
    stored = codec.encode({"a": 2.0**63, "b": 1e20, "c": 2**63 - 1}, sort_keys=True)
    read = codec.decode_stored(stored)
    assert [type(read[name]) for name in "abc"] == [float, float, int]
    assert codec.encode(read, sort_keys=True) == stored


def test_long_digits_in_texts_and_fractions_are_no_reason_to_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = codec.encode(
        {"serial": "1763730000123456789", "f": 0.12345678901234568, "l": ["99999999999999999999"]}, sort_keys=True
    )
    monkeypatch.setattr(go_json, "read", None)
    assert codec.encode(codec.decode_stored(stored), sort_keys=True) == stored


def test_stored_bytes_that_are_no_json_are_an_error() -> None:
    with pytest.raises(ValueError, match="unexpected end"):
        codec.decode_stored(b'{"a":')


# Objects in requests

GOOD = '"apiVersion":"g.example.com/v1","kind":"Foo"'
UNRECOGNIZED = "the object provided is unrecognized (must be of type Foo): "
NO_KIND = f"{UNRECOGNIZED}couldn't get version/kind; json parse error: "
TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
HANDLED = 'Foo in version "v1" cannot be handled as a Foo: '

REFUSED = [
    ("an empty body", JSON, b"", f"{NO_KIND}unexpected end of JSON input (<empty>)"),
    ("a body cut off", JSON, b'{"a":', f'{NO_KIND}unexpected end of JSON input ({{"a":)'),
    ("a list", JSON, b"[]", f"{NO_KIND}json: cannot unmarshal array into Go value of type {TYPE_META} (5b5d)"),
    ("a text", JSON, b'"x"', f"{NO_KIND}json: cannot unmarshal string into Go value of type {TYPE_META} (227822)"),
    ("a number", JSON, b"1", f"{NO_KIND}json: cannot unmarshal number into Go value of type {TYPE_META} (31)"),
    ("a boolean", JSON, b"true", f"{NO_KIND}json: cannot unmarshal bool into Go value of type {TYPE_META} (74727565)"),
    ("null", JSON, b" null ", f"{UNRECOGNIZED}Object 'Kind' is missing in ' null ' (206e756c6c20)"),
    ("no kind", JSON, b"{}", f"{UNRECOGNIZED}Object 'Kind' is missing in '{{}}' ({{}})"),
    ("a kind of null", JSON, b'{"kind":null}', f"{UNRECOGNIZED}Object 'Kind' is missing in '{{\"kind\":null}}' ({{\"kind\":null}})"),
    ("a kind that is empty", JSON, b'{"kind":"","apiVersion":"v1"}',
     f'{UNRECOGNIZED}Object \'Kind\' is missing in \'{{"kind":"","apiVersion":"v1"}}\' ({{"kind":"","apiVersion":"v1"}})'),
    ("a kind in other letters", JSON, b'{"Kind":"Foo"}', f"{UNRECOGNIZED}Object 'Kind' is missing in '{{\"Kind\":\"Foo\"}}' ({{\"Kind\":\"Foo\"}})"),
    ("a kind that is a number", JSON, b'{"kind":1}', f'{NO_KIND}json: cannot unmarshal number into Go struct field .kind of type string ({{"kind":1}})'),
    ("a kind in other letters that is a number", JSON, b'{"KIND":1,"kind":"Foo","apiVersion":"v1"}',
     f'{NO_KIND}json: cannot unmarshal number into Go struct field .kind of type string ({{"KIND":1,"kind":"Foo","apiVer ...)'),
    ("a kind that is a number at first", JSON, b'{"kind":{},"kind":"Foo"}',
     f'{NO_KIND}json: cannot unmarshal object into Go struct field .kind of type string ({{"kind":{{}},"kind":"Foo"}})'),
    ("an apiVersion that is a list", JSON, b'{"apiVersion":[1]}',
     f'{NO_KIND}json: cannot unmarshal array into Go struct field .apiVersion of type string ({{"apiVersion":[1]}})'),
    ("an apiVersion with two slashes", JSON, b'{"apiVersion":"a/b/c","kind":"F"}',
     f'{UNRECOGNIZED}unexpected GroupVersion string: a/b/c ({{"apiVersion":"a/b/c","kind":" ...)'),
    ("a long body", JSON, b'{"a":"' + b"x" * 40, f'{NO_KIND}unexpected end of JSON input ({{"a":"{"x" * 24} ...)'),
    ("a long body of something else", JSON, b"[" + b"x" * 40, f"{NO_KIND}invalid character 'x' looking for beginning of value (5b{'78' * 29} ...)"),
    ("a character cut in two", JSON, b'{"a":"' + b"x" * 23 + "é".encode(), f'{NO_KIND}unexpected end of JSON input ({{"a":"{"x" * 23}\ufffd ...)'),
    ("a number that does not fit", JSON, f'{{{GOOD},"x":1e400}}'.encode(), f"{HANDLED}json: cannot unmarshal number 1e400 into Go value of type float64"),
    ("such a number, and no kind", JSON, b'{"x":1e400}', f"{HANDLED}json: cannot unmarshal number 1e400 into Go value of type float64"),
    ("such a number, and other names", JSON, b'{"apiVersion":"h/v2","kind":"Bar","x":1e400}',
     'Bar in version "v2" cannot be handled as a Foo: json: cannot unmarshal number 1e400 into Go value of type float64'),
    ("bad YAML", YAML, b"a: [b\n", f"{UNRECOGNIZED}yaml: line 1: did not find expected ',' or ']' (613a205b620a)"),
    ("bad YAML that looks like JSON", YAML, b"{a: [", f"{UNRECOGNIZED}yaml: line 1: did not find expected node content ({{a: [)"),
    ("an empty YAML body", YAML, b"", f"{UNRECOGNIZED}Object 'Kind' is missing in '' (<empty>)"),
    ("an empty YAML document", YAML, b"--- \n", f"{UNRECOGNIZED}Object 'Kind' is missing in '--- \n' (2d2d2d200a)"),
    ("a YAML list", YAML, b"- a", f"{NO_KIND}json: cannot unmarshal array into Go value of type {TYPE_META} (2d2061)"),
    ("a YAML kind that is a boolean", YAML, b"kind: y", f"{NO_KIND}json: cannot unmarshal bool into Go struct field .kind of type string (6b696e643a2079)"),
    ("YAML with what JSON does not have", YAML, b"a: .nan", f"{UNRECOGNIZED}json: unsupported value: NaN (613a202e6e616e)"),
    ("YAML too deep for JSON", YAML, b"- " * 9_000 + b"[" * 1_001 + b"]" * 1_001,
     f"{NO_KIND}invalid character '[' exceeded max depth ({'2d20' * 15} ...)"),
]  # fmt: skip


@rows(("media_type", "body", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bodies_that_are_not_objects_are_refused(media_type: str, body: bytes, message: str) -> None:
    with pytest.raises(ApiError) as raised:
        codec.read_object(body, media_type, FOO)
    assert (raised.value.code, raised.value.reason, raised.value.message) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("media_type", "body", "shown"),
    [
        (JSON, b" null ", "null"),
        (JSON, b'{"Kind":"Foo" }\n', '{"Kind":"Foo" }'),
        (YAML, b"b: 1\na: <\n", '{"a":"\\u003c","b":1}'),
        (YAML, b"", "null"),
    ],
)
def test_without_validation_a_missing_kind_reads_differently(media_type: str, body: bytes, shown: str) -> None:
    with pytest.raises(ApiError) as raised:
        codec.read_object(body, media_type, FOO, strict=False)
    assert raised.value.message == f"{HANDLED}Object 'Kind' is missing in '{shown}'"


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (JSON, f'{{{GOOD},"a":[1]}}'),
        (JSON, f' {{ {GOOD} , "a" : [ 1 ] }} '),
        (YAML, "apiVersion: g.example.com/v1\nkind: Foo\na: [1]\n"),
        (YAML, f'{{{GOOD},"a":[1]}}'),
    ],
)
def test_an_object_is_read(media_type: str, body: str) -> None:
    decoded = codec.read_object(body.encode(), media_type, FOO)
    assert decoded.value == {"apiVersion": "g.example.com/v1", "kind": "Foo", "a": [1]}
    assert list(decoded.duplicates) == []


def test_names_of_any_kind_are_let_through() -> None:
    for body in (
        b'{"kind":"Bar"}',
        b'{"apiVersion":"a/","kind":"Bar"}',
        b'{"apiVersion":"x","kind":"Bar","KIND":"Baz"}',
    ):
        assert codec.read_object(body, JSON, FOO).value["kind"] == "Bar"


@pytest.mark.parametrize(
    ("media_type", "body", "duplicate"),
    [
        (JSON, f'{{{GOOD},"a":1,"a":2}}', 'duplicate field "a"'),
        (JSON, f'{{"kind":"Bar",{GOOD}}}', 'duplicate field "kind"'),
        (YAML, "apiVersion: g.example.com/v1\nkind: Foo\na: 1\na: 2\n", 'line 4: key "a" already set in map'),
    ],
)
def test_repeated_keys_are_reported_only_on_request(media_type: str, body: str, duplicate: str) -> None:
    assert list(codec.read_object(body.encode(), media_type, FOO).duplicates) == [duplicate]
    assert list(codec.read_object(body.encode(), media_type, FOO, strict=False).duplicates) == []


def test_built_in_objects_may_omit_their_api_version_and_kind() -> None:
    value = {"a": 1, "apiVersion": "g.example.com/v1", "kind": "Foo"}
    assert codec.read_object(b'{"a":1}', JSON, FOO, typed=True).value == value
    assert codec.read_object(b"null", JSON, FOO, typed=True).value == {"apiVersion": "g.example.com/v1", "kind": "Foo"}
    with pytest.raises(ApiError, match="cannot unmarshal array"):
        codec.read_object(b"[]", JSON, FOO, typed=True)


def test_a_body_may_have_three_mebibytes() -> None:
    body = f'{{{GOOD},"a":"'.encode()
    body += b"x" * (codec.MAX_BODY - len(body) - 2) + b'"}'
    assert len(codec.read_object(body, JSON, FOO).value) == 3
    with pytest.raises(ApiError) as raised:
        codec.read_object(body + b" ", JSON, FOO)
    assert (raised.value.code, raised.value.reason) == (413, "RequestEntityTooLarge")
    assert raised.value.message == "Request entity too large: limit is 3145728"


def test_an_object_that_cannot_be_decoded_is_named_by_its_own_kind() -> None:
    sent = GroupVersionKind("g", "v1\n", "Foo")
    error = codec.cannot_be_handled(
        sent, "Bar", codec.strict_decoding_error(['unknown field "a"', 'unknown field "b"'])
    )
    assert error.message == (
        r'Foo in version "v1\n" cannot be handled as a Bar: strict decoding error: unknown field "a", unknown field "b"'
    )


def test_not_a_number_never_comes_out_of_json() -> None:
    for body in (b"NaN", b"Infinity", b"-Infinity", b"1e999"):
        with pytest.raises(ValueError, match=r"invalid character|cannot unmarshal"):
            codec.decode_json(body)
    assert math.isinf(float("1e999"))


@pytest.mark.parametrize("size", [10, 700, 5_000])
@pytest.mark.parametrize("sort_keys", [False, True])
def test_encoded_objects_take_no_more_memory_than_their_text(size: int, *, sort_keys: bool) -> None:
    value = {"metadata": {"name": "a"}, "data": {"text": "x" * size}}
    tracemalloc.start()
    try:
        kept = [codec.encode(value, sort_keys=sort_keys) for _ in range(100)]
        found = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    here = [
        tracemalloc.Filter(True, file) for file in (codec.__file__, __file__)
    ]  # not what other threads do meanwhile
    taken = sum(trace.size for trace in found.filter_traces(here).traces)
    assert taken < 100 * (len(kept[0]) + 100)
