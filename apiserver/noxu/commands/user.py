"""`noxu user`: make a kubeconfig for another user of a running server.

The kubeconfig has a credential, so a file that is written is readable by its owner only, whatever the umask is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from noxu.commands import calls
from noxu.commands.api_client import ApiClient, RequestError
from noxu.files import write_whole

ANONYMOUS: Final = (
    "kubectl and other clients in Go send no credentials over HTTP, so they are anonymous: start the server with --tls"
)


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses, or the file cannot be written."""
    return calls.answered(options, lambda client: _make(options, client))


def _make(options: argparse.Namespace, client: ApiClient) -> None:
    wanted = {"name": options.name, "groups": options.group, "uid": options.uid}
    user = client.call("POST", "/_noxu/users", value=wanted)
    if options.to is not None:
        _write(options.to, user["kubeconfig"])
    elif options.output == "kubeconfig":
        print(user["kubeconfig"], end="")
    if options.output != "kubeconfig":
        calls.show(user, options.output, lambda: calls.rows_of([user], ("name", "uid", "groups", "url")))
    if user["url"].startswith("http:"):
        calls.complain(ANONYMOUS)


def _write(file: Path, kubeconfig: str) -> None:
    """Raises RequestError."""
    try:
        write_whole(file, kubeconfig.encode())
    except OSError as error:
        raise RequestError(f"{file} cannot be written: {error.strerror or error}") from None
