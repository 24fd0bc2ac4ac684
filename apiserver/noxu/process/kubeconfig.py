"""The kubeconfig of a running server. It is written atomically: when the file exists, the server is ready."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from noxu.config import Config, StartError
from noxu.files import in_use, is_in_use, write_whole
from noxu.process.limits import sentence
from noxu.security.kubeconfig import Access, text
from noxu.values import Json

MAX_SIZE: Final = 64 * 1024
"""Bytes of a file that may be one of ours."""


def is_own(path: Path) -> bool:
    """Whether a file was written by `write_kubeconfig` and is unchanged, or is empty. Raises OSError.

    Other programs merge kubeconfigs, and people edit them. Only the exact text that a server writes is sure to be from one.
    """
    with os.fdopen(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb"
    ) as file:  # a FIFO would wait for a writer
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        content = file.read(MAX_SIZE)
    try:
        return not content or content == text(_access_in(json.loads(content))).encode()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _access_in(value: Json) -> Access:
    """What a kubeconfig of ours was made of. Raises ValueError, LookupError, TypeError, AttributeError for others."""
    cluster, user = value["clusters"][0]["cluster"], value["users"][0]["user"]
    if not isinstance(user.get("token", ""), str):
        raise TypeError("a token is a text")
    return Access(
        cluster["server"],
        base64.b64decode(cluster.get("certificate-authority-data", "")),
        base64.b64decode(user.get("client-certificate-data", "")),
        base64.b64decode(user.get("client-key-data", "")),
        user.get("token", ""),
    )


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write the kubeconfig, readable by its owner only: it has a credential. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text(access).encode())


# -- its life: a place, a claim, the file ------------------------------------------------------------------------------


@contextlib.contextmanager
def place_of_kubeconfig(config: Config) -> Iterator[Path]:
    """The path of the kubeconfig. Raises StartError if the file exists and was not written by Noxu."""
    temporary = None
    path = config.kubeconfig
    if path is None and config.data is not None:
        path = config.data / "kubeconfig"
    if path is None:
        try:
            temporary = tempfile.mkdtemp(prefix="noxu-")
        except OSError as error:
            why = sentence(error)
            raise StartError(f"there is no place for the kubeconfig: {why}; or choose one with --kubeconfig") from None
        path = Path(temporary) / "kubeconfig"
    try:
        with _naming_kubeconfig(path):
            if path.exists() and not is_own(path):
                raise StartError(
                    f"{path} exists and was not written by Noxu, so it is not overwritten; choose another --kubeconfig"
                )
        yield path
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def claim_kubeconfig(path: Path) -> None:
    """Remove a kubeconfig of an earlier server. Raises StartError if that server is running.

    Only a server that has its address and its data does so: one that cannot start leaves the file to the one that runs.
    """
    if is_in_use(path):
        raise StartError(f"{path} is the kubeconfig of a server that is running; choose another --kubeconfig")
    with _naming_kubeconfig(path):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def published(path: Path, access: Access) -> Iterator[None]:
    """Write the kubeconfig, and remove it at the end. Meanwhile other servers find it in use. Raises StartError."""
    with contextlib.ExitStack() as use:
        try:
            write_kubeconfig(path, access)
            use.enter_context(in_use(path))
        except OSError as error:
            raise StartError(
                f"cannot write the kubeconfig {path}: {error.strerror}; choose another --kubeconfig"
            ) from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if is_own(path):  # another program may have replaced it
                    path.unlink()


@contextlib.contextmanager
def _naming_kubeconfig(path: Path) -> Iterator[None]:
    """Raises StartError for an OSError."""
    try:
        yield
    except NotADirectoryError:
        pass  # writing the kubeconfig reports it
    except OSError as error:
        raise StartError(f"cannot write the kubeconfig {path}: {error.strerror}; choose another --kubeconfig") from None
