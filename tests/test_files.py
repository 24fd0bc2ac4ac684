"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from noxu.files import in_use, is_in_use, locked, write_whole


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o377])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
@pytest.mark.parametrize("durable", [False, True])
def test_a_file_has_its_mode_under_every_umask(tmp_path: Path, umask: int, mode: int, durable: bool) -> None:
    path = tmp_path / "file"
    before = os.umask(umask)
    try:
        for content in (b"old", b"new"):
            write_whole(path, content, mode, durable=durable)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_replaced_stays_and_nothing_else_remains(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(path, b"new")
    assert path.is_dir()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_in_use_while_somebody_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert not is_in_use(path)
    with in_use(path):
        assert is_in_use(path)
        with in_use(path):
            pass
        assert is_in_use(path), "another user does not end the use"
    assert not is_in_use(path)


def test_a_file_that_is_absent_or_has_been_replaced_is_not_in_use(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert not is_in_use(path)
    with in_use(path):
        assert not path.exists()
    path.touch()
    with in_use(path):
        write_whole(path, b"new")
        assert not is_in_use(path)


def test_a_platform_without_locks_and_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Windows: files are written, and nothing is known about their use."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.delattr(os, "fchmod")
    path = tmp_path / "file"
    write_whole(path, b"new")
    with in_use(path), locked(tmp_path):
        assert not is_in_use(path)
    assert path.read_bytes() == b"new"
