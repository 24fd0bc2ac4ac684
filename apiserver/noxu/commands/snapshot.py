"""`noxu snapshot` and `noxu restore`: the snapshots of a running server, and files with all objects.

    noxu snapshot create [NAME]    POST /_noxu/snapshots
    noxu snapshot list             GET /_noxu/snapshots
    noxu snapshot delete NAME      DELETE /_noxu/snapshots/NAME
    noxu snapshot save FILE        GET /_noxu/backup
    noxu restore NAME              POST /_noxu/snapshots/NAME/restore
    noxu snapshot FILE.db          without a server: `noxu copy` of a data directory or of etcd into a file

A file that is saved has its name when it is complete, on the disk and verified. It replaces no other.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from noxu.commands import calls, copy
from noxu.commands.api_client import ApiClient, RequestError
from noxu.values import Object
from noxu_storage.database import sync_directory
from noxu_storage.disk import sync
from noxu_storage.snapshot import snapshot
from noxu_storage.types import EVERYTHING, OpenError

PATH: Final = "/_noxu/snapshots"
COLUMNS: Final = ("name", "revision", "time", "keys")


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses, or the file cannot be written."""
    if options.source is not None:
        return copy.run_copy(options)
    return calls.answered(options, lambda client: _ACTIONS[options.action](options, client))


def run_restore(options: argparse.Namespace) -> int:
    """Likewise."""
    return calls.answered(options, lambda client: _restore(options, client))


def _create(options: argparse.Namespace, client: ApiClient) -> None:
    _show(options, client.call("POST", PATH, value={"name": options.value or ""}))


def _list(options: argparse.Namespace, client: ApiClient) -> None:
    listed = client.call("GET", PATH)
    calls.show(listed, options.output, lambda: calls.rows_of(listed["items"], COLUMNS))


def _delete(options: argparse.Namespace, client: ApiClient) -> None:
    _show(options, client.call("DELETE", _path(options.value)))


def _restore(options: argparse.Namespace, client: ApiClient) -> None:
    restored = client.call("POST", f"{_path(options.name)}/restore")
    columns = ("name", "revision", "deleted", "created", "changed")
    calls.show(restored, options.output, lambda: calls.rows_of([restored], columns))


def _show(options: argparse.Namespace, shown: Object) -> None:
    calls.show(shown, options.output, lambda: calls.rows_of([shown], COLUMNS))


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


# -- files -------------------------------------------------------------------------------------------------------------


def _save(options: argparse.Namespace, client: ApiClient) -> None:
    """Raises RequestError."""
    file = Path(options.value)
    try:
        saved = _saved(file, client, {"snapshot": options.of} if options.of else None)
    except OSError as error:
        raise RequestError(f"{file} cannot be written: {error.strerror or error}") from None
    except OpenError as error:
        raise RequestError(f"{file} is not written, what the server has sent is damaged: {error}") from None
    calls.show(saved, options.output, lambda: calls.rows_of([saved], ("file", "revision", "keys")))


def _saved(file: Path, client: ApiClient, query: dict[str, str | int] | None) -> Object:
    """Raises RequestError, OSError, OpenError."""
    if file.exists():
        raise RequestError(f"{file} exists; name another file")
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".incomplete", dir=file.parent)  # mode 0600
    incomplete = Path(name)
    try:
        with open(handle, "wb") as written:  # noqa: PTH123 - it is open already
            written.writelines(client.download("/_noxu/backup", query))
            written.flush()
            sync(written.fileno())
        with snapshot(incomplete) as state:
            saved: Object = {"file": str(file), "revision": state.revision, "keys": state.count(EVERYTHING)}
        try:
            os.link(incomplete, file)
        except FileExistsError:
            raise RequestError(f"{file} exists; name another file") from None
        except OSError:  # a file system without links
            incomplete.rename(file)
        sync_directory(file.parent)
    finally:
        incomplete.unlink(missing_ok=True)
    return saved


_ACTIONS: Final = {"create": _create, "list": _list, "delete": _delete, "save": _save}
