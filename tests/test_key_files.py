"""A certificate and its key are loaded from memory, and no file remains."""

from __future__ import annotations

import ssl
import stat
import tempfile
from pathlib import Path

import pytest

from noxu import files
from noxu.security.pki import in_memory
from tests.clocks import ManualClock


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_files_are_for_their_owner_only_and_do_not_remain(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = in_memory(["localhost"], ManualClock().now).server
    modes: list[int] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile, keyfile=None, password=None):  # type: ignore[no-untyped-def]
            modes.append(stat.S_IMODE(certfile.parent.stat().st_mode))
            super().load_cert_chain(certfile, keyfile, password)

    files.load_certificate(Context(ssl.PROTOCOL_TLS_SERVER), identity.certificate, identity.key)
    assert modes == [0o700]
    assert list(temporary.iterdir()) == []


def test_what_cannot_be_loaded_leaves_no_file(temporary: Path) -> None:
    with pytest.raises(ssl.SSLError):
        files.load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), b"no certificate", b"no key")
    assert list(temporary.iterdir()) == []
