"""`noxu tenant`: create, list, show and delete the tenants of a running server (`noxu.control.tenants`).

A kubeconfig has a credential, so a file that is written is readable by its owner only, whatever the umask is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from noxu.commands import calls
from noxu.commands.api_client import ApiClient, RequestError
from noxu.files import write_whole
from noxu.manifests import documents
from noxu.manifests.files import LoadError
from noxu.values import Object

PATH: Final = "/_noxu/tenants"
COLUMNS: Final = ("name", "url", "from", "created", "expires", "hold")


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses, or a file cannot be read or written."""
    return calls.answered(options, lambda client: ACTIONS[options.action](options, client))


def _list(options: argparse.Namespace, client: ApiClient) -> None:
    listed = client.call("GET", PATH)
    calls.show(listed, options.output, lambda: calls.rows_of(listed["items"], COLUMNS))


def _create(options: argparse.Namespace, client: ApiClient) -> None:
    source = {"snapshot": options.snapshot} if options.snapshot else "empty" if options.empty else "template"
    wanted: Object = {"from": source, "manifests": _read(options.files)}
    wanted |= {"name": options.names[0]} if options.names else {}
    wanted |= {"ttl": options.ttl} if options.ttl else {}
    _show(client.call("POST", PATH, value=wanted), options)


def _get(options: argparse.Namespace, client: ApiClient) -> None:
    _show(client.call("GET", f"{PATH}/{options.names[0]}"), options)


def _delete(options: argparse.Namespace, client: ApiClient) -> None:
    deleted = [client.call("DELETE", f"{PATH}/{name}") for name in options.names]
    calls.show({"items": deleted}, options.output, lambda: calls.rows_of(deleted, COLUMNS))


ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace, ApiClient], None]]] = {
    "list": _list,
    "create": _create,
    "get": _get,
    "delete": _delete,
}
"""By what is done, those of `arguments.control.TENANT_ACTIONS`."""


def _show(tenant: Object, options: argparse.Namespace) -> None:
    """Print a tenant, or write its kubeconfig and print the path. Raises RequestError."""
    if options.to is not None:
        try:
            write_whole(options.to, tenant["kubeconfig"].encode())
        except OSError as error:
            raise RequestError(f"{options.to} cannot be written: {error.strerror or error}") from None
    if options.output != "kubeconfig":
        calls.show(tenant, options.output, lambda: calls.rows_of([tenant], COLUMNS))
    else:
        print(options.to if options.to is not None else tenant["kubeconfig"].rstrip("\n"))


def _read(files: list[Path]) -> list[Object]:
    """The objects of files. Raises RequestError."""
    try:
        return [document.value for document in documents.checked(documents.read_paths(files))]
    except LoadError as error:
        raise RequestError(str(error)) from None
