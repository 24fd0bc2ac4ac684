"""Keys of tokens: files of every kind, ids, JSON Web Keys, and the key that a server makes."""

from __future__ import annotations

import base64
import hashlib
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from noxu.security.claims import Parsed, parse
from noxu.security.keys import (
    NO_PRIVATE_KEY,
    NO_PUBLIC_KEY,
    Keys,
    public_key,
    read_public_keys,
    read_signing_key,
)
from tests.rows import rows
from tests.timing import HANGS_AFTER

RSA = rsa.generate_private_key(65537, 2048)
P256, P384, P521 = (ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()))
PKCS1, PKCS8 = PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8


def private(key: Any, form: PrivateFormat) -> bytes:
    return bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))


def public(key: Any, form: PublicFormat = PublicFormat.SubjectPublicKeyInfo) -> bytes:
    return bytes(key.public_key().public_bytes(Encoding.PEM, form))


def certificate(key: Any) -> bytes:
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]), datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


FILES: list[tuple[str, bytes, list[Any]]] = [
    ("an RSA key in PKCS #1", private(RSA, PKCS1), [RSA]),
    ("an RSA key in PKCS #8", private(RSA, PKCS8), [RSA]),
    ("an ECDSA key in SEC 1", private(P256, PKCS1), [P256]),
    ("an ECDSA key in PKCS #8", private(P384, PKCS8), [P384]),
    ("a public key", public(RSA), [RSA]),
    ("a public key in PKCS #1", public(RSA, PublicFormat.PKCS1), [RSA]),
    ("a certificate", certificate(P256), [P256]),
    ("several, with text around them", b"a\n" + public(P521) + b"b\n" + public(RSA) + certificate(P256), [P521, RSA, P256]),
    ("parameters before the key", b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
     + private(P256, PKCS1), [P256]),
    ("a block that is broken", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n" + public(P256), [P256]),
    ("a key of another kind", public(ed25519.Ed25519PrivateKey.generate()) + public(P256), [P256]),
]  # fmt: skip


@rows(("pem", "keys"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_the_public_keys_of_a_file(pem: bytes, keys: list[Any]) -> None:
    found = read_public_keys(pem)
    assert [key.id for key in found] == [public_key(key.public_key()).id for key in keys]


@pytest.mark.parametrize("pem", [b"", b"x", public(ed25519.Ed25519PrivateKey.generate())])
def test_a_file_without_keys(pem: bytes) -> None:
    with pytest.raises(ValueError, match=NO_PUBLIC_KEY):
        read_public_keys(pem)
    with pytest.raises(ValueError, match=NO_PRIVATE_KEY):
        read_signing_key(pem + public(RSA))


@given(st.binary())
def test_any_block_is_a_key_or_not(data: bytes) -> None:
    pem = b"-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(data) + b"\n-----END PRIVATE KEY-----\n"
    with pytest.raises(ValueError, match="data does not contain"):
        read_public_keys(pem)


def test_the_id_of_a_key_is_the_digest_of_its_public_form() -> None:
    der = RSA.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    expected = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()
    assert public_key(RSA.public_key()).id == expected


ALGORITHMS = [("RSA", RSA, "RS256"), ("P-256", P256, "ES256"), ("P-384", P384, "ES384"), ("P-521", P521, "ES512")]


@pytest.mark.parametrize(("key", "algorithm"), [row[1:] for row in ALGORITHMS], ids=[row[0] for row in ALGORITHMS])
def test_a_token_is_verified_by_the_key_in_its_json_form(key: Any, algorithm: str) -> None:
    signing = read_signing_key(private(key, PKCS8))
    text = signing.sign(b'{"a":1}')
    jwk = signing.public.jwk()
    assert jwt.get_unverified_header(text) == {"alg": algorithm, "kid": jwk["kid"]}
    assert jwt.decode(text, jwt.PyJWK(jwk), algorithms=[algorithm]) == {"a": 1}
    assert (jwk["use"], jwk["alg"]) == ("sig", algorithm)


def parsed(text: str, key_id: str) -> Parsed:
    """A token as if its header named this key."""
    found = parse(text)
    assert found is not None
    return found._replace(key_id=key_id)


def test_a_key_verifies_by_its_id_or_without_one() -> None:
    old, new = read_signing_key(private(RSA, PKCS8)), read_signing_key(private(P256, PKCS8))
    keys = Keys([old.public], new)
    assert [key.id for key in keys.public()] == [old.public.id, new.public.id]
    for signing in (old, new):
        text = signing.sign(b"{}")
        assert keys.verify(parsed(text, signing.public.id))
        assert keys.verify(parsed(text, ""))
    assert not keys.verify(parsed(old.sign(b"{}"), new.public.id))
    with pytest.raises(LookupError):
        keys.verify(parsed(old.sign(b"{}"), "x"))


def test_the_key_that_a_server_makes_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "pki" / "sa.key"
    keys = Keys(own=path)
    assert not path.exists(), "It is made when it is needed."
    text = keys.signing().sign(b"{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in path.parent.iterdir()) == ["sa.key", "sa.pub"]
    assert Keys(own=path).verify(parsed(text, keys.signing().public.id))
    assert read_public_keys(path.with_suffix(".pub").read_bytes())[0].id == keys.signing().public.id


def test_servers_that_need_the_key_at_the_same_time_make_one(tmp_path: Path) -> None:
    """Each has a copy of its own in memory, so a second one would not know the tokens of the first."""
    path = tmp_path / "pki" / "sa.key"
    at_once = threading.Barrier(8)

    def key(_: int) -> str:
        at_once.wait(HANGS_AFTER)
        return Keys(own=path).signing().public.id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(key, range(8)))
    assert ids == {Keys(own=path).signing().public.id}
    assert sorted(file.name for file in path.parent.iterdir()) == ["sa.key", "sa.pub"]
    assert read_public_keys(path.with_suffix(".pub").read_bytes())[0].id in ids


def test_a_kept_key_that_is_broken_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "sa.key").write_text("x")
    with pytest.raises(ValueError, match=r"sa\.key: data does not contain a valid RSA or ECDSA private key"):
        Keys(own=tmp_path / "sa.key").signing()
    assert (tmp_path / "sa.key").read_text() == "x"


def test_a_symmetric_signature_with_a_public_key_is_none() -> None:
    """The public key as the secret of HS256 (CVE-2015-9235)."""
    signing = read_signing_key(private(RSA, PKCS8))
    header, payload = (base64.urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"HS256"}', b"{}"))
    import hmac

    digest = hmac.new(public(RSA), header + b"." + payload, hashlib.sha256).digest()
    forged = b".".join([header, payload, base64.urlsafe_b64encode(digest).rstrip(b"=")]).decode()
    assert not Keys([signing.public], signing).verify(parsed(forged, ""))
