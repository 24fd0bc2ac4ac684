"""YAML as go-yaml reads it and sigs.k8s.io/yaml hands it on as JSON."""

import json
import re

import pytest

from noxu.go import yaml as go_yaml
from noxu.go.json import JsonSyntaxError
from noxu.values import Json
from tests.rows import rows

VALUES: list[tuple[str, str, Json]] = [
    ("nothing", "", None),
    ("a comment", "# c", None),
    ("an empty document", "---\n...\n", None),
    ("a scalar", "a", "a"),
    ("a list", "- a\n- b", ["a", "b"]),
    ("a mapping in a list in a mapping", "a:\n- b: 1\n  c:\n  - d", {"a": [{"b": 1, "c": ["d"]}]}),
    ("flow style", 'a: [b, {c: d}, "e":f, g: h]', {"a": ["b", {"c": "d"}, {"e": "f"}, {"g": "h"}]}),
    ("JSON", '{"a":[1,{"b":null}],"c":"d\\n"}', {"a": [1, {"b": None}], "c": "d\n"}),
    ("a colon without a space is text", "{a:1}", {"a:1": None}),
    ("a colon before a bracket is text", "{a, b:}", {"a": None, "b:": None}),
    ("a colon before a bracket, more than once", "[a:, {b:}, U+F8FF]", ["a:", {"b:": None}, "U+F8FF"]),
    ("a key without a value", "? a\n? b", {"a": None, "b": None}),
    ("only the first document", "a: 1\n---\n[", {"a": 1}),
    ("a document that is ended", "a: 1\n...\n[", {"a": 1}),
    ("a directive for YAML 1.1", "%YAML 1.1\n---\na: 1", {"a": 1}),
    ("quoted text is text", "a: \"1\"\nb: 'y'", {"a": "1", "b": "y"}),
    ("folded quotes", 'a: "b\n c\n\n d"', {"a": "b c\nd"}),
    ("block scalars", "a: |\n  x\n   y\n\nb: >-\n  x\n  y", {"a": "x\n y\n", "b": "x y"}),
    ("escapes", 'a: "\\u00e9\\U0001F600\\x41"', {"a": "é😀A"}),
    ("a comment after a value", "a: 1 # c\nb: #c\nc: a#b", {"a": 1, "b": None, "c": "a#b"}),
    ("a byte order mark", "\ufeffa: 1", {"a": 1}),
    ("numbers", "[1, -1, 1.5, 1.0, 1e3, 1e21, 0.1, -0.0]", [1, -1, 1.5, 1, 1000, 1e21, 0.1, 0]),
    ("integers beyond int64", "[9223372036854775808, 18446744073709551615, 1" + "0" * 29 + "]", [2.0**63, 2.0**64, 1e29]),
    ("a large whole float keeps the digits that are printed", "4611686018427387904.0", 4611686018427388000),
    ("words that are booleans, as values", "[y, No, TRUE, off]", [True, False, True, False]),
    ("dates are text", "2020-01-01: 2001-12-14t21:59:43.10-05:00", {"2020-01-01": "2001-12-14t21:59:43.10-05:00"}),
    ("keys that are integers", "{1: a, 0x10: b, 0o7: c}", {"1": "a", "16": "b", "7": "c"}),
    ("keys that are booleans", "{y: a, off: b}", {"true": "a", "false": "b"}),
    ("keys that are floats are printed with 32 bits", "{1.5: a, 1.0: b, 1e30: c, 3.14159265358979: d}",
     {"1.5": "a", "1": "b", "1e+30": "c", "3.1415927": "d"}),
    ("keys that are no numbers", "{.nan: a, -.inf: b, 1e300: c}", {".nan": "a", "-.inf": "b", ".inf": "c"}),
    ("an alias", "a: &x {k: [v]}\nb: *x", {"a": {"k": ["v"]}, "b": {"k": ["v"]}}),
    ("an alias of a scalar, with its type", "a: &x 1.0\nb: *x\nc: {*x : d}", {"a": 1, "b": 1, "c": {"1": "d"}}),
    ("an alias of a key", "&a k: *a", {"k": "k"}),
    ("the anchor set last", "a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ("an alias inside its own list's sibling", "[&x a, *x]", ["a", "a"]),
    ("a merge", "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}}),
    ("a merge that comes later overrides", "a: &x {b: 1}\nd: {b: 3, <<: *x}", {"a": {"b": 1}, "d": {"b": 1}}),
    ("a merge of several: the first wins", "- &x {a: 1}\n- &y {a: 2, b: 2}\n- <<: [*x, *y, {c: 3}]",
     [{"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2, "c": 3}]),
    ("a merge of a mapping written there", "<<: {a: 1}", {"a": 1}),
    ("a quoted merge key is a key", '"<<": {a: 1}', {"<<": {"a": 1}}),
    ("a merge sign as a value is text", "[<<, {a: <<}]", ["<<", {"a": "<<"}]),
    ("tags of collections do not matter", "!!map {a: !!set {b}, c: !foo [d]}", {"a": {"b": None}, "c": ["d"]}),
    ("tags of scalars do", "[!!str 1, !!int '3', !!float 1, !!bool yes, !!null ~, !!binary aGk=]", ["1", 3, 1, True, None, "hi"]),
    ("unknown tags make text", "[!foo 1, ! 2, ! '3']", ["1", "2", "3"]),
    ("binary that is no text", "!!binary /v8=", "\ufffd\ufffd"),
    ("!!str of nothing", "a: !!str", {"a": ""}),
    ("a timestamp's tag", "!!timestamp 2001-01-01", "2001-01-01"),
    ("a key twice: the last one counts", "{a: 1, b: 2, a: 3}", {"a": 3, "b": 2}),
    ("a comment at the end of what a tab follows", "a: b\t# c", {"a": "b"}),
]  # fmt: skip


@rows(("text", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_a_document_is_read(text: str, value: Json) -> None:
    for read in (go_yaml.read, go_yaml.read_events):
        found = read(text.encode()).value
        assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)  # 1 is not 1.0


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_if_it_has_a_byte_order_mark(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    assert go_yaml.read(f"{mark}a: é\n".encode(encoding)).value == {"a": "é"}


def test_aliases_are_copies() -> None:
    value = go_yaml.read(b"a: &x [1]\nb: *x\nc: *x").value
    value["b"].append(2)
    assert value == {"a": [1], "b": [1, 2], "c": [1]}


REPEATED_KEYS = [
    ("none", "a: 1\nb: {a: 2}", []),
    ("a text", "a: 1\nb: 2\na: 3", ['line 3: key "a" already set in map']),
    ("the line is that of the value", "a: 1\na:\n  b: 2", ['line 3: key "a" already set in map']),
    ("every time", "{a: 1, a: 2, a: 3}", ['line 1: key "a" already set in map'] * 2),
    ("keys that are quoted differently", "a: 1\n'a': 2\n\"a\": 3", ['line 2: key "a" already set in map', 'line 3: key "a" already set in map']),
    ("nested ones first", "a: {b: 1, b: 2}\na: 1", ['line 1: key "b" already set in map', 'line 2: key "a" already set in map']),
    ("numbers and booleans", "{1: a, 1: b, y: c, true: d, 1.5: e, 1.5: f}",
     ["line 1: key 1 already set in map", "line 1: key true already set in map", "line 1: key 1.5 already set in map"]),
    ("1 and 1.0 and '1' are different keys", "{1: a, 1.0: b, '1': c}", []),
    ("a text after a number", "1: a\nb: c\nb: d", ['line 3: key "b" already set in map']),
    ("what a merge brought", "a: &x {b: 1}\nc:\n  <<: *x\n  b: 2", ['line 4: key "b" already set in map']),
    ("what a merge brings", "a: &x\n  b: 1\nc: {b: 2, <<: *x}", ['line 2: key "b" already set in map']),
    ("what a written merge brings", "b: 1\n<<:\n  b: 2", ['line 3: key "b" already set in map']),
    ("the second of two merges, which is done first", "- &x {b: 1}\n- &y {b: 2}\n- <<: [*x, *y]", ['line 1: key "b" already set in map']),
    ("again for every alias", "a: &x {b: 1, b: 2}\nc: *x", ['line 1: key "b" already set in map'] * 2),
    ("a key that needs quoting", '"a\\n\\"": 1\n"a\\n\\"": 2', [r'line 2: key "a\n\"" already set in map']),
]  # fmt: skip


@rows(("text", "messages"), [row[1:] for row in REPEATED_KEYS], ids=[row[0] for row in REPEATED_KEYS])
def test_repeated_keys_are_reported_with_their_lines(text: str, messages: list[str]) -> None:
    assert go_yaml.read(text.encode()).duplicates == messages


ERRORS = [
    ("a: [1,2", "yaml: line 1: did not find expected ',' or ']'"),
    ("a: {b", "yaml: line 1: did not find expected ',' or '}'"),
    ("[a,,b]", "yaml: did not find expected node content"),
    ("a: b: c", "yaml: mapping values are not allowed in this context"),
    ("a:\n b: 1\n  c: 2", "yaml: line 3: mapping values are not allowed in this context"),
    ("- a\nb: c", "yaml: line 1: did not find expected '-' indicator"),
    ("a: - b", "yaml: block sequence entries are not allowed in this context"),
    ('a: "x', "yaml: found unexpected end of stream"),
    ("\ta: 1", "yaml: found character that cannot start any token"),
    ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
    ("a: @b", "yaml: found character that cannot start any token"),
    ("a: %b", "yaml: found character that cannot start any token"),
    ('a: "\\q"', "yaml: found unknown escape character"),
    ('a: "\\/"', "yaml: found unknown escape character"),
    ('a:\n- "b\n  \\/"', "yaml: line 3: found unknown escape character"),
    ('a: "\\x"', "yaml: did not find expected hexdecimal number"),
    ('a: "\\ud83d\\ude00"', "yaml: found invalid Unicode character escape code"),
    ("a: >x\n b", "yaml: did not find expected comment or line break"),
    ("%YAML 1.2\n---\na: 1", "yaml: found incompatible YAML document"),
    ("# c\n\n%YAML 1.2\n---\na: 1", "yaml: line 2: found incompatible YAML document"),
    ("%FOO\n---\na: 1", "yaml: found unknown directive name"),
    ("\x01", "yaml: control characters are not allowed"),
    ("a: \x7f", "yaml: control characters are not allowed"),
    ("a: *y", "yaml: unknown anchor 'y' referenced"),
    ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
    ("a: &x {b: {c: *x}}", "yaml: anchor 'x' value contains itself"),
    ("!!int x: 1", "yaml: cannot decode !!str `x` as a !!int"),
    ("a: !!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
    ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
    ("a: !!int", "yaml: cannot decode !!null `` as a !!int"),
    ("a: !!float 12345678901234567890", "yaml: cannot decode !!int `12345678901234567890` as a !!float"),
    ("a: !!timestamp x", "yaml: cannot decode !!str `x` as a !!timestamp"),
    ("a: !!binary aGk", "yaml: !!binary value contains invalid base64 data"),
    ("<<: 3", "yaml: map merge requires map or sequence of maps as the value"),
    ("<<: [1]", "yaml: map merge requires map or sequence of maps as the value"),
    ("<<: [[{a: 1}]]", "yaml: map merge requires map or sequence of maps as the value"),
    ("a: &x [{b: 1}]\nb: {<<: *x}", "yaml: map merge requires map or sequence of maps as the value"),
    ("a: {{ x }}", 'yaml: invalid map key: map[interface {}]interface {}{"x":interface {}(nil)}'),
    ("? [1, a, null]\n: b", 'yaml: invalid map key: []interface {}{1, "a", interface {}(nil)}'),
    ("? {b: 1.5, a: {}}\n: c", 'yaml: invalid map key: map[interface {}]interface {}{"a":map[interface {}]interface {}{}, "b":1.5}'),
    ("null: 1", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
    ("~: [x, true]", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{"x", true}'),
    ("18446744073709551615: 1", "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: 1"),
    ("a: .nan", "json: unsupported value: NaN"),
    ("a: [1, -.inf]", "json: unsupported value: -Inf"),
    ("b: .inf\na: .nan", "json: unsupported value: NaN"),
    ("a: 1\na: .inf", "json: unsupported value: +Inf"),
    (".inf", "json: unsupported value: +Inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n: .inf\nn: 5", {"false": 5}),
        ("a: {b: [.nan]}\na: 1", {"a": 1}),
        ("a: {<<: {b: .inf}, b: 2}", {"a": {"b": 2}}),
    ],
)
def test_an_infinity_that_a_later_key_replaces_is_no_error(text: str, value: Json) -> None:
    assert go_yaml.read(text.encode()).value == value


@rows(("text", "message"), ERRORS)
def test_invalid_yaml_is_refused_with_the_messages_of_go_yaml(text: str, message: str) -> None:
    with pytest.raises(go_yaml.YamlError) as raised:
        go_yaml.read(text.encode())
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!int x\nb: [", "yaml: line 2: did not find expected node content"),
        ("a: !!int x\nb: *c", "yaml: unknown anchor 'c' referenced"),
        ("a: .nan\nb: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: &x !!int z\nb: *x", "yaml: cannot decode !!str `z` as a !!int"),
        ("{{b}: &z 1, c: *z}", 'yaml: invalid map key: map[interface {}]interface {}{"b":interface {}(nil)}'),
    ],
)
def test_syntax_errors_come_before_all_others(text: str, message: str) -> None:
    with pytest.raises(go_yaml.YamlError, match=re.escape(message)):
        go_yaml.read(text.encode())


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(go_yaml.YamlError, match=r"^yaml: invalid (leading|trailing) UTF-8 octet$"):
        go_yaml.read(b"a: \xff\n")


@pytest.mark.slow
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("- ", "")], ids=["brackets", "dashes"])
def test_nesting_goes_as_deep_as_go_yaml_goes(opening: str, closing: str) -> None:
    value = go_yaml.read((opening * 3000 + "x" + closing * 3000).encode()).value
    for _ in range(3000):
        (value,) = value
    assert value == "x"
    with pytest.raises(go_yaml.YamlError, match=r"^yaml: exceeded max depth of 10000$"):
        go_yaml.read((opening * 10_001).encode())


def test_block_and_flow_levels_count_together_for_the_depth_of_json() -> None:
    with pytest.raises(JsonSyntaxError, match=r"^invalid character '\[' exceeded max depth$"):
        go_yaml.read(("- " * 9_000 + "[" * 1_001 + "]" * 1_001).encode())
