"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from noxu.registry.access import AccessAttributes, Decision
from tests.admission.cluster import Cluster, of_kind

SIGNER = "kubernetes.io/kube-apiserver-client"


def element(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    digits = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    size = bytes([len(content)]) if len(content) < 128 else bytes([0x80 + len(digits)]) + digits
    return bytes([tag]) + size + content


def attribute(kind: int, value: str) -> bytes:
    return element(0x30, element(0x06, bytes([0x55, 0x04, kind])), element(0x0C, value.encode()))


def block_of(der: bytes, what: str = "CERTIFICATE REQUEST") -> str:
    text = f"-----BEGIN {what}-----\n{base64.encodebytes(der).decode()}-----END {what}-----\n"
    return base64.b64encode(text.encode()).decode()


def request_for(*groups: str, many_values: bool = False, subject: bytes = b"") -> str:
    """A request for the common name `me`; Go writes several organizations into one set."""
    pairs = [attribute(10, group) for group in groups]
    sets = [element(0x31, *pairs)] if many_values else [element(0x31, pair) for pair in pairs]
    subject = subject or element(0x30, *sets, element(0x31, attribute(3, "me")))
    key = element(0x30, b"\x05\x00" * 100)
    info = element(0x30, element(0x02, b"\0"), subject, key, element(0xA0))
    return block_of(element(0x30, info, element(0x30), element(0x03, b"\0")))


def csr(signer: str = SIGNER, request: str = "", **status: Any) -> Any:
    spec = {"request": request or request_for("dev"), "signerName": signer, "usages": ["client auth"]}
    return of_kind("CertificateSigningRequest", "certificates.k8s.io/v1", spec=spec, status=status)


SUBJECTS: list[tuple[str, Any, str]] = [
    ("a member of some group", csr(), ""),
    ("a member of the masters", csr(request=request_for("dev", "system:masters")),
     f"use of {SIGNER} signer with system:masters group is not allowed"),
    ("a member of both in one set", csr(request=request_for("dev", "system:masters", many_values=True)),
     f"use of {SIGNER} signer with system:masters group is not allowed"),
    ("a member of no group", csr(request=request_for()), ""),
    ("a member of the masters, by another signer", csr("example.com/s", request_for("system:masters")), ""),
    ("no PEM", csr(request="eA=="), "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"),
    ("another block", csr(request=block_of(b"", "CERTIFICATE")), "failed to parse CSR: PEM block type must be CERTIFICATE REQUEST"),
    ("a subject of something else", csr(request=request_for(subject=element(0x30, b"\x05\x00"))),
     "failed to parse CSR: asn1: structure error: malformed relative name"),
    ("no DER", csr(request=block_of(b"\x30\x05\x00")), "failed to parse CSR: asn1: structure error: malformed certificate request"),
    ("an empty sequence", csr(request=block_of(b"\x30\x00")), "failed to parse CSR: asn1: structure error: malformed certification request info"),
]  # fmt: skip


@pytest.mark.parametrize(("new", "why"), [row[1:] for row in SUBJECTS], ids=[row[0] for row in SUBJECTS])
async def test_a_request_for(cluster: Cluster, new: Any, why: str) -> None:
    assert await cluster.refusal("CertificateSubjectRestriction", new=new) == why


CERTIFICATE = {"certificate": "eA=="}
PLUGINS = ("CertificateApproval", "CertificateSigning")
RIGHTS: list[tuple[str, str, str, Any, set[tuple[str, str]], str]] = [
    ("approve with the right for the signer", "approval", SIGNER, {}, {("approve", SIGNER)}, ""),
    ("approve with the right for the domain", "approval", SIGNER, {}, {("approve", "kubernetes.io/*")}, ""),
    ("approve with the right to sign", "approval", SIGNER, {}, {("sign", SIGNER)},
     f'user not permitted to approve requests with signerName "{SIGNER}"'),
    ("sign with the right", "status", SIGNER, CERTIFICATE, {("sign", SIGNER)}, ""),
    ("sign without a right", "status", SIGNER, CERTIFICATE, set(),
     f'user not permitted to sign requests with signerName "{SIGNER}"'),
    ("change nothing in the status", "status", SIGNER, {}, set(), ""),
    ("change the request itself", "", SIGNER, {}, set(), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subresource", "signer", "status", "rights", "why"), [row[1:] for row in RIGHTS], ids=[row[0] for row in RIGHTS]
)
async def test_users_may(
    cluster: Cluster, subresource: str, signer: str, status: Any, rights: set[tuple[str, str]], why: str
) -> None:
    def authorize(asked: AccessAttributes) -> Decision:
        assert (asked.group, asked.version, asked.resource) == ("certificates.k8s.io", "*", "signers")
        return Decision((asked.verb, asked.name) in rights)

    new, old = csr(signer, **status), csr(signer)
    found = await cluster.refusal(*PLUGINS, new=new, old=old, subresource=subresource, authorize=authorize)
    assert found == why


async def test_who_may_do_everything_may_approve(cluster: Cluster) -> None:
    assert await cluster.refusal("CertificateApproval", new=csr(), old=csr(), subresource="approval") == ""
