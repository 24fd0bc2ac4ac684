"""What a tenant has of its parent: a server of its own beside another one, in its process and event loop.

A tenant is never more open than its parent: it listens at the same address, speaks TLS if its parent does, and has the same
modes of authorization. The users that the parent knows by files, front proxies and client certificates are known to it too,
and may do what its own roles say. What a tenant makes itself is worth nothing elsewhere: it signs the tokens of its service
accounts with a key of its own, and the certificates of its users with a CA of its own, which only it trusts. So its
administrator, who may sign any name in it, is nobody for its parent and for other tenants. The certificate with which it
serves is its parent's, so clients need one CA for all.

Its objects are in memory. It has no tenants, loads no files, and leaves none: audit log, kubeconfig and data directory are
those of its parent.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from noxu.config import Audit, Config, LeaderElection
from noxu.process.certificates import Secured
from noxu.process.listeners import Listeners, parse
from noxu.security import settings
from noxu.security.certificates import new_authority
from noxu.security.keys import Keys
from noxu.security.pki import Pki

STOP_WITHIN: Final = 0.0
"""Seconds for requests in flight: a tenant ends when its answers are needed no more."""


def config_of(parent: Config, listeners: Listeners) -> Config:
    """The configuration of a tenant: its parent's, but for its data, its files and its process."""
    is_inherited = any(parse(place).kind == "fd" for place in parent.listen)
    return dataclasses.replace(
        parent,
        host=listeners.address if is_inherited else parent.host,
        port=0,
        listen=(),
        data=None,
        etcd=None,
        leader_election=LeaderElection(enabled=False),
        kubeconfig=None,
        merged_context="",
        files=(),
        kustomizations=(),
        watch=False,
        audit=Audit(),
        exit_with_parent=False,
        cluster_signing_cert_file=None,  # what it signs would be worth something elsewhere
        cluster_signing_key_file=None,
        stop_within=STOP_WITHIN,
        faults=None,
        latency="",
        presets=(),
        fault_rules=(),
        initial=None,
    )


def authentication_of(parent: settings.Settings) -> settings.Settings:
    """How a tenant identifies users, besides their certificates: as its parent, but with a key of its own for tokens."""
    return parent._replace(keys=Keys())


def secured_of(parent: Secured | None) -> Secured | None:
    """TLS with the certificate of the parent, for its clients and those of a CA that only the tenant trusts. Raises TlsError."""
    if parent is None:
        return None
    authority = new_authority()
    tls = parent.tls.trusting(authority.certificate)
    return Secured(tls, lambda: Pki(authority, tls.default), parent.certificate_authority)
