"""Tokens of service accounts: JSON Web Tokens that this process signs and verifies (RFC 7519, HS256).

A TokenReview returns the account of a token. Every start generates a new key, so a token is valid only until the server
that issued it stops.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from noxu.apiserver.values import Object

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"


class Token(NamedTuple):
    text: str
    expires: datetime


class Tokens:
    """Issues tokens, and verifies them."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def issue(self, account: Object, audiences: Sequence[str], seconds: int, now: datetime) -> Token:
        """Issue a token for a stored service account. Without audiences it is for the server itself."""
        metadata = account["metadata"]
        expires = now.replace(microsecond=0) + timedelta(seconds=seconds)
        claims: Object = {
            "aud": list(audiences) or [ISSUER],
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": ISSUER,
            "jti": secrets.token_hex(16),
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
            "nbf": int(now.timestamp()),
            "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
        }
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return Token(f"{signed}.{self._signature(signed)}", expires)

    def read(self, token: str, now: datetime) -> Object | None:
        """The claims of a token; None if this object has not issued it, or if it is not valid at this time."""
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(signed).encode()):
            return None
        claims: Object = json.loads(_decode(signed.partition(".")[2]))
        return claims if claims["nbf"] <= now.timestamp() < claims["exp"] else None

    def _signature(self, signed: str) -> str:
        digest = hmac.new(self._key, signed.encode("utf-8", "replace"), hashlib.sha256).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _encode(part: Object) -> str:
    return urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
