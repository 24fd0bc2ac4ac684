"""Protobuf bodies: bytes that Go's serializer made, both ways; envelopes; corrupt bodies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api.protobuf import MAGIC, decode, encode, open_envelope
from noxu.go.protobuf import BYTES, VARINT, tag_bytes, varint_bytes
from noxu.go.structs import STRING, Field, Struct
from noxu.kinds.scheme import struct_of
from noxu.values import Json, Object
from tests.rows import rows

# Made with k8s.io/api and the serializer of k8s.io/apimachinery: (name, the body in hex, the same object as JSON).
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
        "a lease that was never held",
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


@rows(("body", "value"), [row[1:] for row in SAMPLES], ids=[row[0] for row in SAMPLES])
def test_bodies_from_go_decode_to_the_json_that_go_writes(body: str, value: Object) -> None:
    (api_version, kind), decoded = decode(bytes.fromhex(body), struct_of)
    assert (api_version, kind) == (value["apiVersion"], value["kind"])
    assert decoded == value
    assert _keys(decoded) == _keys(value)


@rows(("body", "value"), [row[1:] for row in SAMPLES], ids=[row[0] for row in SAMPLES])
def test_encoded_bodies_are_the_bytes_that_go_writes(body: str, value: Object) -> None:
    table = struct_of(value["apiVersion"], value["kind"])
    assert table is not None
    assert encode(table, value).hex() == body


def _keys(value: Json) -> Json:
    """The order of keys at all levels."""
    if isinstance(value, dict):
        return [(name, _keys(item)) for name, item in value.items()]
    return [_keys(item) for item in value] if isinstance(value, list) else None


# Envelopes

THING = Struct("Thing").define(Field("text", STRING, 1))


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return tag_bytes(number, VARINT) + varint_bytes(value)
    return tag_bytes(number, BYTES) + varint_bytes(len(value)) + value


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
        "an empty envelope",
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


@rows(("body", "error"), [row[1:] for row in BAD_ENVELOPES], ids=[row[0] for row in BAD_ENVELOPES])
def test_bad_envelopes(body: bytes, error: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        decode(body, the_thing)
    assert str(caught.value) == error


def test_a_kind_missing_in_the_envelope_is_taken_from_the_request() -> None:
    body = MAGIC + field(2, field(1, b"t"))
    given, value = decode(body, the_thing, api_version="example.com/v1", kind="Thing")
    assert given == ("example.com/v1", "Thing")
    assert value == {"kind": "Thing", "apiVersion": "example.com/v1", "text": "t"}


def test_the_kind_in_the_envelope_has_precedence() -> None:
    body = envelope("example.com/v1", "Thing", b"")
    given, _ = decode(body, the_thing, api_version="v1", kind="Namespace")
    assert given == ("example.com/v1", "Thing")


def test_the_content_type_in_an_envelope_is_not_looked_at() -> None:
    found = open_envelope(
        envelope("v1", "X", b"raw", field(3, b"gzip") + field(4, b"application/json") + field(9, b"?"))
    )
    assert found == ("v1", "X", b"raw")


# Damaged bodies


@given(st.sampled_from(SAMPLES), st.data())
@settings(max_examples=200, deadline=None)
def test_a_corrupt_body_gives_a_value_or_a_value_error(sample: tuple[str, str, Object], data: st.DataObject) -> None:
    body = bytearray(bytes.fromhex(sample[1]))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(4, len(body))) :]
    try:
        _, value = decode(bytes(body), struct_of)
    except ValueError:
        return
    assert value
