"""The keys of service account tokens: one signs, all verify.

They come from files, or the server makes one (ECDSA P-256) when the first is needed, and keeps it in its data
directory: then tokens outlive it. RSA and ECDSA keys are accepted, in the forms that upstream accepts (client-go's
util/keyutil): a private key or a certificate in a file of public keys counts as its public key.

`cryptography` and `jwt` are imported when they are needed: they take a tenth of a second.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from noxu.files import locked, write_whole
from noxu.go import pem
from noxu.security.certificates import malformed
from noxu.security.claims import Parsed
from noxu.values import Object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_CURVE_NAMES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
NO_PUBLIC_KEY: Final = "data does not contain any valid RSA or ECDSA public keys"
NO_PRIVATE_KEY: Final = "data does not contain a valid RSA or ECDSA private key"
BAD_SIGNATURE: Final = "go-jose/go-jose: error in cryptographic primitive"


class PublicKey(NamedTuple):
    """A key that verifies. `algorithms` are those whose signatures it may verify, the first is that of its own tokens."""

    id: str
    key: Any
    algorithms: tuple[str, ...]

    def jwk(self) -> Object:
        """The key as a JSON Web Key (RFC 7517), in the order of go-jose."""
        numbers = self.key.public_numbers()
        algorithm = self.algorithms[0]
        if algorithm in _CURVE_NAMES:
            size = (self.key.key_size + 7) // 8
            place = {"x": _base64(numbers.x.to_bytes(size, "big")), "y": _base64(numbers.y.to_bytes(size, "big"))}
            return {
                "use": "sig",
                "kty": "EC",
                "kid": self.id,
                "crv": _CURVE_NAMES[algorithm],
                "alg": algorithm,
                **place,
            }
        modulus, exponent = (_base64(n.to_bytes((n.bit_length() + 7) // 8, "big")) for n in (numbers.n, numbers.e))
        return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": algorithm, "n": modulus, "e": exponent}


class SigningKey(NamedTuple):
    key: Any
    public: PublicKey

    def sign(self, payload: bytes) -> str:
        """A JSON Web Token of these claims, with go-jose's header."""
        from jwt.api_jws import PyJWS

        headers = {"kid": self.public.id, "typ": None}
        return PyJWS().encode(payload, self.key, self.public.algorithms[0], headers=headers, sort_headers=True)


class Keys:
    """The keys of a server. `own` is the path of the key that it makes, None: the key lives in memory."""

    def __init__(
        self, verifying: Sequence[PublicKey] = (), signing: SigningKey | None = None, own: Path | None = None
    ) -> None:
        """Without a `signing` key the server makes one."""
        self._verifying = tuple(verifying)
        self._signing = signing
        self._own = own
        self._public: tuple[PublicKey, ...] = ()

    def signing(self) -> SigningKey:
        """The key that signs. Raises OSError, ValueError if the server's own cannot be kept or read."""
        if self._signing is None:
            self._signing = _own_key(self._own)
        return self._signing

    def public(self) -> tuple[PublicKey, ...]:
        """All keys that verify, in order, each once. Raises OSError, ValueError."""
        if not self._public:
            unique = {key.id: key for key in (*self._verifying, self.signing().public)}
            self._public = tuple(unique.values())
        return self._public

    def verify(self, token: Parsed) -> bool:
        """Whether a key has signed a token: the one of its key id, without an id any. Raises LookupError for an unknown id.

        Raises OSError, ValueError for the server's own key.
        """
        keys = [key for key in self.public() if not token.key_id or key.id == token.key_id]
        if not keys:
            raise LookupError(token.key_id)
        return any(_has_signed(key, token) for key in keys)


def _has_signed(key: PublicKey, token: Parsed) -> bool:
    from jwt.api_jws import PyJWS

    if token.algorithm not in key.algorithms:
        return False
    return PyJWS().get_algorithm_by_name(token.algorithm).verify(token.signed, key.key, token.signature)


def read_public_keys(text: bytes) -> list[PublicKey]:
    """The public keys in PEM, in order. Raises ValueError."""
    public = [public_key(key) for block in pem.blocks(text) if (key := _public_of(block)) is not None]
    if not public:
        raise ValueError(NO_PUBLIC_KEY)
    return public


def read_signing_key(text: bytes) -> SigningKey:
    """The first private key in PEM. Raises ValueError."""
    for der in pem.private_keys(text):
        if (key := _private(der)) is not None:
            return SigningKey(key, public_key(key.public_key()))
    raise ValueError(NO_PRIVATE_KEY)


def public_key(key: Any) -> PublicKey:
    """Raises ValueError for a curve that has no algorithm."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    curve = getattr(key, "curve", None)
    if curve is not None and curve.name not in _CURVES:
        raise ValueError("unknown private key curve, must be 256, 384, or 521")
    algorithms = _RSA_ALGORITHMS if curve is None else (_CURVES[curve.name],)
    return PublicKey(_base64(hashlib.sha256(der).digest()), key, algorithms)


def _public_of(block: pem.Block) -> Any:
    """The RSA or ECDSA key of a block of PEM, None if it has none."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        if block.type.endswith("PRIVATE KEY"):
            private = _private(block.content)
            return None if private is None else private.public_key()
        if block.type.endswith("PUBLIC KEY"):
            key: Any = serialization.load_der_public_key(block.content)
        elif block.type == pem.CERTIFICATE:
            key = x509.load_der_x509_certificate(block.content).public_key()
        else:
            return None
    except malformed():
        return None
    return key if isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey) else None


def _private(der: bytes) -> PrivateKey | None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        key = serialization.load_der_private_key(der, None)
    except malformed():
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) else None


def _own_key(path: Path | None) -> SigningKey:
    """The key that the server has made. Of servers that need it at the same time one makes it. Raises OSError, ValueError."""
    if path is None:
        return _new_key(None)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent):
        if not path.exists():
            return _new_key(path)
    try:
        return read_signing_key(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _new_key(path: Path | None) -> SigningKey:
    """Make a key, and keep it in a file. Raises OSError."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private = ec.generate_private_key(ec.SECP256R1())
    if path is not None:
        public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        write_whole(path.with_suffix(".pub"), public, durable=True)
        private_key = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_whole(path, private_key, durable=True)
    return SigningKey(private, public_key(private.public_key()))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
