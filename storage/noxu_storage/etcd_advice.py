"""What the errors of etcd mean for who runs the servers: texts of etcd, of OpenSSL and of the client, with what to do."""

from __future__ import annotations

import re
from typing import Final

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
        ("Hostname mismatch|IP address mismatch", "use a name in --etcd-servers that is in the certificate of etcd"),
        ("certificate verify failed", "--etcd-cafile has to name the CA of etcd's certificate"),
        (r"ALERT|alert", "etcd asks for a certificate that it trusts: --etcd-certfile and --etcd-keyfile"),
        ("KEY_VALUES_MISMATCH", "--etcd-keyfile is not the key of --etcd-certfile"),
        ("NO_CERTIFICATE|NO_START_LINE|PEM", "--etcd-cafile, --etcd-certfile and --etcd-keyfile name files in PEM"),
        (
            "cannot connect .*(closed the connection|reset by peer|WRONG_VERSION|does not speak)",
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
