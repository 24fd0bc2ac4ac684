"""JSON as Go reads it: values, repeated keys and error messages."""

import math

import pytest

from noxu.api import codec
from noxu.go.json import MAX_DEPTH, JsonSyntaxError, drop_overridden, read, string_of
from noxu.values import Json
from tests.rows import rows

VALUES: list[tuple[str, bytes, Json]] = [
    ("null", b"null", None),
    ("a boolean with space around it", b" \t\r\ntrue \n", True),
    ("an empty object", b"{ }", {}),
    ("an empty list", b"[\n]", []),
    ("nested things", b'{"a":[1,{"b":null},[]],"c":{}}', {"a": [1, {"b": None}, []], "c": {}}),
    ("space everywhere", b' { "a" : [ 1 , 2 ] , "b" : "c" } ', {"a": [1, 2], "b": "c"}),
    ("escapes", rb'"\"\\\/\b\f\n\r\t\u00e9"', '"\\/\b\f\n\r\té'),
    ("an escaped key", rb'{"\u0061":1}', {"a": 1}),
    ("a surrogate pair", rb'"\ud83d\ude00"', "😀"),
    ("a lone high surrogate", rb'"\ud800x"', "\ufffdx"),
    ("a lone low surrogate", rb'"\udc00"', "\ufffd"),
    ("two high surrogates", rb'"\ud800\ud800\udc00"', "\ufffd\U00010000"),
    ("a byte that is no UTF-8", b'"a\xffb"', "a\ufffdb"),
    ("a character cut off, one replacement for each byte", b'"\xe2\x82"', "\ufffd\ufffd"),
    ("a surrogate in UTF-8, one replacement for each byte", b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
    ("an overlong slash", b'"\xc0\xaf"', "\ufffd\ufffd"),
    ("a bad byte in a key", b'{"\xff":1}', {"\ufffd": 1}),
    ("U+0000 as an escape", rb'"\u0000"', "\0"),
    ("DEL", b'"\x7f"', "\x7f"),
    ("the largest int64", b"9223372036854775807", 2**63 - 1),
    ("the smallest int64", b"-9223372036854775808", -(2**63)),
    ("one more than int64 holds", b"9223372036854775808", 9223372036854775808.0),
    ("a long integer", b"1" + b"0" * 29, 1e29),
    ("the last of equal keys", b'{"a":1,"a":{"b":2},"a":3}', {"a": 3}),
]


@rows(("body", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_a_value_is_read(body: bytes, value: Json) -> None:
    document = read(body)
    assert (document.value, type(document.value), document.error) == (value, type(value), "")


@pytest.mark.parametrize(
    ("literal", "value"),
    [(b"1.0", 1.0), (b"1e3", 1000.0), (b"1E+2", 100.0), (b"0.5", 0.5), (b"1e-400", 0.0), (b"5e-324", 5e-324)],
)
def test_a_number_with_a_point_or_an_exponent_is_a_float(literal: bytes, value: float) -> None:
    read_value = read(literal).value
    assert (read_value, type(read_value)) == (value, float)


def test_minus_zero_is_an_integer_unless_it_is_written_as_a_float() -> None:
    assert type(read(b"-0").value) is int
    assert math.copysign(1, read(b"-0.0").value) == -1


def test_a_number_beyond_float64_is_an_error_and_the_first_one_is_reported() -> None:
    document = read(b'{"a":1e400,"b":-1e999,"c":1}')
    assert document.error == "json: cannot unmarshal number 1e400 into Go value of type float64"
    assert document.value == {"a": None, "b": None, "c": 1}
    assert read(b"9" * 400).error == f"json: cannot unmarshal number {'9' * 400} into Go value of type float64"


DUPLICATES = [
    ("none", b'{"a":1,"b":{"a":1}}', []),
    ("at the root", b'{"a":1,"b":2,"a":3}', ["a"]),
    ("reported once, however often", b'{"a":1,"a":2,"a":3}', ["a"]),
    ("nested before its parent's second time", b'{"spec":{"s":1,"s":2},"spec":{}}', ["spec.s", "spec"]),
    ("in lists", b'{"l":[{},{"x":1,"x":2}]}', ["l[1].x"]),
    ("in lists of lists", b'{"l":[[],[{"x":1,"x":2}]]}', ["l[1][0].x"]),
    ("under a list at the root", b'[{"x":1,"x":2}]', ["[0].x"]),
    ("two places that are called the same", b'{"a":{"b":1,"b":1},"a":{"b":1,"b":1}}', ["a.b", "a"]),
    ("keys that are equal when they are unescaped", rb'{"a":1,"\u0061":2}', ["a"]),
    ("keys that are equal when they are repaired", b'{"\xff":1,"\xfe":2}', ["\ufffd"]),
    ("keys that differ in case are not equal", b'{"a":1,"A":2}', []),
    ("an empty key", b'{"":1,"":2}', [""]),
    ("below an empty key", b'{"":{"b":1,"b":2}}', [".b"]),
]


@rows(("body", "paths"), [row[1:] for row in DUPLICATES], ids=[row[0] for row in DUPLICATES])
def test_repeated_keys_are_reported_by_their_paths(body: bytes, paths: list[str]) -> None:
    assert read(body).duplicates == paths


def test_no_more_than_a_hundred_repetitions_are_reported() -> None:
    body = b"{" + b",".join(b'"k%d":1,"k%d":2' % (n, n) for n in range(150)) + b"}"
    assert read(body).duplicates == [f"k{n}" for n in range(100)]


def test_the_members_of_the_root_are_kept_with_their_repetitions() -> None:
    assert read(b'{"kind":1,"a":{"kind":2},"kind":"x"}').members == [("kind", 1), ("a", {"kind": 2}), ("kind", "x")]
    assert read(b'[{"kind":1}]').members == []


def test_overridden_members_are_kept_in_their_places() -> None:
    text = b'{"a":1,"b":0,"a":{"c":[{"d":1,"d":2}],"c":3},"b":4,"a":5}'
    value = read(text, keep_repetitions=True).value
    assert codec.encode(value, sort_keys=False) == text
    drop_overridden(value)
    assert value == read(text).value == {"b": 4, "a": 5}


END = "unexpected end of JSON input"
ERRORS = [
    (b"", END),
    (b" \n", END),
    (b"{", END),
    (b'{"a"', END),
    (b'{"a":', END),
    (b'{"a":1', END),
    (b'{"a":1,', END),
    (b"[", END),
    (b"[1", END),
    (b"[1,", END),
    (b'"abc', END),
    (b'{"abc', END),
    (b"{}{", "invalid character '{' after top-level value"),
    (b"1 2", "invalid character '2' after top-level value"),
    (b"1,", "invalid character ',' after top-level value"),
    (b"01", "invalid character '1' after top-level value"),
    (b"{}\0", r"invalid character '\x00' after top-level value"),
    (b"a", "invalid character 'a' looking for beginning of value"),
    (b"'a'", r"invalid character '\'' looking for beginning of value"),
    (b"]", "invalid character ']' looking for beginning of value"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b'{"a":}', "invalid character '}' looking for beginning of value"),
    (b"NaN", "invalid character 'N' looking for beginning of value"),
    (b"+1", "invalid character '+' looking for beginning of value"),
    (b".5", "invalid character '.' looking for beginning of value"),
    (b"/**/1", "invalid character '/' looking for beginning of value"),
    (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
    (b"\xff\xfe{\0", "invalid character 'ÿ' looking for beginning of value"),
    (b"\x80", r"invalid character '\u0080' looking for beginning of value"),
    (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
    (b"{1:1}", "invalid character '1' looking for beginning of object key string"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a"}', "invalid character '}' after object key"),
    (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    (b'{"a":1]', "invalid character ']' after object key:value pair"),
    (b'{"a":01}', "invalid character '1' after object key:value pair"),
    (b'{"a":1e5.0}', "invalid character '.' after object key:value pair"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b"[{}}", "invalid character '}' after array element"),
    (b'"\t"', r"invalid character '\t' in string literal"),
    (b'{"\n":1}', r"invalid character '\n' in string literal"),
    (rb'"\x"', "invalid character 'x' in string escape code"),
    (rb'"\'"', r"invalid character '\'' in string escape code"),
    (b'"\\', "invalid character ' ' in string escape code"),
    (rb'{"\u12g4":1}', r"invalid character 'g' in \u hexadecimal character escape"),
    (rb'"\u12', r"invalid character ' ' in \u hexadecimal character escape"),
    (rb'"\u12"', r"""invalid character '"' in \u hexadecimal character escape"""),
    (b"-", "invalid character ' ' in numeric literal"),
    (b"[-a]", "invalid character 'a' in numeric literal"),
    (b"1.", "invalid character ' ' after decimal point in numeric literal"),
    (b"[1.e5]", "invalid character 'e' after decimal point in numeric literal"),
    (b"1e", "invalid character ' ' in exponent of numeric literal"),
    (b"[1e+]", "invalid character ']' in exponent of numeric literal"),
    (b"1.5ex", "invalid character 'x' in exponent of numeric literal"),
    (b"tru", "invalid character ' ' in literal true (expecting 'e')"),
    (b"[falze]", "invalid character 'z' in literal false (expecting 's')"),
    (b"nul\xc3\xa9", "invalid character 'Ã' in literal null (expecting 'l')"),
]


@rows(("body", "message"), ERRORS)
def test_invalid_json_is_refused_with_the_messages_of_go(body: bytes, message: str) -> None:
    with pytest.raises(JsonSyntaxError) as raised:
        read(body)
    assert str(raised.value) == message


def test_a_syntax_error_comes_before_a_number_that_does_not_fit() -> None:
    with pytest.raises(JsonSyntaxError, match="unexpected end"):
        read(b'{"a":1e400')


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_goes_as_deep_as_go_goes(opening: bytes, closing: bytes) -> None:
    value = read(opening * MAX_DEPTH + b"1" * (opening != b"[") + closing * MAX_DEPTH).value
    for _ in range(MAX_DEPTH):
        value = value["a"] if isinstance(value, dict) else value[0] if value else None
    assert value == (1 if opening != b"[" else None)
    with pytest.raises(JsonSyntaxError, match=f"^invalid character '\\{opening.decode()[0]}' exceeded max depth$"):
        read(opening * (MAX_DEPTH + 1))


def test_bytes_are_shown_as_a_json_encoder_writes_them() -> None:
    assert string_of("é".encode() + b"\xff\xe2\x82x") == "é\ufffd\ufffd\ufffdx"
