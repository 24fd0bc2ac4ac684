"""Tokens of service accounts: issued, and checked each time they are presented (pkg/serviceaccount/jwt.go and claims.go).

A token is checked in this order: its issuer (another one: no opinion), its signature, its audiences, its times, the account
with its uid, and the object to which it is bound. A signature is verified once: the cache has the claims by the digest of
the token. Everything else is checked for each request, from memory.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from noxu.api import codec, errors
from noxu.clock import Clock
from noxu.config import DEFAULT_ISSUER
from noxu.go.text import quote_list
from noxu.go.time import unix_nanos
from noxu.identifiers import new_uuid
from noxu.registry.reader import Reader, key_of
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.registry.stored_object import StoredObject
from noxu.security import claims as of_tokens
from noxu.security.claims import LEGACY_ISSUER, Reference, TokenClaims
from noxu.security.credentials import Disputable, Identity, Rejected, Token, Unloaded
from noxu.security.keys import BAD_SIGNATURE, Keys
from noxu.values import Object
from noxu_storage.types import Key

LEEWAY: Final = 60.0  # seconds for which clocks may differ; go-jose's DefaultLeeway
MAX_CACHED: Final = 2048  # verified tokens
NO_KEYS: Final = "invalid signature, no keys found"
INVALIDATED: Final = "service account token has been invalidated"
_DAY: Final = 86_400.0  # seconds
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"

log = logging.getLogger("noxu")


class Bound(NamedTuple):
    """The objects to which a token is bound."""

    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


UNBOUND: Final = Bound()


@dataclass(slots=True)
class _Verified:
    """A token whose signature is good. `entries` are the objects that have been found good for it."""

    claims: TokenClaims
    identity: Identity
    needed: tuple[tuple[Resource, Key, Reference], ...]
    """The objects that must exist: first the account."""
    entries: tuple[StoredObject, ...] = field(default=())
    until: float = math.inf
    """When they have to be checked again, although they are the same, in seconds since 1970: a legacy token every day."""


class Tokens:
    """Issues tokens, and is a `TokenAuthenticator`."""

    def __init__(
        self,
        keys: Keys,
        reader: Reader,
        served_resources: ServedResources,
        clock: Clock,
        *,
        issuers: Sequence[str] = (),
        audiences: Sequence[str] = (),
        lookup: bool = True,
        max_seconds: int = 0,
    ) -> None:
        """The first issuer issues. `audiences` are those of the server, by default the issuers.

        `lookup`: a legacy token needs its Secret and its account. `max_seconds`: for which a token is valid; 0: no limit.
        """
        self.max_seconds = max_seconds
        self.keys = keys
        self.issuers = tuple(issuers) or (DEFAULT_ISSUER,)
        self.audiences = tuple(audiences) or self.issuers
        self._reader = reader
        self._clock = clock
        self._lookup = lookup
        self.used: Callable[[str, str], object] = _untracked
        """Called with the namespace and name of a Secret when its token, a legacy one, is used: at most once a day."""
        self._verified: dict[bytes, _Verified] = {}
        self._accounts, self._pods, self._secrets, self._nodes = (
            _core(served_resources, plural) for plural in ("serviceaccounts", "pods", "secrets", "nodes")
        )

    # -- issuing

    def issue(
        self,
        account: Object,
        audiences: Sequence[str],
        seconds: int,
        bound: Bound = UNBOUND,
        warn_after: int = 0,
        token_id: str = "",
    ) -> str:
        """A token for a stored service account. Raises ApiError if there is no key."""
        metadata, now = account["metadata"], int(self._clock.now().timestamp())
        private: Object = {"namespace": metadata["namespace"], "serviceaccount": _claim(_reference(account))}
        private |= {name: _claim(reference) for name, reference in bound._asdict().items() if reference is not None}
        if warn_after:
            private["warnafter"] = now + warn_after
        payload: Object = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuers[0],
            "jti": token_id or new_uuid(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"{of_tokens.USER_PREFIX}{metadata['namespace']}:{metadata['name']}",
        }
        return self._sign(payload)

    def issue_legacy(self, account: Object, secret: str) -> str:
        """The token for a Secret of a stored service account, which never expires. Raises ApiError if there is no key."""
        return self._sign(of_tokens.legacy_payload(account["metadata"]["namespace"], _reference(account), secret))

    def _sign(self, payload: Object) -> str:
        try:
            return self.keys.signing().sign(of_tokens.encode(payload))
        except (OSError, ValueError) as error:
            log.error("no key signs tokens of service accounts: %s", error)  # noqa: TRY400 - not a bug
            raise errors.internal_error("failed to generate token: the server has no key, see its log") from None

    # -- checking

    def __call__(self, token: Token, audiences: Sequence[str]) -> Identity | None:
        verified = self._verified.get(token.digest) or self._verify(token)
        if verified is None:
            return None
        claims = verified.claims
        own = claims.audiences or self.audiences
        common = tuple(audience for audience in audiences if audience in own)
        if not common:
            raise Rejected(
                f"token audiences {quote_list(own)} is invalid for the target audiences {quote_list(audiences)}"
            )
        now = self._clock.now().timestamp()
        _check_times(claims, now)
        self._check_objects(verified, token, now)
        return verified.identity if verified.identity.audiences == common else Identity(verified.identity.user, common)

    def _verify(self, token: Token) -> _Verified | None:
        parsed = of_tokens.parse(token.text)
        if parsed is None or (parsed.issuer not in self.issuers and parsed.issuer != LEGACY_ISSUER):
            return None
        try:
            is_signed = self.keys.verify(parsed)
        except LookupError:
            raise Rejected(NO_KEYS) from None
        except (OSError, ValueError) as error:
            log.error("no key verifies tokens of service accounts: %s", error)  # noqa: TRY400 - not a bug
            raise Rejected(NO_KEYS) from None
        if not is_signed:
            raise Rejected(BAD_SIGNATURE)
        try:
            claims = of_tokens.read(parsed.payload)
        except ValueError as error:
            raise Rejected(str(error)) from None
        verified = _Verified(claims, Identity(of_tokens.user_of(claims), self.audiences), tuple(self._needed(claims)))
        if len(self._verified) >= MAX_CACHED:
            del self._verified[next(iter(self._verified))]  # the oldest
        self._verified[token.digest] = verified
        return verified

    def _check_objects(self, verified: _Verified, token: Token, now: float) -> None:
        """Raises Disputable if the account or the bound object is gone, or is another one; Unloaded."""
        entries = tuple(map(self._find, verified.needed))
        if entries == verified.entries and now < verified.until:
            return
        claims = verified.claims
        try:
            if claims.is_legacy:
                self._check_legacy(claims, token, entries[0], entries[1])
                verified.until = now - now % _DAY + _DAY
            else:
                for (resource, _, reference), entry in zip(verified.needed, entries, strict=True):
                    self._check_object(claims, resource, reference, entry, now)
        except Rejected as error:
            raise Disputable(str(error)) from None
        read = tuple(entry for entry in entries if entry is not None)
        if not any("deletionTimestamp" in _metadata(entry) for entry in read):
            verified.entries = read

    def _needed(self, claims: TokenClaims) -> Iterator[tuple[Resource, Key, Reference]]:
        """The objects that must exist for a token to be good: first the account."""
        if claims.is_legacy and not self._lookup:
            return
        named = [(self._accounts, claims.account), (self._secrets, claims.secret), (self._pods, claims.pod)]
        if claims.pod is None:  # the node of a pod is for information
            named.append((self._nodes, claims.node))
        for resource, reference in named:
            if reference is not None:
                namespace = claims.namespace if resource.namespaced else ""
                yield resource, key_of(resource, namespace, reference.name), reference

    def _find(self, needed: tuple[Resource, Key, Reference]) -> StoredObject | None:
        """Raises Unloaded."""
        collection = self._reader.loaded(needed[0])
        if collection is None:
            raise Unloaded(needed[0])
        return collection.entries.get(needed[1])

    def _check_object(
        self, claims: TokenClaims, resource: Resource, reference: Reference, entry: StoredObject | None, now: float
    ) -> None:
        is_account = resource is self._accounts
        if entry is None:
            missing = errors.not_found(resource.group_resource, reference.name).message
            raise Rejected(missing if is_account else INVALIDATED)
        metadata = _metadata(entry)
        uid = metadata.get("uid", "")
        if uid != reference.uid:
            kind = resource.kind.lower()
            raise Rejected(
                f"service account UID ({uid}) does not match claim ({reference.uid})"
                if is_account
                else f"{kind} UID ({uid}) does not match service account {kind} ref claim ({reference.uid})"
            )
        deleted = metadata.get("deletionTimestamp")
        if deleted and unix_nanos(deleted) / 1e9 < now - LEEWAY:
            gone = f"service account {claims.namespace}/{reference.name} has been deleted"
            raise Rejected(gone if is_account else INVALIDATED)

    def _check_legacy(
        self, claims: TokenClaims, token: Token, account: StoredObject | None, secret: StoredObject | None
    ) -> None:
        assert claims.secret is not None
        stored: Object = {} if secret is None else codec.decode_stored(secret.stored)
        if not stored or "deletionTimestamp" in stored["metadata"]:
            raise Rejected("Token has been invalidated")
        if not hmac.compare_digest(_data(stored, "token"), token.text.encode("utf-8", "surrogateescape")):
            raise Rejected("Token does not match server's copy")
        name = claims.account.name
        if account is None:
            raise Rejected(errors.not_found(self._accounts.group_resource, name).message)
        metadata = _metadata(account)
        if "deletionTimestamp" in metadata:
            raise Rejected(f"ServiceAccount {claims.namespace}/{name} has been deleted")
        if metadata.get("uid", "") != claims.account.uid:
            raise Rejected(
                f"ServiceAccount UID ({metadata.get('uid', '')}) does not match claim ({claims.account.uid})"
            )
        self.used(claims.namespace, claims.secret.name)
        if (stored["metadata"].get("labels") or {}).get(INVALID_SINCE):
            raise Rejected(
                f"the token in secret {claims.namespace}/{claims.secret.name} for service account {claims.namespace}/{name} "
                "has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or "
                f"remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )


def _untracked(namespace: str, name: str) -> None:
    """The use of legacy tokens is not recorded."""


def _check_times(claims: TokenClaims, now: float) -> None:
    """Raises Rejected."""
    if claims.not_before is not None and now + LEEWAY < claims.not_before:
        raise Rejected("service account token is not valid yet")
    if claims.expires is not None and now - LEEWAY > claims.expires:
        raise Rejected("service account token has expired")
    if claims.issued_at is not None and now + LEEWAY < claims.issued_at:
        raise Rejected("service account token is issued in the future")


def _core(served_resources: ServedResources, plural: str) -> Resource:
    resource = served_resources.find("", "v1", plural)
    assert resource is not None
    return resource


def _metadata(entry: StoredObject) -> Object:
    metadata: Object = codec.decode_stored(entry.stored)["metadata"]
    return metadata


def _data(secret: Object, name: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "")
    except (binascii.Error, ValueError):
        return b""


def _reference(value: Object) -> Reference:
    return Reference(value["metadata"]["name"], value["metadata"]["uid"])


def _claim(reference: Reference) -> Object:
    return {name: value for name, value in reference._asdict().items() if value}
