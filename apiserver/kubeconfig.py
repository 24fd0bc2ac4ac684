"""The kubeconfig of a running server. It is written atomically: when the file exists, the server is ready."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from noxu.apiserver.values import Object


def kubeconfig(url: str) -> Object:
    """A kubeconfig for the server at `url`.

    `insecure-skip-tls-verify` has no effect over http, but the Node client refuses `http://` without it.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "noxu",
        "clusters": [{"name": "noxu", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "noxu", "user": {}}],
        "contexts": [{"name": "noxu", "context": {"cluster": "noxu", "user": "noxu", "namespace": "default"}}],
    }


MAX_SIZE: Final = 64 * 1024
"""Bytes of a file that may be one of ours."""


def text(url: str) -> str:
    """The content of the file: JSON, which is also YAML."""
    return json.dumps(kubeconfig(url), indent=2) + "\n"


def is_own(path: Path) -> bool:
    """Whether a file was written by `write_kubeconfig` and is unchanged, or is empty. Raises OSError.

    Other programs merge kubeconfigs, and people edit them. Only the exact text that a server writes is sure to be from one.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a FIFO would wait for a writer
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        found = file.read(MAX_SIZE)
    try:
        return not found or found == text(json.loads(found)["clusters"][0]["cluster"]["server"]).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        return False


def write_kubeconfig(path: Path, url: str) -> None:
    """Write the kubeconfig, readable by its owner only. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text(url))
        os.replace(temporary, path)  # noqa: PTH105 - atomic on every platform
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
