"""Requests for certificates, and bundles of trust: who requests, who decides, what is immutable."""

from __future__ import annotations

from base64 import b64encode

import pytest

from noxu.values import Object
from tests.kinds.typed_objects import NOW, errors, kind_of, name_errors, prepared
from tests.rows import rows

GROUP = "certificates.k8s.io/v1"
REQUEST = kind_of(GROUP, "CertificateSigningRequest")
BUNDLE = kind_of(GROUP, "ClusterTrustBundle")
POD_REQUEST = kind_of(GROUP, "PodCertificateRequest")

CSR_PEM = """-----BEGIN CERTIFICATE REQUEST-----
MIHWMH4CAQAwHDEMMAoGA1UEAwwDYW5uMQwwCgYDVQQKDANkZXYwWTATBgcqhkjO
PQIBBggqhkjOPQMBBwNCAAT8I5mk6SboSjP8TLLNjK5JbfdqCWpJ9OEQc+pjfKnz
a/fVp8yduJr7uiEcbpcqLl0WhrwJkDoDetvuuGGKkKGqoAAwCgYIKoZIzj0EAwID
SAAwRQIgSF4SBYa4Wn4p+1f9HGTU4mh0rF2CR8dMz2/hQ/cc6HQCIQCE+HNrntim
Yh6Pg2WUHA7K3y87Qf7RIR88WYlYSCsaqg==
-----END CERTIFICATE REQUEST-----
"""
CA_PEM = """-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUQD6kpZOZIKflFyFN3F1Izc4R+TowCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIyMjIwMDI2WhgPMjEyNjEwMjkyMjAwMjZa
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMRvYBJBo
kBcLOARy2e+wkMOwakzZQ6iydRDxOZ01f6LjNjZ7Ud7kP1LRxbG0qPICNxT8OIfP
zaVB3bJ4kAXCt6NTMFEwHQYDVR0OBBYEFGz2YiMlGbHttEIcOJW0A7U6rYK5MB8G
A1UdIwQYMBaAFGz2YiMlGbHttEIcOJW0A7U6rYK5MA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgVjEfgc9BuoecNbVgbgGKBTszleXVLowALXuzDEnX
F1UCIQDC+IJ8xBsDyUn8oOhfcv8hOMCXjrouSvqbScOdgNq6Lw==
-----END CERTIFICATE-----
"""
LEAF_PEM = """-----BEGIN CERTIFICATE-----
MIIBcjCCARigAwIBAgIUAvYFdtE4UVfNKSbefrviMhpgKKkwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEbGVhZjAgFw0yNjExMjIyMjAwMjZaGA8yMTI2MTAyOTIyMDAy
NlowDzENMAsGA1UEAwwEbGVhZjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFK7
6sLHoBiocY5FEd8M+gLWe9z0xhpc9Eg9/xQt3W8vTC4dw3SGkKxIPzLGK39Og+CU
OAxWiJfQ219tPFWQfvijUDBOMB0GA1UdDgQWBBSFE3OrA1FLF+iF3W9wnzxr1gOH
8DAfBgNVHSMEGDAWgBSFE3OrA1FLF+iF3W9wnzxr1gOH8DAMBgNVHRMBAf8EAjAA
MAoGCCqGSM49BAMCA0gAMEUCIEGnTTCnuB2Wnc0en1l72prKacfWpOBkzRv5uGUv
+KAoAiEAmdnYlzAauxNVa6LEti0B+iOJMOzmvvwAwsDF3ZrVPZ4=
-----END CERTIFICATE-----
"""


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def pem(content: bytes, kind: str = "CERTIFICATE REQUEST") -> str:
    return f"-----BEGIN {kind}-----\n{b64encode(content).decode()}\n-----END {kind}-----\n"


def csr(conditions: list[Object] | None = None, certificate: str = "", **spec: object) -> Object:
    whole = {"request": base64(CSR_PEM), "signerName": "example.com/s", "usages": ["client auth"], **spec}
    status = {"conditions": conditions or [], **({"certificate": base64(certificate)} if certificate else {})}
    return {"spec": whole, "status": status}


def condition(kind: str, status: str = "True", **more: object) -> Object:
    return {"type": kind, "status": status, "lastUpdateTime": NOW, "lastTransitionTime": NOW, **more}


SHORT, NOT_PEM = pem(b"\x30\x03\x02\x01\x00"), base64("x")
REQUESTS: list[tuple[str, Object, list[str]]] = [
    ("a request", csr(), []),
    ("no PEM", csr(request=NOT_PEM), [f'spec.request: Invalid value: "{NOT_PEM}": PEM block type must be CERTIFICATE REQUEST']),
    (
        "a certificate",
        csr(request=base64(CA_PEM)),
        [f'spec.request: Invalid value: "{base64(CA_PEM)}": PEM block type must be CERTIFICATE REQUEST'],
    ),
    (
        "no request in PEM",
        csr(request=base64(SHORT)),
        [
            f'spec.request: Invalid value: "{base64(SHORT)}": '
            "asn1: structure error: malformed certification request info"
        ],
    ),
    ("no usages", csr(usages=[]), ["spec.usages: Required value"]),
    ("a usage twice", csr(usages=["any", "any"]), ['spec.usages[1]: Duplicate value: "any"']),
    (
        "the signer of old versions",
        csr(signerName="kubernetes.io/legacy-unknown"),
        [
            'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": '
            "the legacy signerName is not allowed via this API version"
        ],
    ),
    (
        "no signer",
        csr(signerName="s"),
        [
            'spec.signerName: Invalid value: "s": '
            "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        ],
    ),
    (
        "a signer without domain",
        csr(signerName="a/s"),
        ['spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots'],
    ),
    (
        "a moment",
        csr(expirationSeconds=599),
        ["spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"],
    ),
]  # fmt: skip


@rows(("new", "expected"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS])
def test_requests_are_validated(new: Object, expected: list[str]) -> None:
    assert errors(REQUEST, {**new, "status": {}}) == expected


def test_the_requester_is_the_user() -> None:
    user = {"username": "ann", "uid": "7", "groups": ["dev"], "extra": {"a": ["b"]}}
    value = prepared(REQUEST, csr(username="bob", uid="1", groups=["system:masters"], extra={"x": ["y"]}), user=user)
    assert {name: value["spec"][name] for name in user} == user
    anonymous = prepared(REQUEST, csr(uid="1"), user={"username": "system:anonymous"})
    assert (anonymous["spec"]["username"], "uid" in anonymous["spec"]) == ("system:anonymous", False)


def test_an_update_changes_neither_spec_nor_status() -> None:
    value = prepared(REQUEST, csr([condition("Denied")], usages=["any"], username="bob"), csr(username="ann"))
    assert value["spec"] == prepared(REQUEST, csr(username="ann"), csr(username="ann"))["spec"]
    assert value["status"] == {}


def test_decisions_get_their_times() -> None:
    sent = {"type": "Approved", "status": "True"}
    value = prepared(REQUEST, csr([sent], "sent"), csr(), "approval")
    assert value["status"] == {"conditions": [condition("Approved")]}
    earlier = condition("Approved", lastTransitionTime="2020-01-01T00:00:00Z")
    value = prepared(REQUEST, csr([sent]), csr([earlier]), "approval")
    assert value["status"]["conditions"] == [earlier]


def test_signers_cannot_change_decisions() -> None:
    approved = condition("Approved", reason="a")
    value = prepared(REQUEST, csr([condition("Approved", reason="b"), condition("Failed")]), csr([approved]), "status")
    assert value["status"]["conditions"] == [approved, condition("Failed")]


STATUS: list[tuple[str, str, Object, Object, list[str]]] = [
    ("an approval", "approval", csr([condition("Approved")]), csr(), []),
    (
        "an approval elsewhere",
        "status",
        csr([condition("Approved")]),
        csr(),
        ['status.conditions: Forbidden: updates may not add a condition of type "Approved"'],
    ),
    (
        "an approval that is taken back",
        "approval",
        csr(),
        csr([condition("Approved")]),
        ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    ),
    (
        "both",
        "approval",
        csr([condition("Approved"), condition("Denied")]),
        csr([condition("Approved")]),
        ['status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'],
    ),
    (
        "an approval that is false",
        "approval",
        csr([condition("Approved", "False")]),
        csr(),
        ['status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
    ),
    ("a certificate", "status", csr(certificate=CA_PEM), csr(), []),
    (
        "a certificate elsewhere",
        "approval",
        csr(certificate=CA_PEM),
        csr(),
        ["status.certificate: Forbidden: updates may not set certificate content"],
    ),
    (
        "another certificate",
        "status",
        csr(certificate=LEAF_PEM),
        csr(certificate=CA_PEM),
        ["status.certificate: Forbidden: updates may not modify existing certificate content"],
    ),
    (
        "no certificate",
        "status",
        csr(certificate=CSR_PEM),
        csr(),
        [
            'status.certificate: Invalid value: "<certificate data>": '
            'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'
        ],
    ),
]


@pytest.mark.parametrize(("sub", "new", "old", "expected"), [row[1:] for row in STATUS], ids=[row[0] for row in STATUS])
def test_decisions_and_certificates_are_validated(sub: str, new: Object, old: Object, expected: list[str]) -> None:
    assert errors(REQUEST, new, old, sub) == expected


OMITTED = 'spec.trustBundle: Invalid value: "<value omitted>"'
BUNDLES: list[tuple[str, Object, Object | None, list[str]]] = [
    ("an authority", {"trustBundle": CA_PEM}, None, []),
    ("nothing", {"trustBundle": ""}, None, [f"{OMITTED}: at least one trust anchor must be provided"]),
    ("an authority twice", {"trustBundle": CA_PEM * 2}, None, [f"{OMITTED}: duplicate trust anchor (indices [0 1])"]),
    ("no authority", {"trustBundle": CA_PEM + LEAF_PEM}, None, [f"{OMITTED}: entry 1 does not have the CA bit set"]),
    (
        "no certificates",
        {"trustBundle": CSR_PEM + pem(b"x", "CERTIFICATE")},
        None,
        [f"{OMITTED}: entry 0 has bad block type: CERTIFICATE REQUEST", f"{OMITTED}: entry 1 does not parse as X.509"],
    ),
    (
        "another signer",
        {"signerName": "a.b/c", "trustBundle": CA_PEM},
        {"trustBundle": CA_PEM},
        ['spec.signerName: Invalid value: "a.b/c": field is immutable'],
    ),
]


@pytest.mark.parametrize(("new", "old", "expected"), [row[1:] for row in BUNDLES], ids=[row[0] for row in BUNDLES])
def test_bundles_are_validated(new: Object, old: Object | None, expected: list[str]) -> None:
    assert errors(BUNDLE, {"spec": new}, None if old is None else {"spec": old}) == expected


NAMES = [
    ("a", "", []),
    ("a:b", "", ['ClusterTrustBundle without signer name must not have ":" in its name']),
    ("a.b:c:d", "a.b/c", []),
    ("d", "a.b/c", ["ClusterTrustBundle for signerName a.b/c must be named with prefix a.b:c:"]),
]


@pytest.mark.parametrize(("name", "signer", "expected"), NAMES)
def test_the_name_of_a_bundle_begins_with_its_signer(name: str, signer: str, expected: list[str]) -> None:
    found = name_errors(BUNDLE, name, {"spec": {"signerName": signer}})
    assert found == [f'metadata.name: Invalid value: "{name}": {text}' for text in expected]


def test_requests_of_pods_are_validated_and_immutable() -> None:
    ids = {f"{what}{part}": "a" for what in ("pod", "serviceAccount", "node") for part in ("Name", "UID")}
    der = b64encode(b"\x30\x00").decode()
    spec = {"signerName": "example.com/s", **ids, "stubPKCS10Request": der, "maxExpirationSeconds": 60}
    assert errors(POD_REQUEST, {"spec": {**spec, "podUID": ""}}) == [
        'spec.podUID: Invalid value: "": must not be empty',
        "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]",
        'spec.stubPKCS10Request: Invalid value: "<stub PKCS#10 request>": '
        "asn1: structure error: malformed certification request info",
    ]
    (error,) = errors(POD_REQUEST, {"spec": {**spec, "nodeName": "b"}}, {"spec": spec})
    assert error.startswith("spec: Invalid value: {")
    assert error.endswith("}: field is immutable")
