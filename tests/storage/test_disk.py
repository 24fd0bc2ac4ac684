"""Files are durable, also on macOS, whose fsync(2) is not enough."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from noxu_storage.disk import sync

fcntl = pytest.importorskip("fcntl", reason="platform: fcntl")
FULL = 51


@pytest.mark.parametrize(
    ("platform", "has_full", "error", "expected"),
    [
        ("Linux", False, None, ["fsync"]),
        ("macOS", True, None, ["full"]),
        ("macOS, a file system without it", True, OSError(errno.ENOTTY, "x"), ["full", "fsync"]),
    ],
)
def test_how_a_file_is_synced(
    platform: str,
    has_full: bool,
    error: OSError | None,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    synced = []

    def full(handle: int, command: int) -> None:
        assert command == FULL
        synced.append("full")
        if error:
            raise error

    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    if has_full:
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append("fsync"))
    with (tmp_path / "a").open("wb") as file:
        sync(file.fileno())
    assert synced == expected


def test_a_file_that_cannot_be_synced_is_an_error() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument"):  # fsync(2): "fd is bound to a special file"
            sync(writing)
    finally:
        os.close(reading)
        os.close(writing)
