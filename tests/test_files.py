"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from noxu.apiserver.files import write_whole


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
