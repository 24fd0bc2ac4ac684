"""Certificates with their keys that are in memory, for `ssl`, which reads them only from files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def load(context: ssl.SSLContext, certificate: bytes, key: bytes, password: Callable[[], str] | None = None) -> None:
    """Load a certificate and its key, in PEM, into a context. Raises ssl.SSLError, OSError, and what `password` raises.

    The directory of the files is readable by its owner only, and gone after the call. `password` is called if the key is
    encrypted; without it OpenSSL would ask on the terminal.
    """
    with tempfile.TemporaryDirectory(prefix="noxu-") as directory:
        files = Path(directory, "certificate"), Path(directory, "key")
        for file, content in zip(files, (certificate, key), strict=True):
            file.write_bytes(content)
        context.load_cert_chain(*files, password=password)
