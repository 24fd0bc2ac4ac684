"""The claims of service account tokens (RFC 7519), bound and legacy ones (pkg/serviceaccount/claims.go, legacy.go).

Only this module takes tokens apart: the keys get the algorithm and the signature that it has read. A text whose header
or payload has a key twice is no token, as in go-jose, because readers differ about which value counts. A token whose
header names extensions that must be understood (`crit`) is never verified.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Final, NamedTuple

import orjson

from noxu.expressions import expression
from noxu.go import json as go_json
from noxu.registry.access import User
from noxu.security.credentials import AUTHENTICATED
from noxu.values import Json, Object

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
MAX_TOKEN: Final = 64 * 1024  # characters of a token that may be one of ours
_COMPACT: Final = expression(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_ACCOUNTS: Final = "system:serviceaccounts"
USER_PREFIX: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/"


class Reference(NamedTuple):
    """An object to which a token is bound."""

    name: str
    uid: str


class TokenClaims(NamedTuple):
    """Times are in seconds since 1970; None: there is none. `audiences` is empty in legacy tokens."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    expires: float | None
    not_before: float | None
    issued_at: float | None
    id: str
    namespace: str
    account: Reference
    pod: Reference | None
    secret: Reference | None
    node: Reference | None
    warn_after: float | None

    @property
    def is_legacy(self) -> bool:
        return self.issuer == LEGACY_ISSUER


class Parsed(NamedTuple):
    """A token that is not verified yet."""

    key_id: str
    issuer: str
    payload: Object
    algorithm: str
    """"" if no key can verify the token."""
    signed: bytes
    """What the signature is about: the encoded header and payload."""
    signature: bytes


def parse(text: str) -> Parsed | None:
    """The parts of a JSON Web Token in its compact form, None if it is none."""
    match = _COMPACT.fullmatch(text) if len(text) <= MAX_TOKEN else None
    if match is None:
        return None
    try:
        header, payload, signature = _object_in(match[1]), _object_in(match[2]), _decoded(match[3])
    except ValueError:
        return None
    key_id, issuer, algorithm = header.get("kid", ""), payload.get("iss", ""), header.get("alg", "")
    if not isinstance(issuer, str):
        return None
    if not isinstance(algorithm, str) or "crit" in header:
        algorithm = ""
    signed = text.rpartition(".")[0].encode("ascii")
    return Parsed(key_id if isinstance(key_id, str) else "", issuer, payload, algorithm, signed, signature)


def _object_in(encoded: str) -> Object:
    """Raises ValueError, also for a key that is there twice."""
    document = go_json.read(_decoded(encoded))
    if document.duplicates or document.error or not isinstance(document.value, dict):
        raise ValueError("it is not an object, or not only one")
    return document.value


def _decoded(encoded: str) -> bytes:
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def read(payload: Object) -> TokenClaims:
    """The claims of a verified token. Raises ValueError."""
    try:
        return _legacy(payload) if payload.get("iss") == LEGACY_ISSUER else _bound(payload)
    except TypeError as error:
        raise ValueError(f"the claims are malformed: {error}") from None


def _bound(payload: Object) -> TokenClaims:
    private = _object(payload.get("kubernetes.io"))
    account = _reference(private.get("serviceaccount"))
    return TokenClaims(
        issuer=_text(payload.get("iss")),
        subject=_text(payload.get("sub")),
        audiences=_texts(payload.get("aud")),
        expires=_number(payload.get("exp")),
        not_before=_number(payload.get("nbf")),
        issued_at=_number(payload.get("iat")),
        id=_text(payload.get("jti")),
        namespace=_text(private.get("namespace")),
        account=account or Reference("", ""),
        pod=_reference(private.get("pod")),
        secret=_reference(private.get("secret")),
        node=_reference(private.get("node")),
        warn_after=_number(private.get("warnafter")) or None,
    )


def _legacy(payload: Object) -> TokenClaims:
    names = {name: _text(payload.get(_LEGACY + name)) for name in _LEGACY_CLAIMS}
    subject = _text(payload.get("sub"))
    if not subject:
        raise ValueError("sub claim is missing")
    for name, shown in _LEGACY_CLAIMS.items():
        if not names[name]:
            raise ValueError(f"{shown} claim is missing")
    namespace, account = names["namespace"], names["service-account.name"]
    if subject != f"{USER_PREFIX}{namespace}:{account}":
        raise ValueError("sub claim is invalid")
    return TokenClaims(
        LEGACY_ISSUER,
        subject,
        _texts(payload.get("aud")),
        _number(payload.get("exp")),
        None,
        None,
        "",
        namespace,
        Reference(account, names["service-account.uid"]),
        pod=None,
        secret=Reference(names["secret.name"], ""),
        node=None,
        warn_after=None,
    )


_LEGACY_CLAIMS: Final = {
    "namespace": "namespace",
    "secret.name": "secretName",
    "service-account.name": "serviceAccountName",
    "service-account.uid": "serviceAccountUID",
}


def user_of(claims: TokenClaims) -> User:
    """The user of a token."""
    extra = {"credential-id": f"JTI={claims.id}" if claims.id else ""}
    if claims.pod is not None:
        extra |= {"pod-name": claims.pod.name, "pod-uid": claims.pod.uid}
    if claims.node is not None:
        extra |= {"node-name": claims.node.name, "node-uid": claims.node.uid}
    return account_user(
        claims.namespace,
        claims.account.name,
        claims.account.uid,
        tuple((_EXTRA + name, (value,)) for name, value in sorted(extra.items()) if value),
    )


def account_user(namespace: str, name: str, uid: str = "", extra: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> User:
    """The user of a service account."""
    return User(f"{USER_PREFIX}{namespace}:{name}", uid, (*account_groups(namespace), AUTHENTICATED), extra)


def account_groups(namespace: str) -> tuple[str, str]:
    return _ACCOUNTS, f"{_ACCOUNTS}:{namespace}"


def legacy_payload(namespace: str, account: Reference, secret: str) -> Object:
    """The claims of the token in a Secret."""
    return {
        "iss": LEGACY_ISSUER,
        "sub": f"{USER_PREFIX}{namespace}:{account.name}",
        f"{_LEGACY}namespace": namespace,
        f"{_LEGACY}secret.name": secret,
        f"{_LEGACY}service-account.name": account.name,
        f"{_LEGACY}service-account.uid": account.uid,
    }


def encode(payload: Object) -> bytes:
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)


def _text(value: Json) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def _texts(value: Json) -> tuple[str, ...]:
    """Audiences: one or a list of them."""
    if isinstance(value, list):
        return tuple(_text(item) for item in value)
    return (_text(value),) if value else ()


def _number(value: Json) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is expected")
    return float(value)


def _object(value: Json) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("an object is expected")
    return value


def _reference(value: Json) -> Reference | None:
    if value is None:
        return None
    reference = _object(value)
    return Reference(_text(reference.get("name")), _text(reference.get("uid")))
