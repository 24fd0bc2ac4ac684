"""The failures of calls of etcd, and advice about their texts for the operators of the servers.

A call fails in one of two ways. `CallRefused`: the server answered with an error. `CallLost`: there is no answer; unless the
request was not sent, the server may have done what was requested.
"""

from __future__ import annotations

import re
from typing import Final


class CallRefused(Exception):
    """The server answered with an error. `code` is the name of gRPC's status code.

    It may have executed the request all the same (see writes.py).
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class CallLost(Exception):
    """There is no answer. `sent`: the request may have reached the server."""

    def __init__(self, text: str, *, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


_ADVICE: Final = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        ("database space exceeded", "compact etcd and defragment its members, then: etcdctl alarm disarm"),
        ("user name is empty", "etcd has users: give --etcd-username and --etcd-password-file"),
        ("authentication failed", "--etcd-username or --etcd-password-file is wrong"),
        ("authentication is not enabled", "etcd has no users: omit --etcd-username and --etcd-password-file"),
        (
            "permission denied",
            "grant the user of --etcd-username a role that may read and write all keys of the prefix",
        ),
        ("no leader|request timed out|[Dd]eadline|no answer", "do most members of etcd run, and reach each other?"),
        ("Hostname mismatch", "use a name in --etcd-servers that is in the certificate of etcd"),
        ("certificate verify failed", "--etcd-cafile has to name the CA of etcd's certificate"),
        (
            "ALERT|alert|after the handshake of TLS",
            "etcd asks for a certificate that it trusts: --etcd-certfile and --etcd-keyfile",
        ),
        ("KEY_VALUES_MISMATCH", "--etcd-keyfile is not the key of --etcd-certfile"),
        ("NO_CERTIFICATE|NO_START_LINE|PEM", "--etcd-cafile, --etcd-certfile and --etcd-keyfile name files in PEM"),
        (
            "cannot connect .*(closed the connection|does not speak)",
            "is this etcd, and is its URL rightly http:// or https://?",
        ),
        ("cannot connect ", "does etcd run, and does --etcd-servers have its address for clients?"),
    )
)


def advised(text: str) -> str:
    """The text of an error, with what to do if that is known."""
    for pattern, advice in _ADVICE:
        if pattern.search(text):
            return f"{text} ({advice})"
    return text
