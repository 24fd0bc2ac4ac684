"""Authentication: from the credentials of a request to its user (pkg/kubeapiserver/authenticator/config.go).

The authenticators are asked in order: the front proxy, the client's certificate, the token in `Authorization`, the token
of a WebSocket. The first that knows the user decides. If none does and one has rejected a credential, the request is
refused: a bad token is not anonymous. If nothing was presented, the user is anonymous, where anonymous users are allowed.

Objects are looked up in the cache. Where several servers share a store, a missing object is looked up again when the
cache has everything that any of them has answered: a token that one has issued is good at the others at once.
(Upstream's token getter asks the store for objects that its informers lack.) A token whose account or object is gone is
accepted until this server knows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from noxu.api import errors
from noxu.api.errors import ApiError, aggregate
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.reader import Reader
from noxu.security import credentials
from noxu.security.credentials import (
    INVALID_TOKEN,
    Credentials,
    Disputable,
    Identity,
    Rejected,
    Token,
    TokenAuthenticator,
    Unloaded,
    with_authenticated,
)
from noxu_storage.types import StoreError

log = logging.getLogger("noxu")

CertificateAuthenticator = Callable[[Credentials], User | None]
"""The user of a certificate, and of the headers that come with it; None without an opinion. Raises Rejected."""

UNAUTHORIZED: Final = "Unauthorized"


class Authenticator(Protocol):
    """Identifies users."""

    allows_anonymous: bool
    """Requests without a certificate and a token are those of ANONYMOUS: they need not be asked about."""

    def authenticate(self, sent: Credentials, warnings: list[str], /) -> User | Awaitable[User]:
        """The user of a request: at once, or when objects have been loaded. Raises ApiError Unauthorized."""
        ...


class Authenticators:
    """The authenticators of a server, in order: an `Authenticator`."""

    def __init__(
        self,
        tokens: Sequence[TokenAuthenticator],
        reader: Reader,
        audiences: Sequence[str],
        *,
        certificates: Sequence[CertificateAuthenticator] = (),
        anonymous: bool = True,
    ) -> None:
        """`audiences` are those of the server. `anonymous`: requests without credentials are allowed."""
        self._tokens = tuple(tokens)
        self._reader = reader
        self._audiences = tuple(audiences)
        self._certificates = tuple(certificates)
        self.allows_anonymous = anonymous

    def authenticate(self, sent: Credentials, warnings: list[str]) -> User | Awaitable[User]:
        """The user of a request: at once, or when objects have been loaded. Raises ApiError Unauthorized."""
        try:
            return self._user(sent, warnings, is_final=not self._reader.store.shared)
        except (Unloaded, Disputable) as unknown:
            return self._look_up_and_authenticate(unknown, sent)

    async def _look_up_and_authenticate(self, unknown: Unloaded | Disputable, sent: Credentials) -> User:
        is_final = not self._reader.store.shared
        while True:
            if isinstance(unknown, Unloaded):
                await self._reader.collection(unknown.resource)
            else:
                is_final = await self._be_consistent()
            try:
                return self._user(sent, [], is_final=is_final)
            except (Unloaded, Disputable) as reason:
                unknown = reason

    async def _be_consistent(self) -> bool:
        """Wait until the cache has what any server has answered. True, also if the store cannot be asked."""
        with suppress(StoreError):
            await self._reader.be_consistent()
        return True

    def _user(self, sent: Credentials, warnings: list[str], *, is_final: bool) -> User:
        """Raises ApiError Unauthorized, Unloaded, Disputable unless `is_final`."""
        rejected: list[str] = []
        for authenticator in self._certificates if sent.chain else ():
            try:
                user = authenticator(sent)
            except Rejected as error:
                rejected.append(str(error))
                continue
            if user is not None:
                return with_authenticated(user)
        try:
            tokens = [credentials.in_authorization(sent.headers, warnings), credentials.in_subprotocol(sent.headers)]
        except Rejected as error:
            rejected.append(str(error))
            tokens = []
        for token in tokens:
            if token is None:
                continue
            try:
                return self._identity(token, self._audiences).user
            except Rejected as error:
                if isinstance(error, Disputable) and not is_final:
                    raise
                rejected.append(str(error))
        if rejected or not self.allows_anonymous:
            log.debug("a request is not authenticated: %s", ", ".join(rejected) or "it has no credentials")
            raise ApiError(401, UNAUTHORIZED, UNAUTHORIZED)
        return ANONYMOUS

    async def identify(self, text: str, audiences: Sequence[str] = ()) -> Identity:
        """The identity of a token for a review; without audiences for those of the server. Raises Rejected, ApiError."""
        token, asked = Token(text), audiences or self._audiences
        while True:
            try:
                return self._identity(token, asked)
            except Unloaded as missing:
                try:
                    await self._reader.collection(missing.resource)
                except StoreError as failure:
                    raise errors.internal_error(f"the storage failed: {failure}") from None
            except Rejected as error:
                # upstream also asks the authenticator of its own loopback client
                raise Rejected(aggregate([INVALID_TOKEN, str(error)])) from None

    def _identity(self, token: Token, audiences: Sequence[str]) -> Identity:
        """Raises Rejected, which may be Disputable, Unloaded."""
        rejected: list[str] = []
        is_disputable = False
        for authenticator in self._tokens:
            try:
                identity = authenticator(token, audiences)
            except Rejected as error:
                rejected.append(str(error))
                is_disputable |= isinstance(error, Disputable)
                continue
            if identity is not None:
                return identity
        raise (Disputable if is_disputable else Rejected)(aggregate(rejected) if rejected else INVALID_TOKEN)
