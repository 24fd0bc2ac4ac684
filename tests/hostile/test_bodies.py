"""Malicious bodies: each is decoded or refused with an ApiError, in bounded processor time and memory."""

import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noxu.api import cbor, codec, json_patches
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from tests.timing import cpu_seconds

FOO = GroupVersionKind("g", "v1", "Foo")
NAMED = b'"apiVersion":"g/v1","kind":"Foo"'

READERS: dict[str, Callable[[bytes], object]] = {
    "json": lambda body: codec.read_object(body, codec.JSON, FOO).value,
    "yaml": lambda body: codec.read_object(body, codec.YAML, FOO).value,
    "json, ignoring": lambda body: codec.read_object(body, codec.JSON, FOO, strict=False).value,
    "yaml, ignoring": lambda body: codec.read_object(body, codec.YAML, FOO, strict=False).value,
    "json patch": lambda body: json_patches.json_patch(json_patches.read_patch(body), strict=True),
    "json patch, ignoring": lambda body: json_patches.json_patch(json_patches.read_patch(body), strict=False),
    "merge patch": lambda body: json_patches.merge_patch(json_patches.read_patch(body), strict=True),
    "merge patch, ignoring": lambda body: json_patches.merge_patch(json_patches.read_patch(body), strict=False),
    "apply": lambda body: json_patches.read_apply(body).value,
    "cbor": lambda body: cbor.read_object(body, FOO, typed=False),
    "cbor of a built-in kind": lambda body: cbor.read_object(body, FOO, typed=True),
    "apply in cbor": cbor.read_apply,
}


def outcome(reader: str, body: bytes) -> object:
    try:
        return READERS[reader](body)
    except ApiError as error:
        return error.message


def seconds(reader: str, body: bytes) -> float:
    """The processor time of reading a body."""
    return cpu_seconds(lambda: outcome(reader, body))


# Arbitrary bytes

SEEDS = [
    b"{" + NAMED + b',"metadata":{"name":"a"},"spec":{"a":[1,2.5e3,null,true,{"b":"\\u00e9\\ud83d\\ude00"}]}}',
    b'[{"op":"add","path":"/a","value":{"b":[1]}},{"op":"test","from":"/x"}]',
    b"apiVersion: g/v1\nkind: Foo\nspec:\n- &x {a: [1, ~], b: !!str 2}\n- *x\n- <<: *x\n  c: |\n    d\n  ? e\n  : 'f'\n",
    b'%YAML 1.1\n%TAG ! tag:x,2000:\n--- !a\n"k\\x41": &a [*a, <<, {<<: [*a]}]\n...\n',
]
CBOR_SEED = bytes.fromhex(
    "d9d9f7 a3 44 6b696e64 43 466f6f 6a 61706956657273696f6e 43 672f76 42 7370 9f 01 f93e00 d641ff c1 01 ff"
)
PIECES = [b'"', b"'", b"\\", b"\\u", b"{", b"}", b"[", b"]", b",", b":", b": ", b"- ", b"? ", b"\n", b"\n  ", b"\t", b" ",
          b"&x ", b"*x", b"<<: ", b"!!int ", b"!", b"|\n", b">", b"#", b"%", b"@", b"`", b"---\n", b"...", b"1e400", b"-", b"0",
          b".nan", b"y", b"null", b"\x00", b"\x7f", b"\xff", b"\xe2\x82", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc2\x85"]  # fmt: skip


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """One of the seeds, with pieces inserted, deleted and repeated."""
    body = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 6))):
        at, end = sorted(draw(st.tuples(*[st.integers(0, len(body))] * 2)))
        how = draw(st.sampled_from(["insert", "delete", "double", "cut"]))
        match how:
            case "insert":
                body = body[:at] + draw(st.sampled_from(PIECES)) + body[at:]
            case "delete":
                body = body[:at] + body[min(end, at + 9) :]
            case "double":
                body = body[:end] + body[at:]
            case "cut":
                body = body[:end]
    return body


CBOR_PIECES = [
    bytes.fromhex(piece)
    for piece in [
        "a1",
        "bf",
        "ff",
        "9f",
        "5f",
        "7f",
        "41",
        "61",
        "d6",
        "c1",
        "c0",
        "d9d9f7",
        "f6",
        "f7",
        "f97e00",
        "1bffffffffffffffff",
        "bb7fffffffffffffff",
        "5b0fffffffffffffff",
        "9affffffff",
        "1c",
    ]
]


@settings(max_examples=500, deadline=None)
@given(
    body=st.lists(st.one_of(st.sampled_from([CBOR_SEED, *CBOR_PIECES]), st.binary(max_size=3)), max_size=12).map(
        b"".join
    )
)
def test_any_cbor_is_decoded_or_refused_with_an_api_error(body: bytes) -> None:
    for reader in ("cbor", "cbor of a built-in kind", "apply in cbor"):
        result = outcome(reader, body)
        if isinstance(result, str):
            result.encode()
        else:
            codec.encode(result, sort_keys=True).decode()


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.one_of(mangled(), st.binary(max_size=40), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)))
def test_any_bytes_are_decoded_or_refused_with_an_api_error(reader: str, body: bytes) -> None:
    result = outcome(reader, body)
    if isinstance(result, str):
        result.encode()  # a message that can be sent


@settings(max_examples=200, deadline=None)
@given(body=mangled())
def test_what_was_decoded_can_be_encoded_as_utf_8(body: bytes) -> None:
    for reader in ("json", "yaml"):
        value = outcome(reader, body)
        if not isinstance(value, str):
            codec.encode(value, sort_keys=True).decode()
            codec.to_yaml(value).decode()


# Depth


def nested(levels: int) -> bytes:
    return b"{" + NAMED + b',"a":' + b'{"a":' * (levels - 1) + b"1" + b"}" * levels


@pytest.mark.parametrize("reader", ["json", "yaml", "merge patch", "apply"])
def test_depth_is_limited_where_upstream_limits_it(reader: str) -> None:
    assert not isinstance(outcome(reader, nested(9_999)), str)
    assert not isinstance(outcome(reader, nested(10_000)), str)
    assert "exceeded max depth" in str(outcome(reader, nested(10_001))) or reader == "merge patch"
    assert isinstance(outcome(reader, nested(10_001)), str)


@pytest.mark.parametrize("reader", ["json", "yaml", "json patch", "merge patch", "apply"])
@pytest.mark.parametrize(
    "body",
    [
        nested(9_999),
        nested(10_001),
        b'{"a":' * 600_000,
        b"[" * 1_500_000,
        b"[" * 9_999 + b"]" * 9_999,
        b"- " * 9_999 + b"a",
        b"- " * 1_500_000,
        b"[{" * 5_000,
    ],
    ids=["objects", "too many objects", "megabytes of objects", "megabytes of lists", "lists", "dashes", "megabytes of dashes", "mixed"],
)  # fmt: skip
def test_deep_nesting_takes_little_time(reader: str, body: bytes) -> None:
    quadratic = reader in ("yaml", "apply") and body.startswith(b"[")  # libyaml's brackets, up to 10,000 of them
    assert seconds(reader, body) < (2.0 if quadratic else 0.4)


# Size

WIDE = {
    "numbers": b"[" + b"1," * 40_000 + b"1]",
    "empty objects": b"[" + b"{}," * 40_000 + b"1]",
    "small objects": b"[" + b'{"a":1},' * 15_000 + b"1]",
    "repeated keys": b"{" + b'"a":1,' * 20_000 + b'"a":1}',
    "repeated keys far down": b'{"a":' * 9_000 + b"{" + b'"b":1,' * 10_000 + b'"b":1}' + b"}" * 9_000,
    "repeated parents": b'{"a":' * 9_000 + b"{" + b'"c":{"b":1,"b":1},' * 5_000 + b'"b":1}' + b"}" * 9_000,
    "escapes": b'["' + b"\\n" * 60_000 + b'"]',
    "lone surrogates": b'["' + b"\\ud800" * 20_000 + b'"]',
    "bad bytes": b'["' + b"\xffa" * 60_000 + b'"]',
    "digits": b"[" + b"1" * 120_000 + b"]",
    "digits and an exponent": b"[" + b"1" * 60_000 + b"e-" + b"5" * 4 + b"]",
    "zeros": b"[0." + b"0" * 120_000 + b"1]",
    "space": b"[" + b" " * 120_000 + b"]",
    "colons": b'["' + b":" * 120_000 + b'"]',
    "unclosed texts": b'{"a":"' * 20_000,
}


@pytest.mark.parametrize("shape", WIDE)
def test_a_hundred_kilobytes_of_json_take_little_time(shape: str) -> None:
    assert seconds("json", WIDE[shape]) < 0.5


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * 150_000 + b"1]", b"[" + b"{}," * 100_000 + b"1]", b"[" + b'{"a":1},' * 40_000 + b"1]", b'["' + b"\xff" * 300_000 + b'"]'],
    ids=["numbers", "empty objects", "small objects", "bad bytes"],
)  # fmt: skip
def test_memory_is_bounded_by_the_body(body: bytes) -> None:
    tracemalloc.start()
    try:
        outcome("merge patch", body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(body)


# YAML


def laughs(levels: int, width: int) -> bytes:
    names = [f"a{n}" for n in range(levels)]
    lines = [f'{names[0]}: &{names[0]} ["lol"]'] + [
        f"{name}: &{name} [{', '.join([f'*{before}'] * width)}]" for before, name in pairwise(names)
    ]
    return "\n".join(lines).encode()


BOMBS = {
    "a billion laughs": laughs(10, 10),
    "ten billion laughs in maps": b"\n".join(
        [b"a0: &a0 {x: y}", *(b"a%d: &a%d {%s}" % (n, n, b", ".join(b"k%d: *a%d" % (k, n - 1) for k in range(9))) for n in range(1, 11))]
    ),
    "laughs merged": b"\n".join(
        [b"a0: &a0 {x: y}", *(b"a%d: &a%d {<<: [%s]}" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 11))]
    ),
    "one long text, often": b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a," * 1_000 + b"]",
    "a long list, often": b"a: &a [" + b"x," * 2_000 + b"]\nb: [" + b"*a," * 2_000 + b"]",
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("reader", ["yaml", "apply"])
def test_alias_bombs_are_refused_in_little_time_and_memory(reader: str, bomb: str) -> None:
    body = BOMBS[bomb]
    assert seconds(reader, body) < 0.5
    tracemalloc.start()
    try:
        message = outcome(reader, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "yaml: document contains excessive aliasing" in str(message)
    assert peak < 40 * 1024 * 1024


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        (b"&x {a: &y {b: *x, c: *y}}", "yaml: anchor 'x' value contains itself"),
        (b"a: &x {<<: *x}", "yaml: anchor 'x' value contains itself"),
        (b"%TAG !a! b\n" * 100_000 + b"--- a", "yaml: document contains excessive tag directives"),
        (b"a: " + b"[" * 9_000 + b"1," * 1_000_000, "yaml: document contains excessive flow nesting"),
    ],
    ids=["a cycle", "two cycles", "a merge of itself", "tag directives", "deep and wide"],
)
def test_cycles_and_excesses_are_refused(body: bytes, message: str) -> None:
    assert message in str(outcome("yaml", body))


def test_many_aliases_of_a_small_value_are_accepted() -> None:
    value = codec.decode_yaml(b"a: &a {x: 1}\nb: [" + b"*a," * 10_000 + b"]").value
    assert value["b"] == [{"x": 1}] * 10_000


def test_thousands_of_colons_before_brackets_take_linear_time() -> None:
    assert seconds("yaml", b"{" + b"a:,[b:]," * 2_000 + b"}") < 1.0


@pytest.mark.parametrize(
    "body",
    [b"k: v\n" * 20_000, b"- a\n" * 25_000, b"a: 1.5\n" * 15_000, b"? a\n" * 25_000, b"[" + b"a," * 50_000 + b"]"],
    ids=["mapping", "list", "numbers", "keys", "flow"],
)
def test_a_hundred_kilobytes_of_yaml_take_little_time(body: bytes) -> None:
    assert seconds("yaml", body) < 1.0


# CBOR

LARGE = 100_000
CBOR_SHAPES = {
    "declared bytes": b"\x5b" + (2**60).to_bytes(8),
    "a declared array": b"\x9a" + (2**31 - 1).to_bytes(4) + b"\x80" * 1000,
    "a declared map": b"\xba" + (2**21).to_bytes(4),
    "declared arrays in arrays": (b"\x9a" + (2**31 - 1).to_bytes(4)) * 200,
    "depth": b"\x81" * 9_999 + b"\xa0",
    "too much depth": b"\x81" * LARGE,
    "endless depth": b"\xbf\x60" * (LARGE // 2),
    "tags": b"\xc5" * LARGE,
    "depth of tags": b"\xd6\x81" * 9_000 + b"\x40",
    "empty maps": b"\x9a" + LARGE.to_bytes(4) + b"\xa0" * LARGE,
    "endless empty maps": b"\x9f" + b"\xa0" * LARGE + b"\xff",
    "chunks": b"\x5f" + b"\x40" * LARGE + b"\xff",
    "bad bytes": b"\x5a" + LARGE.to_bytes(4) + b"\xff" * LARGE,
    "times": b"\x9f" + b"\xc1\x00" * 40_000 + b"\xff",
    "repeated keys": b"\xbf" + b"\x40\x00" * 40_000 + b"\xff",
    "keys that are arrays": b"\xbf" + b"\x80\x00" * 40_000 + b"\xff",
}


@pytest.mark.parametrize("shape", CBOR_SHAPES)
@pytest.mark.parametrize("reader", ["cbor", "cbor of a built-in kind"])
def test_a_hundred_kilobytes_of_cbor_take_little_time(reader: str, shape: str) -> None:
    assert seconds(reader, CBOR_SHAPES[shape]) < 2.0


@pytest.mark.parametrize("shape", [shape for shape, body in CBOR_SHAPES.items() if len(body) < 20_000])
def test_a_declared_length_allocates_nothing(shape: str) -> None:
    tracemalloc.start()
    try:
        outcome("cbor", CBOR_SHAPES[shape])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80 * LARGE


@pytest.mark.parametrize("body", [b"\xa0" * 1_000, b"\x9f" + b"\xa0" * 998 + b"\xff", b"\xbf\x60" * 500])
def test_a_kilobyte_of_cbor_takes_no_time(body: bytes) -> None:
    assert seconds("cbor", body) < 0.02
