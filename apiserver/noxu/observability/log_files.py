"""Files of lines that grow until they are rotated, as lumberjack does it (gopkg.in/natefinch/lumberjack.v2).

A file that a line would make larger than `max_size` is renamed to NAME-TIME.EXTENSION, and a new one begins. Of the renamed
ones the newest `max_backups` remain, those older than `max_age` days are removed, and with `compress` they are compressed to
.gz. Files with other names are never touched.

Unlike lumberjack: a file that was removed or replaced by another program is opened again, a line that a crash has cut off is
ended before the next one, and after a failed write the file ends with its last whole line.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

MEGABYTE: Final = 1024 * 1024
STDOUT: Final = "-"
STDERR: Final = 2
_TIME: Final = "%Y-%m-%dT%H-%M-%S.%f"  # cut to milliseconds
_TIME_LENGTH: Final = len("2006-01-02T15-04-05.000")


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Rotation:
    """When files are rotated and removed; 0: never. Sizes in bytes, ages in days."""

    max_size: int = 100 * MEGABYTE
    max_age: int = 366
    max_backups: int = 100
    compress: bool = False


class RotatingFile:
    """A file of lines. Its methods are called by one thread, and raise OSError."""

    def __init__(self, path: Path, rotation: Rotation, now: Callable[[], datetime] = utc_now) -> None:
        self.path = path
        self._rotation = rotation
        self._now = now
        self._descriptor = -1
        self._size = 0
        self._cleaning: threading.Thread | None = None
        self._lock = threading.Lock()  # of the next two
        self._cleanings_due = 0
        self._is_cleaning = False

    def open(self) -> None:
        """Open the file, or create it and its directory, readable by its owner only."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        if self._size and self._last_byte() != b"\n":
            self._append(b"\n")
        self._clean()

    def write(self, lines: Sequence[bytes]) -> int:
        """Append lines, each with its line end. Returns how many were too long for a file, and left out."""
        if self._descriptor < 0 or self._is_replaced():
            self.close()
            self.open()
        limit, size, left_out = self._rotation.max_size, 0, 0
        portion: list[bytes] = []
        for line in lines:
            if limit and len(line) > limit:
                left_out += 1
                continue
            if limit and self._size + size + len(line) > limit:
                self._append(b"".join(portion))
                portion, size = [], 0
                self._rotate()
            portion.append(line)
            size += len(line)
        self._append(b"".join(portion))
        return left_out

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with contextlib.suppress(OSError):  # no file, but a pipe or a device
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def _last_byte(self) -> bytes:
        os.lseek(self._descriptor, -1, os.SEEK_END)
        return os.read(self._descriptor, 1)

    def _is_replaced(self) -> bool:
        """Whether the path no longer leads to the open file."""
        try:
            named, own = self.path.stat(), os.fstat(self._descriptor)
        except OSError:
            return True
        return (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino)

    def _rotate(self) -> None:
        if self._size == 0:
            return
        self.close()
        self.path.rename(self._backup_path())
        self.open()

    def _backup_path(self) -> Path:
        moment = self._now()
        while (path := self.path.with_name(_backup_name(self.path, moment))).exists():
            moment += timedelta(milliseconds=1)  # two rotations within a millisecond
        return path

    def _clean(self) -> None:
        """Remove and compress rotated files in a thread, which may take seconds."""
        rotation = self._rotation
        if not (rotation.max_age or rotation.max_backups or rotation.compress):
            return
        with self._lock:
            self._cleanings_due += 1
            if self._is_cleaning:
                return
            self._is_cleaning = True
        self._cleaning = threading.Thread(target=self._clean_until_done, name="noxu-log-cleaner", daemon=True)
        self._cleaning.start()

    def _clean_until_done(self) -> None:
        """Clean, and again if files have been rotated meanwhile."""
        while True:
            due = self._cleanings_due
            try:
                clean(self.path, self._rotation, self._now())
            except BaseException:
                self._is_cleaning = False  # the next rotation starts another thread
                raise
            with self._lock:
                if self._cleanings_due == due:
                    self._is_cleaning = False
                    return


def _backup_name(path: Path, moment: datetime) -> str:
    return f"{path.stem}-{moment.strftime(_TIME)[:_TIME_LENGTH]}{path.suffix}"


def clean(path: Path, rotation: Rotation, now: datetime) -> None:
    """Remove and compress the rotated files of a log. What cannot be removed remains until the next time."""
    with contextlib.suppress(OSError):
        kept: dict[str, list[tuple[datetime, Path]]] = {}
        for moment, file in backups(path):
            kept.setdefault(file.name.removesuffix(".gz"), []).append((moment, file))
        for n, files in enumerate(kept.values()):
            for moment, file in files:
                _clean_one(file, rotation, removes=_is_surplus(n, moment, rotation, now))


def _is_surplus(position: int, moment: datetime, rotation: Rotation, now: datetime) -> bool:
    if rotation.max_backups and position >= rotation.max_backups:
        return True
    return bool(rotation.max_age) and moment < now - timedelta(days=rotation.max_age)


def _clean_one(file: Path, rotation: Rotation, *, removes: bool) -> None:
    with contextlib.suppress(OSError):
        if removes:
            file.unlink()
        elif rotation.compress and file.suffix != ".gz":
            _compress(file)


def _compress(file: Path) -> None:
    target = file.with_name(f"{file.name}.gz")  # one that exists is from an attempt that was interrupted
    descriptor = os.open(target, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        with (
            file.open("rb") as source,
            os.fdopen(descriptor, "wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb") as out,
        ):
            shutil.copyfileobj(source, out, MEGABYTE)
    except OSError:
        target.unlink(missing_ok=True)
        raise
    file.unlink()


def backups(path: Path) -> list[tuple[datetime, Path]]:
    """The rotated files of a log, compressed or not, with the time of their rotation: the newest first."""
    name = re.compile(rf"{re.escape(path.stem)}-(.{{{_TIME_LENGTH}}}){re.escape(path.suffix)}(\.gz)?")
    dated = []
    for file in path.parent.iterdir():
        match = name.fullmatch(file.name)
        if match and file.is_file():
            with contextlib.suppress(ValueError):
                dated.append((datetime.strptime(match[1], _TIME).replace(tzinfo=UTC), file))
    return sorted(dated, reverse=True)


class StandardOutput:
    """Lines to stdout or stderr, without rotation. The interface is that of RotatingFile."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor

    def open(self) -> None:
        pass

    def write(self, lines: Sequence[bytes]) -> int:
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        return 0

    def close(self) -> None:
        pass
