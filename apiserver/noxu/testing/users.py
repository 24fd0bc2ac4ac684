"""Users of a server for a test, and the credentials of their clients.

Over HTTP a user has a random token, over TLS a client certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from noxu.files import write_whole
from noxu.process.kubeconfig import write_kubeconfig
from noxu.process.server import Server
from noxu.registry.access import User
from noxu.security.kubeconfig import Access
from noxu.testing.session import Session
from noxu.testing.verbs import Verbs


@dataclass(slots=True, eq=False)
class TestUser(Verbs):
    """A user of a running server: what it may do is tested with its verbs, `jane.get("secrets", "a")`.

    `kubeconfig` is for kubectl and client libraries. For other clients there are `url`, and `headers` over HTTP or the files
    `certificate_authority`, `certificate` and `key` (PEM) over TLS, which are None over HTTP.
    """

    __test__ = False  # pytest would take the class for one of tests

    name: str
    groups: tuple[str, ...]
    url: str
    kubeconfig: Path
    _session: Session = field(repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    certificate_authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def make(
    running: Server,
    directory: Path,
    name: str,
    groups: Iterable[str],
    uid: str,
    session_of: Callable[[Access], Session],
) -> TestUser:
    """A user, whose files are written to the directory. Raises ValueError for a name that no certificate can have."""
    groups = tuple(groups)
    access = running.access_of(User(name, uid, groups))
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, access)
    user = TestUser(name, groups, running.url, kubeconfig, session_of(access))
    if access.token:
        user.headers["Authorization"] = f"Bearer {access.token}"
        return user
    user.certificate_authority, user.certificate, user.key = (
        directory / file for file in ("ca.crt", "client.crt", "client.key")
    )
    write_whole(user.certificate_authority, access.certificate_authority)
    write_whole(user.certificate, access.client_certificate)
    write_whole(user.key, access.client_key)
    return user
