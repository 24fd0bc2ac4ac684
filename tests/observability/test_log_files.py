"""Rotated files: their names, which of them remain, and what happens to a file that others change."""

from __future__ import annotations

import gzip
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from noxu.observability import log_files
from noxu.observability.log_files import RotatingFile, Rotation, StandardOutput, backups, clean

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)
LINE = b"0123456\n"


class File:
    """A rotating file in a directory, and a time that the test sets."""

    def __init__(self, path: Path, **rotation: Any) -> None:
        self.now = NOW
        self.path = path
        self.file = RotatingFile(path, Rotation(**rotation), now=lambda: self.now)
        self.file.open()

    def write(self, *lines: bytes) -> int:
        left_out = self.file.write(lines)
        self.settle()
        return left_out

    def settle(self) -> None:
        if self.file._cleaning is not None:
            self.file._cleaning.join()

    @property
    def names(self) -> list[str]:
        return sorted(found.name for found in self.path.parent.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.log"


def test_the_file_and_its_directory_are_the_owners(path: Path) -> None:
    File(path).write(LINE)
    assert path.read_bytes() == LINE
    assert [found.stat().st_mode & 0o777 for found in (path.parent, path)] == [0o700, 0o600]


def test_a_full_file_is_renamed_with_the_time(path: Path) -> None:
    file = File(path, max_size=20)
    file.write(LINE, LINE, LINE)
    assert file.names == ["audit-2026-01-02T03-04-05.678.log", "audit.log"]
    assert [(path.parent / name).read_bytes() for name in file.names] == [LINE * 2, LINE]


def test_two_rotations_within_a_millisecond_lose_nothing(path: Path) -> None:
    file = File(path, max_size=8)
    file.write(LINE, LINE, LINE)
    assert file.names == ["audit-2026-01-02T03-04-05.678.log", "audit-2026-01-02T03-04-05.679.log", "audit.log"]


def test_without_a_size_the_file_grows(path: Path) -> None:
    file = File(path, max_size=0)
    file.write(*[LINE] * 1000)
    assert file.names == ["audit.log"]


def test_a_line_that_no_file_holds_is_left_out(path: Path) -> None:
    file = File(path, max_size=20)
    assert file.write(LINE, b"x" * 30 + b"\n", LINE) == 1
    assert path.read_bytes() == LINE * 2


def test_the_newest_files_remain(path: Path) -> None:
    file = File(path, max_size=8, max_backups=2)
    for second in range(5):
        file.now = NOW + timedelta(seconds=second)
        file.write(LINE)
    assert file.names == ["audit-2026-01-02T03-04-08.678.log", "audit-2026-01-02T03-04-09.678.log", "audit.log"]


def test_old_files_are_removed(path: Path) -> None:
    file = File(path, max_size=8, max_age=1, max_backups=0)
    for hours in (0, 1, 30):
        file.now = NOW + timedelta(hours=hours)
        file.write(LINE)
    assert file.names == ["audit-2026-01-03T09-04-05.678.log", "audit.log"]


def test_rotated_files_are_compressed(path: Path) -> None:
    file = File(path, max_size=8, compress=True)
    file.write(LINE, LINE)
    assert file.names == ["audit-2026-01-02T03-04-05.678.log.gz", "audit.log"]
    assert gzip.decompress((path.parent / file.names[0]).read_bytes()) == LINE


def test_a_file_that_is_rotated_during_a_cleaning_is_cleaned_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, rotated = threading.Event(), threading.Event()

    def backups_before_rotation(path: Path) -> list[tuple[datetime, Path]]:
        found = backups(path)
        listed.set()
        assert rotated.wait(60)
        return found

    monkeypatch.setattr(log_files, "backups", backups_before_rotation)
    file = File(path, max_size=8, compress=True)
    assert listed.wait(60)
    file.file.write((LINE, LINE))
    rotated.set()
    file.settle()
    assert file.names == ["audit-2026-01-02T03-04-05.678.log.gz", "audit.log"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_cleaning_that_failed_there_are_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path) -> list[tuple[datetime, Path]]:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(log_files, "backups", failing)
        file = File(path, max_size=8, compress=True)
        file.settle()
    file.write(LINE, LINE)
    assert file.names == ["audit-2026-01-02T03-04-05.678.log.gz", "audit.log"]


def test_a_file_and_its_compressed_form_count_once(path: Path) -> None:
    path.parent.mkdir()
    for name in (
        "audit-2026-01-02T03-04-05.678.log",
        "audit-2026-01-02T03-04-05.678.log.gz",
        "audit-2026-01-01T00-00-00.000.log",
    ):
        (path.parent / name).write_bytes(LINE)
    clean(path, Rotation(max_backups=2), NOW)
    assert len(backups(path)) == 3
    clean(path, Rotation(max_backups=1), NOW)
    assert len(backups(path)) == 2


@pytest.mark.parametrize(
    "name",
    [
        "audit-2026-01-02T03-04-05.log",
        "audit-2026-13-02T03-04-05.678.log",
        "audit-2026-01-02T03-04-05.678.log.bak",
        "audit-2026-01-02T03-04-05.678.txt",
        "my-audit-2026-01-02T03-04-05.678.log",
        "audit-old.log",
        "audit.log.1",
    ],
)
def test_files_with_other_names_are_never_touched(path: Path, name: str) -> None:
    file = File(path, max_size=8, max_backups=1, max_age=1, compress=True)
    (path.parent / name).write_bytes(b"mine")
    for day in range(4):
        file.now = NOW + timedelta(days=400 * day)
        file.write(LINE)
    assert (path.parent / name).read_bytes() == b"mine"


def test_a_file_that_exists_is_continued(path: Path) -> None:
    File(path).write(LINE)
    File(path).write(LINE)
    assert path.read_bytes() == LINE * 2


def test_a_line_that_a_crash_cut_off_is_ended_first(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(LINE + b"012")
    File(path).write(LINE)
    assert path.read_bytes() == LINE + b"012\n" + LINE


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced", "removed with its directory"])
def test_a_file_that_another_program_moves_away_is_opened_again(path: Path, how: str) -> None:
    file = File(path)
    file.write(LINE)
    if how in ("removed", "removed with its directory"):
        path.unlink()
    else:
        path.rename(path.with_name("moved"))
    if how == "replaced":
        path.write_bytes(b"theirs\n")
    if how == "removed with its directory":
        path.parent.rmdir()
    file.write(LINE)
    assert path.read_bytes() == (b"theirs\n" + LINE if how == "replaced" else LINE)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes. pytest's output may be one: the test itself ends this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_after_a_failed_write_the_file_ends_with_a_whole_line(path: Path) -> None:
    file = File(path)
    file.write(LINE)
    with file_size_limit(20), pytest.raises(OSError, match="File too large"):
        file.write(LINE, LINE)
    assert path.read_bytes() == LINE
    file.write(LINE)
    assert path.read_bytes() == LINE * 2


def test_a_full_disk_is_an_error_each_time() -> None:
    file = RotatingFile(Path("/dev/full"), Rotation())
    file.open()
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            file.write([LINE])
    file.close()


def test_stdout_is_written_without_rotation() -> None:
    reading, writing = os.pipe()
    output = StandardOutput(writing)
    output.open()
    assert output.write([LINE, LINE]) == 0
    output.close()
    assert os.read(reading, 100) == LINE * 2
    os.close(reading)
    os.close(writing)


def test_the_default_rotation_is_upstreams() -> None:
    assert Rotation() == Rotation(100 * log_files.MEGABYTE, 366, 100, compress=False)
