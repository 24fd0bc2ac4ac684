"""Built-in kinds in etcd have the bytes of kube-apiserver, and are read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from noxu.api import codec
from noxu.config import STORAGE_MEDIA_TYPES
from noxu.kinds import scheme
from noxu.kinds.kind import Kind, written
from noxu.registry import etcd_built_in
from noxu.registry.etcd_built_in import as_read, from_etcd, is_protobuf, to_json, to_protobuf
from noxu.values import Object
from tests.kinds.objects import created
from tests.optional import SHARED, needs_data
from tests.rows import rows

GOLDEN: Final = SHARED / "kinds" / "roundtrip"
KINDS: Final = [kind for kind in scheme.served() if kind.stored]
PODS: Final = "/pods"
SECRETS: Final = "/secrets"
BUNDLES: Final = "certificates.k8s.io/clustertrustbundles"


def golden(kind: Kind) -> Path:
    return GOLDEN / f"{kind.group or 'core'}.{kind.version}.{kind.kind}.pb"


def as_written(kind: Kind, value: Object) -> bytes:
    """An object as the server writes it."""
    return codec.encode(written(kind, value), sort_keys=False)


def collection(kind: Kind) -> str:
    return f"{kind.group}/{kind.plural}"


@needs_data("kinds")
@rows("kind", [kind for kind in KINDS if golden(kind).exists()], ids=lambda kind: golden(kind).stem)
def test_the_bytes_are_those_of_kubernetes(kind: Kind) -> None:
    value = as_written(kind, json.loads(golden(kind).with_suffix(".json").read_bytes()))
    stored = golden(kind).read_bytes()
    assert to_protobuf("", value) == stored
    assert from_etcd("", stored) == value


@rows("kind", KINDS, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_reading_what_was_written_gives_the_same_bytes(kind: Kind) -> None:
    value = codec.encode(created(kind, {"metadata": {"name": "a", "labels": {"b": "<c>"}}}), sort_keys=False)
    for stored in (to_json(collection(kind), value) + b"\n", to_protobuf(collection(kind), value)):
        assert from_etcd(collection(kind), stored) == value


SECRET = b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u"},"data":{"k":"AP8="},"type":"Opaque"}'


def test_a_value_in_protobuf_has_the_envelope_of_kubernetes() -> None:
    stored = to_protobuf(SECRETS, SECRET)
    assert stored.startswith(b"k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12")
    assert is_protobuf(stored)
    assert not is_protobuf(SECRET)
    assert from_etcd(SECRETS, stored) == SECRET


@pytest.mark.parametrize("number", [b"0", b"1e+21", b"9223372036854775807", b"0.5"])
def test_numbers_in_any_json(number: bytes) -> None:
    value = (
        b'{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{"name":"a"},"data":{"a":%b},"revision":1}'
        % number
    )
    assert from_etcd("", to_protobuf("", value)) == value


@pytest.mark.parametrize("convert", [to_json, to_protobuf])
def test_bundles_are_stored_as_v1beta1(convert: object) -> None:
    value = (
        b'{"kind":"ClusterTrustBundle","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"a","uid":"u",'
        b'"managedFields":[{"manager":"m","operation":"Update","apiVersion":"certificates.k8s.io/v1","fieldsType":"FieldsV1"}]},'
        b'"spec":{"trustBundle":"x"}}'
    )
    stored = to_json(BUNDLES, value) if convert is to_json else to_protobuf(BUNDLES, value)
    assert stored.count(b"certificates.k8s.io/v1beta1") == 1
    assert from_etcd(BUNDLES, stored) == value
    assert from_etcd(BUNDLES, value + b"\n") == value, "a server that stores v1"
    if convert is to_json:
        other_order = json.dumps(dict(sorted(json.loads(stored).items()))).encode()
        assert json.loads(from_etcd(BUNDLES, other_order)) == json.loads(value)


REQUESTS: Final = "certificates.k8s.io/podcertificaterequests"


def test_requests_are_stored_as_v1beta1_and_read_without_what_v1_does_not_have() -> None:
    value = as_written(
        scheme.by_group_kind()["certificates.k8s.io/v1", "PodCertificateRequest"],
        {
            "kind": "PodCertificateRequest",
            "apiVersion": "certificates.k8s.io/v1",
            "metadata": {"name": "a", "uid": "u"},
        },
    )
    older = value.replace(b"certificates.k8s.io/v1", b"certificates.k8s.io/v1beta1")
    in_protobuf = to_protobuf(REQUESTS, value)
    assert to_json(REQUESTS, value) == older
    assert b"certificates.k8s.io/v1beta1" in in_protobuf
    assert from_etcd(REQUESTS, in_protobuf) == value
    for more in (b'"spec":{"pkixPublicKey":"YQ==",', b'"spec":{"proofOfPossession":"YQ==",'):
        assert from_etcd(REQUESTS, older.replace(b'"spec":{', more)) == value
    assert from_etcd(REQUESTS, value) == value, "a server that stores v1"


ROLES: Final = "rbac.authorization.k8s.io/clusterroles"
ROLE: Final = b'{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"rules":%b}'


@pytest.mark.parametrize(
    ("rules", "read"),
    [(b"[]", b"null"), (b"null", b"null"), (b'[{"verbs":["get"]}]', b'[{"verbs":["get"]}]'), (b'[{"verbs":[]}]', b'[{"verbs":null}]')],
    ids=["empty", "none", "one", "a rule without verbs"],
)  # fmt: skip
def test_an_empty_list_is_written_as_protobuf_reads_it(rules: bytes, read: bytes) -> None:
    assert as_read(ROLES, ROLE % rules) == ROLE % read
    assert from_etcd(ROLES, to_protobuf(ROLES, ROLE % rules)) == ROLE % read


UNCHANGED: list[tuple[str, bytes]] = [
    ("not JSON", b"not json"),
    ("nothing", b""),
    ("a list", b"[1]"),
    ("no kind", b'{"apiVersion":"v1"}'),
    ("an unknown kind", b'{"kind":"Foo","apiVersion":"v1"}'),
    ("a kind that is no text", b'{"kind":{},"apiVersion":[]}'),
    ("an unknown kind in protobuf", b"k8s\0\n\x09\n\x02v1\x12\x03Foo\x12\x00"),
    ("an envelope that is cut off", b"k8s\0\n\x0c\n\x02v1\x12\x06Sec"),
    ("an object that is cut off", b"k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12\x05\n"),
    ("an empty envelope", b"k8s\0"),
]


@rows("value", [row[1] for row in UNCHANGED], ids=[row[0] for row in UNCHANGED])
def test_what_cannot_be_converted_is_unchanged(value: bytes) -> None:
    for name in (PODS, BUNDLES):
        assert (to_protobuf(name, value), to_json(name, value), from_etcd(name, value)) == (value, value, value)


def test_the_media_types_are_those_of_the_option() -> None:
    assert etcd_built_in.MEDIA_TYPES == STORAGE_MEDIA_TYPES
