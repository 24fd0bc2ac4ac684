"""Protobuf bodies: bytes that Go's generated code made, both ways; presence; malformed and hostile bodies."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.api.protobuf import MAGIC, MAX_DEPTH, decode, encode, open_envelope, read, write
from apiserver.api.structs import (
    BOOL,
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    INT_OR_STRING,
    MICRO_TIME,
    RAW_EXTENSION,
    STRING,
    TIME,
    Field,
    List,
    Map,
    Struct,
    Union,
    Write,
)
from apiserver.api.types import Json, Object
from apiserver.registry.kinds import struct_of

# Made with k8s.io/api and the serializer of k8s.io/apimachinery: (what, the body in hex, the same object as JSON).
SAMPLES: list[tuple[str, str, Object]] = [
    (
        "a namespace as kubectl creates it",
        "6b3873000a0f0a02763112094e616d657370616365121e0a160a067465616d2d6112001a0022002a0032003800420012001a"
        "020a001a002200",
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team-a"}, "spec": {}, "status": {}},
    ),
    (
        "a lease whose holder lets go",
        "6b3873000a1f0a16636f6f7264696e6174696f6e2e6b38732e696f2f763112054c65617365122f0a180a066c656164657212"
        "001a017822002a003201373800420012130a001001220b08d983e2b106108094ef3a28001a002200",
        {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": "leader", "namespace": "x", "resourceVersion": "7"},
            "spec": {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "renewTime": "2024-05-06T07:08:09.123456Z",
                "leaseTransitions": 0,
            },
        },
    ),
    (
        "a lease that nobody ever held",
        "6b3873000a1f0a16636f6f7264696e6174696f6e2e6b38732e696f2f763112054c65617365121a0a160a066c656164657212"
        "001a0022002a0032003800420012001a002200",
        {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "leader"}, "spec": {}},
    ),
    (
        "a secret",
        "6b3873000a0c0a027631120653656372657412490a200a017312001a0022002a003200380042005a050a016112005a060a01"
        "6212013212090a05656d707479120012070a016b120200ff1a064f706171756522070a01741202c3a928001a002200",
        {
            "kind": "Secret",
            "apiVersion": "v1",
            "metadata": {"name": "s", "labels": {"a": "", "b": "2"}},
            "immutable": False,
            "data": {"empty": "", "k": "AP8="},
            "stringData": {"t": "é"},
            "type": "Opaque",
        },
    ),
    (
        "an event",
        "6b3873000a0b0a02763112054576656e7412780a250a016512001a016422002a003200380042006a110a03506f641a017022"
        "01752a027631300112120a03506f6412001a017022002a0032003a001a015222002a040a001200320808d983e2b10610003a"
        "0040feffffffffffffffff014a0052005a0f0803120b08d983e2b106108094ef3a620072007a001a002200",
        {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": "e",
                "namespace": "d",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
            },
            "involvedObject": {"kind": "Pod", "name": "p"},
            "reason": "R",
            "source": {},
            "firstTimestamp": "2024-05-06T07:08:09Z",
            "lastTimestamp": None,
            "count": -2,
            "eventTime": None,
            "series": {"count": 3, "lastObservedTime": "2024-05-06T07:08:09.123456Z"},
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
    (
        "a question about access",
        "6b3873000a2e0a17617574686f72697a6174696f6e2e6b38732e696f2f763112135375626a65637441636365737352657669"
        "657712560a100a0012001a0022002a0032003800420012380a150a0012036765741a0022002a04706f647332003a001a0175"
        "22016722002a0b0a016b12060a01310a01322a080a046e6f6e65120032001a08080012001a0020001a002200",
        {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {
                "resourceAttributes": {"verb": "get", "resource": "pods"},
                "user": "u",
                "groups": ["g", ""],
                "extra": {"k": ["1", "2"], "none": []},
            },
            "status": {"allowed": False},
        },
    ),
    (
        "the options of a delete",
        "6b3873000a130a027631120d44656c6574654f7074696f6e731214080012030a017522064f727068616e2a03416c6c1a002200",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        },
    ),
    (
        "a policy with embedded rules",
        "6b3873000a3c0a1f61646d697373696f6e726567697374726174696f6e2e6b38732e696f2f7631121956616c69646174696e"
        "6741646d697373696f6e506f6c69637912480a100a0012001a0022002a00320038004200123012220a001a1e0a016e12190a"
        "06435245415445120f0a00120276311a04706f647322012a1a0a0a0474727565120022001a0208001a002200",
        {
            "kind": "ValidatingAdmissionPolicy",
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {},
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {},
                    "resourceRules": [
                        {
                            "resourceNames": ["n"],
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                            "scope": "*",
                        }
                    ],
                },
                "validations": [{"expression": "true"}],
            },
            "status": {},
        },
    ),
    (
        "a definition with all its unions",
        "6b3873000a330a17617069657874656e73696f6e732e6b38732e696f2f76311218437573746f6d5265736f75726365446566"
        "696e6974696f6e129a030a140a0461732e6212001a0022002a0032003800420012ef020a01621a0b0a02617312002201412a"
        "00220a4e616d657370616365643ace020a0276311001180122c1020abe020a00120022002a066f626a65637432003a004210"
        "0a0e7b2261223a5b312c6e756c6c5d7d49000000000000f83f500059000000000000004060007a00900100a201050a032278"
        "22a201030a0135c201260a240a00120022002a06737472696e6732003a00500060007a00900100a80200b80200c00200ea01"
        "6f0a0170126a0a00120022002a0032003a00500060007a00900100c20120121e0a00120022002a0032003a00500060007a00"
        "900100a80201b80200c00200f20126080112220a00120022002a003204627974653a00500060007a00900100a80200b80200"
        "c00200a80200b80200c00200f2010208018202080a016412031201658202260a017312210a1f0a00120022002a0032003a01"
        "74500060007a00900100a80200b80200c002008a02020800a80200b80200c00200e2020c0a047472756512001a002a003800"
        "50001a1012080a00120022002a001a02763120001a002200",
        {
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"name": "as.b"},
            "spec": {
                "group": "b",
                "names": {"plural": "as", "kind": "A"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "default": {"a": [1, None]},
                                "maximum": 1.5,
                                "minimum": 2,
                                "enum": ["x", 5],
                                "items": {"type": "string"},
                                "properties": {
                                    "p": {"items": [{"nullable": True}], "additionalProperties": {"format": "byte"}}
                                },
                                "additionalProperties": True,
                                "dependencies": {"d": ["e"], "s": {"title": "t"}},
                                "additionalItems": False,
                                "x-kubernetes-validations": [{"rule": "true"}],
                            }
                        },
                    }
                ],
            },
            "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        },
    ),
    (
        "managed fields",
        "6b3873000a270a0e6d6574612e6b38732e696f2f763112155061727469616c4f626a6563744d65746164617461124f0a4d0a"
        "016d12001a0022002a0032003803420808d983e2b10610008a01310a026d6512054170706c791a00220808d983e2b1061000"
        "32084669656c647356313a0c0a0a7b22663a61223a7b7d7d42001a002200",
        {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {
                "name": "m",
                "generation": 3,
                "creationTimestamp": "2024-05-06T07:08:09Z",
                "managedFields": [
                    {
                        "manager": "me",
                        "operation": "Apply",
                        "time": "2024-05-06T07:08:09Z",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:a": {}},
                    }
                ],
            },
        },
    ),
    (
        "what a version serves",
        "6b3873000a150a027631120f4150495265736f757263654c69737412260a04672f7631121e0a02617310011a0141220b0a03"
        "6765740a046c697374320042004a0052001a002200",
        {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": "g/v1",
            "resources": [
                {"name": "as", "singularName": "", "namespaced": True, "kind": "A", "verbs": ["get", "list"]}
            ],
        },
    ),
    (
        "a failure",
        "6b3873000a0c0a027631120653746174757312480a060a0012001a0012074661696c7572651a016d2207496e76616c69642a"
        "260a016e12001a0022190a114669656c6456616c7565496e76616c69641201781a01662801320030a6031a002200",
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "m",
            "reason": "Invalid",
            "details": {
                "name": "n",
                "causes": [{"reason": "FieldValueInvalid", "message": "x", "field": "f"}],
                "retryAfterSeconds": 1,
            },
            "code": 422,
        },
    ),
]


@pytest.mark.parametrize(("body", "value"), [row[1:] for row in SAMPLES], ids=[row[0] for row in SAMPLES])
def test_what_go_sends_becomes_the_json_that_go_would_write(body: str, value: Object) -> None:
    (api_version, kind), decoded = decode(bytes.fromhex(body), struct_of)
    assert (api_version, kind) == (value["apiVersion"], value["kind"])
    assert decoded == value
    assert _keys(decoded) == _keys(value)


@pytest.mark.parametrize(("body", "value"), [row[1:] for row in SAMPLES], ids=[row[0] for row in SAMPLES])
def test_what_is_sent_are_the_bytes_that_go_would_send(body: str, value: Object) -> None:
    table = struct_of(value["apiVersion"], value["kind"])
    assert table is not None
    assert encode(table, value).hex() == body


def _keys(value: Json) -> Json:
    """The order of keys at all levels."""
    if isinstance(value, dict):
        return [(name, _keys(item)) for name, item in value.items()]
    return [_keys(item) for item in value] if isinstance(value, list) else None


# A message to take apart

CHOICE = Union(
    "Choice", {"object": Field("One", Struct("One").define(Field("x", STRING, 1)), 2), "bool": Field("Is", BOOL, 1)}
)
PART = Struct("Part").define(Field("name", STRING, 1), Field("count", INT32, 2))
THING = Struct("Thing").define(
    Field("text", STRING, 1),
    Field("maybe", STRING, 2, Write.POINTER),
    Field("always", STRING, 3, Write.ALWAYS),
    Field("flag", BOOL, 4),
    Field("small", INT32, 5),
    Field("large", INT64, 6),
    Field("real", FLOAT64, 7, Write.POINTER),
    Field("data", BYTES, 8),
    Field("when", TIME, 9),
    Field("exactly", MICRO_TIME, 10),
    Field("either", INT_OR_STRING, 11, Write.POINTER),
    Field("any", RAW_EXTENSION, 12),
    Field("part", PART, 13, Write.ALWAYS),
    Field("parts", List(PART), 14),
    Field("names", List(STRING), 15),
    Field("labels", Map(STRING), 16),
    Field("blobs", Map(BYTES), 17),
    Field("byName", Map(PART), 18),
    Field("extra", Map(List(STRING, "v1.Extra", wrapped=True)), 19),
    Field("choice", CHOICE, 20, Write.POINTER),
    Field("inner", STRING, 1, inline="Outer.Inner", within=(21, 2)),
    Field("outer", STRING, 1, inline="Outer", within=(21,)),
    Field("none", BYTES, 22, Write.ALWAYS),
    Field("null", INT64, 23, Write.NULL),
    Field("notInProtobuf", STRING),
)
ZERO: Object = {"always": "", "part": {}, "none": None, "null": None}


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return varint(number << 3 | 2) + varint(len(value)) + value


MESSAGES: list[tuple[str, bytes, Object]] = [
    ("nothing", b"", {}),
    ("an optional string that is empty stays", field(2, b""), {"maybe": ""}),
    ("a plain string that is empty goes", field(1, b"") + field(3, b""), {}),
    ("numbers and booleans that are zero go", field(4, 0) + field(5, 0) + field(6, 0), {}),
    ("the last of several counts", field(1, b"a") + field(1, b"b"), {"text": "b"}),
    ("messages merge", field(13, field(1, b"a")) + field(13, field(2, 5)), {"part": {"name": "a", "count": 5}}),
    ("any nonzero number is true", field(4, 2), {"flag": True}),
    ("negative numbers", field(5, -1) + field(6, -(2**63)), {"small": -1, "large": -(2**63)}),
    ("a small number keeps 32 bits", field(5, 2**32 + 7), {"small": 7}),
    ("a double", b"\x39" + bytes.fromhex("000000000000f83f"), {"real": 1.5}),
    ("bytes", field(8, b"\x00\xff"), {"data": "AP8="}),
    ("bytes that are no UTF-8 are replaced one by one", field(1, b"a\xff\xe2\x82b"), {"text": "a\ufffd\ufffd\ufffdb"}),
    ("a time drops its nanoseconds", field(9, field(1, 1) + field(2, 999)), {"when": "1970-01-01T00:00:01Z"}),
    ("a time before 1970", field(9, field(1, -1)), {"when": "1969-12-31T23:59:59Z"}),
    ("a time in the year 1", field(9, field(1, -62135596799)), {"when": "0001-01-01T00:00:01Z"}),
    ("the zero time, empty or spelled out", field(9, b"") + field(10, field(1, -62135596800)), {}),
    ("microseconds", field(10, field(1, 1) + field(2, 1999)), {"exactly": "1970-01-01T00:00:01.000001Z"}),
    ("a number of int-or-string", field(11, field(1, 0) + field(2, 80) + field(3, b"no")), {"either": 80}),
    ("a text of int-or-string", field(11, field(1, 1) + field(3, b"80%")), {"either": "80%"}),
    ("an int-or-string of zero", field(11, b""), {"either": 0}),
    ("JSON inside", field(12, field(1, b'{"b": [1, null]}')), {"any": {"b": [1, None]}}),
    ("no JSON inside", field(12, b""), {}),
    ("repeated messages", field(14, field(1, b"a")) + field(14, b""), {"parts": [{"name": "a"}, {}]}),
    ("repeated strings", field(15, b"a") + field(1, b"x") + field(15, b""), {"text": "x", "names": ["a", ""]}),
    ("a map", field(16, field(1, b"b") + field(2, b"2")) + field(16, field(2, b"1")), {"labels": {"b": "2", "": "1"}}),
    (
        "a map entry without value",
        field(16, field(1, b"a")) + field(17, field(1, b"a")),
        {"labels": {"a": ""}, "blobs": {"a": ""}},
    ),
    (
        "a map entry again",
        field(16, field(1, b"a") + field(2, b"1")) + field(16, field(1, b"a") + field(2, b"2")),
        {"labels": {"a": "2"}},
    ),
    (
        "a map of messages",
        field(18, field(1, b"a") + field(2, field(2, 1))) + field(18, b""),
        {"byName": {"a": {"count": 1}, "": {}}},
    ),
    (
        "a map of wrapped lists",
        field(19, field(1, b"a") + field(2, field(1, b"x") + field(1, b"y"))) + field(19, b""),
        {"extra": {"a": ["x", "y"], "": []}},
    ),
    ("a union that holds an object", field(20, field(1, 1) + field(2, field(1, b"v"))), {"choice": {"x": "v"}}),
    ("a union that holds a boolean", field(20, field(1, 1)), {"choice": True}),
    ("an empty union", field(20, b""), {"choice": False}),
    ("embedded structs", field(21, field(2, field(1, b"i")) + field(1, b"o")), {"inner": "i", "outer": "o"}),
    (
        "embedded structs in two pieces",
        field(21, field(1, b"o")) + field(21, field(2, field(1, b"i"))),
        {"inner": "i", "outer": "o"},
    ),
    ("a pointer without omitempty", field(23, 0), {"null": 0}),
    (
        "unknown fields of all wire types",
        field(99, 1) + field(99, b"x") + varint(99 << 3 | 1) + bytes(8) + varint(99 << 3 | 5) + bytes(4),
        {},
    ),
    (
        "an unknown group with a group inside",
        varint(99 << 3 | 3)
        + varint(98 << 3 | 3)
        + field(1, b"x")
        + varint(98 << 3 | 4)
        + varint(99 << 3 | 4)
        + field(1, b"t"),
        {"text": "t"},
    ),
    ("unknown fields in nested messages", field(13, field(99, 1) + field(1, b"a")), {"part": {"name": "a"}}),
    ("a number longer than need be", b"\x28\x85\x80\x80\x00", {"small": 5}),
]


@pytest.mark.parametrize(("data", "value"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_messages(data: bytes, value: Object) -> None:
    assert read(THING, data) == ZERO | value


def test_fields_come_out_in_the_order_of_declaration() -> None:
    data = (
        field(21, field(1, b"o"))
        + field(16, b"")
        + field(2, b"")
        + field(1, b"t")
        + field(13, field(2, 1) + field(1, b"n"))
    )
    value = read(THING, data)
    assert list(value) == ["text", "maybe", "always", "part", "labels", "outer", "none", "null"]
    assert list(value["part"]) == ["name", "count"]


MALFORMED: list[tuple[str, bytes, str]] = [
    ("a tag without value", b"\x0a", "unexpected EOF"),
    ("a string cut off", b"\x0a\x05abc", "unexpected EOF"),
    ("a string longer than its message", field(13, b"\x0a\x05abc") + b"xxxxx", "unexpected EOF"),
    ("a number cut off", b"\x28\x80", "unexpected EOF"),
    ("a double cut off", b"\x39\x00", "unexpected EOF"),
    ("an unknown double cut off", varint(99 << 3 | 1) + b"\x00", "unexpected EOF"),
    ("a number of more than 64 bits", b"\x28" + b"\x80" * 10 + b"\x01", "proto: integer overflow"),
    ("a tag of more than 64 bits", b"\x80" * 10 + b"\x01", "proto: integer overflow"),
    ("a negative length", b"\x0a" + varint(2**64 - 1), "proto: negative length found during unmarshaling"),
    ("field 0", b"\x02\x00", "proto: Thing: illegal tag 0 (wire type 2)"),
    ("a negative field number", varint(2**34 + 2), "proto: Thing: illegal tag -2147483648 (wire type 17179869186)"),
    ("field 0 in a nested message", field(13, b"\x00\x00"), "proto: Part: illegal tag 0 (wire type 0)"),
    ("the end of a group that did not begin", b"\x0c", "proto: Thing: wiretype end group for non-group"),
    ("a group that does not end", varint(99 << 3 | 3), "unexpected EOF"),
    ("an unknown wire type", varint(99 << 3 | 6), "proto: illegal wireType 6"),
    ("text where a number belongs", field(5, b"x"), "proto: wrong wireType = 2 for field Small"),
    ("a number where text belongs", field(1, 1), "proto: wrong wireType = 0 for field Text"),
    (
        "a time before the calendar",
        field(9, field(1, -(2**62))),
        "proto: timestamp -4611686018427387904 is out of range",
    ),
    ("a time behind the calendar", field(9, field(1, 2**62)), "proto: timestamp 4611686018427387904 is out of range"),
    ("a double that is no number", b"\x39" + bytes.fromhex("000000000000f87f"), "json: unsupported value: NaN"),
    ("what should be JSON and is not", field(12, field(1, b"{")), "unexpected end of JSON input"),
]


@pytest.mark.parametrize(("data", "error"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_messages(data: bytes, error: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        read(THING, data)
    assert str(caught.value) == error


# Envelopes


def envelope(api_version: str, kind: str, raw: bytes, more: bytes = b"") -> bytes:
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, meta) + field(2, raw) + more


def the_thing(api_version: str, kind: str) -> Struct | None:
    return THING if (api_version, kind) == ("example.com/v1", "Thing") else None


BAD_ENVELOPES = [
    ("no body", b"", "empty data"),
    (
        "a body without magic",
        b"{}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    ),
    (
        "half of the magic",
        b"k8s",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    ),
    ("only the magic", MAGIC, "empty body"),
    ("garbage behind the magic", MAGIC + b"\xff", "unexpected EOF"),
    ("an envelope of the wrong shape", MAGIC + field(1, 1), "proto: wrong wireType = 0 for field TypeMeta"),
    (
        "nothing said",
        MAGIC + field(2, b""),
        "Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"\"}'",
    ),
    (
        "no version",
        envelope("", "Thing", b""),
        "Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"Thing\"}'",
    ),
    (
        "an unknown kind",
        envelope("example.com/v1", "Other", b""),
        'no kind "Other" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
]


@pytest.mark.parametrize(("body", "error"), [row[1:] for row in BAD_ENVELOPES], ids=[row[0] for row in BAD_ENVELOPES])
def test_bad_envelopes(body: bytes, error: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        decode(body, the_thing)
    assert str(caught.value) == error


def test_what_the_envelope_does_not_say_is_filled_in() -> None:
    body = MAGIC + field(2, field(1, b"t"))
    given, value = decode(body, the_thing, api_version="example.com/v1", kind="Thing")
    assert given == ("example.com/v1", "Thing")
    assert value == {"kind": "Thing", "apiVersion": "example.com/v1", "text": "t"} | ZERO


def test_what_the_envelope_says_wins() -> None:
    body = envelope("example.com/v1", "Thing", b"")
    given, _ = decode(body, the_thing, api_version="v1", kind="Namespace")
    assert given == ("example.com/v1", "Thing")


def test_the_content_type_in_an_envelope_is_not_looked_at() -> None:
    found = open_envelope(
        envelope("v1", "X", b"raw", field(3, b"gzip") + field(4, b"application/json") + field(9, b"?"))
    )
    assert found == ("v1", "X", b"raw")


# Writing


def test_what_is_not_a_pointer_is_written_even_if_it_is_zero() -> None:
    expected = (
        field(1, b"") + field(3, b"") + field(4, 0) + field(5, 0) + field(6, 0) + field(9, b"") + field(10, b"")
        + field(12, b"") + field(13, field(1, b"") + field(2, 0)) + field(21, field(1, b"") + field(2, field(1, b"")))
    )  # fmt: skip
    assert write(THING, {}) == expected


WRITTEN: list[tuple[str, Object, int, bytes]] = [
    ("an optional string that is empty", {"maybe": ""}, 2, field(2, b"")),
    ("a negative number", {"small": -1}, 5, field(5, -1)),
    (
        "map entries sorted by key",
        {"labels": {"b": "2", "a": "1"}},
        16,
        field(16, field(1, b"a") + field(2, b"1")) + field(16, field(1, b"b") + field(2, b"2")),
    ),
    ("a wrapped list", {"extra": {"a": ["x"]}}, 19, field(19, field(1, b"a") + field(2, field(1, b"x")))),
    ("an object in a union", {"choice": {"x": "v"}}, 20, field(20, field(1, 1) + field(2, field(1, b"v")))),
    ("a boolean in a union", {"choice": False}, 20, field(20, field(1, 0))),
    ("text of int-or-string", {"either": "a"}, 11, field(11, field(1, 1) + field(2, 0) + field(3, b"a"))),
    ("a number of int-or-string", {"either": -5}, 11, field(11, field(1, 0) + field(2, -5) + field(3, b""))),
    ("microseconds", {"exactly": "1969-12-31T23:59:59.250000Z"}, 10, field(10, field(1, -1) + field(2, 250_000_000))),
    ("seconds", {"when": "2024-05-06T07:08:09Z"}, 9, field(9, field(1, 1714979289) + field(2, 0))),
    ("JSON", {"any": {"é": [1]}}, 12, field(12, field(1, '{"é":[1]}'.encode()))),
]


@pytest.mark.parametrize(("value", "number", "data"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_written_fields(value: Object, number: int, data: bytes) -> None:
    assert data in write(THING, value)
    assert data not in write(THING, {})
    again = read(THING, write(THING, value))
    name = next(iter(value))
    assert again[name] == value[name]
    assert THING.fields[name].number == number


texts = st.text(st.characters(codec="utf-8"), max_size=5)
things = st.fixed_dictionaries(
    {"always": texts, "part": st.just({}), "none": st.none(), "null": st.none() | st.integers(-(2**63), 2**63 - 1)},
    optional={
        "maybe": texts,
        "flag": st.just(True),
        "small": st.integers(-(2**31), -1),
        "real": st.floats(allow_nan=False, allow_infinity=False),
        "exactly": st.datetimes().map(lambda moment: moment.isoformat(timespec="microseconds") + "Z"),
        "either": texts | st.integers(-(2**31), 2**31 - 1),
        "parts": st.lists(st.fixed_dictionaries({}, optional={"count": st.integers(1, 9)}), min_size=1, max_size=3),
        "labels": st.dictionaries(texts, texts, min_size=1, max_size=3),
        "extra": st.dictionaries(texts, st.lists(texts, max_size=2), min_size=1, max_size=2),
        "choice": st.booleans() | st.just({"x": "v"}),
        "inner": texts.filter(bool),
    },
)


@given(things)
@settings(max_examples=100, deadline=None)
def test_reading_undoes_writing(value: Object) -> None:
    if value.get("exactly") == "0001-01-01T00:00:00.000000Z":
        del value["exactly"]
    assert read(THING, write(THING, value)) == value


# Hostile bodies


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_whatever_bytes_come_there_is_a_value_or_a_value_error(data: bytes) -> None:
    assert outcome(lambda: read(THING, data))


def outcome(work: Callable[[], Object]) -> Object | str:
    try:
        return work()
    except ValueError as error:
        return str(error)


@given(st.sampled_from(SAMPLES), st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_body_is_a_value_or_a_value_error(sample: tuple[str, str, Object], data: st.DataObject) -> None:
    body = bytearray(bytes.fromhex(sample[1]))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(4, len(body))) :]
    assert outcome(lambda: decode(bytes(body), struct_of)[1])


NODE = Struct("Node")
NODE.define(Field("next", NODE, 1, Write.POINTER), Field("all", List(NODE), 2), Field("name", STRING, 3))


def nested(depth: int) -> bytes:
    heads: list[bytes] = []
    length = 0
    for _ in range(depth):
        heads.append(varint(1 << 3 | 2) + varint(length))
        length += len(heads[-1])
    return b"".join(reversed(heads))


def test_messages_nest_up_to_the_limit() -> None:
    value = read(NODE, nested(MAX_DEPTH))
    for _ in range(MAX_DEPTH):
        value = value["next"]
    assert value == {}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_deeper_messages_are_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=r"^exceeded max depth$"):
        read(NODE, nested(depth))


def test_deep_messages_are_written() -> None:
    value: Object = {}
    for _ in range(MAX_DEPTH):
        value = {"next": value}
    again = read(NODE, write(NODE, value))
    for _ in range(MAX_DEPTH):
        again = again["next"]
    assert again == {}


HOSTILE: list[tuple[str, Callable[[int], bytes]]] = [
    ("empty messages", lambda n: field(2, b"") * n),
    ("one message again and again", lambda n: field(1, field(3, b"x")) + field(1, b"") * n),
    ("unknown numbers", lambda n: field(99, 1) * n),
    ("unknown groups, one in the other", lambda n: varint(99 << 3 | 3) * n + varint(99 << 3 | 4) * n),
    ("bytes that are no text", lambda n: field(3, b"\xff" * n)),
]


@pytest.mark.parametrize("body", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_time_is_linear_in_the_body(body: Callable[[int], bytes]) -> None:
    def seconds(count: int) -> float:
        data = body(count)
        started = time.process_time()
        read(NODE, data)
        return time.process_time() - started

    few = max(seconds(2_000), 0.001)
    assert seconds(20_000) < 40 * few  # ten times the work; a hundred times if it were quadratic
