"""Users of a front proxy: it has a client certificate, and names its user in headers
(pkg/authentication/request/headerrequest).

Headers count only with a certificate of the proxy's CA, whose name is allowed; without one they mean nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from multidict import MultiMapping

from noxu.registry.access import User
from noxu.security.client_certificates import Authorities, verified
from noxu.security.credentials import Credentials, Rejected, valid_text
from noxu.security.impersonation import extra_key


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """A `CertificateAuthenticator`. `names` are the common names that are allowed, empty: all."""

    authorities: Authorities
    names: Sequence[str]
    user_headers: Sequence[str]
    uid_headers: Sequence[str]
    group_headers: Sequence[str]
    extra_prefixes: Sequence[str]
    now: Callable[[], float] = time.time

    def __call__(self, given: Credentials) -> User | None:
        """None if the proxy names no user. Raises Rejected."""
        name = verified(given.chain, self.authorities(), self.now()).common_name
        if self.names and name not in self.names:
            raise Rejected("x509: the subject is not in the allowed list")
        user = _first(given.headers, self.user_headers)
        if not user:
            return None
        groups = tuple(value for header in self.group_headers for value in _values(given.headers, header) if value)
        return User(user, _first(given.headers, self.uid_headers), groups, _extra(given.headers, self.extra_prefixes))


def _values(headers: MultiMapping[str], name: str) -> Iterator[str]:
    return map(valid_text, headers.getall(name, []))


def _first(headers: MultiMapping[str], names: Sequence[str]) -> str:
    """The first header of the first name that is not empty."""
    return next((value for name in names for value in list(_values(headers, name))[:1] if value), "")


def _extra(headers: MultiMapping[str], prefixes: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for prefix in prefixes:
        for name, value in headers.items():
            if name.lower().startswith(prefix.lower()):
                found.setdefault(extra_key(valid_text(name)[len(prefix) :]), []).append(valid_text(value))
    return tuple((key, tuple(values)) for key, values in sorted(found.items()))
