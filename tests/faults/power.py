"""What a power failure leaves of the files whose operations were recorded (sqlite_files.py).

The model is that of SQLite (https://www.sqlite.org/atomiccommit.html) and of etcd's LazyFS. What was synced is there.
Of everything else any part may be there: each sector of an unsynced write has its old contents, its new ones, or
anything; each name that was created or deleted is in its directory or is not, until the directory is synced. A file whose
directory has no name for it is lost, with all that was synced in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.faults.sqlite_files import Create, Delete, Link, Sync, SyncDirectory, Truncate, Write

SECTORS: Final = (512, 4096)  # bytes that a disk writes at once


class _File:
    """A file without its name."""

    def __init__(self, data: bytes = b"") -> None:
        self.synced = bytearray(data)
        self.unsynced: list[Write | Truncate] = []

    def sync(self) -> None:
        for operation in self.unsynced:
            if isinstance(operation, Truncate):
                _truncate(self.synced, operation.size)
            else:
                _put(self.synced, operation.offset, operation.data)
        self.unsynced.clear()

    def after_failure(self, random: Random) -> bytes:
        data = bytearray(self.synced)
        kept, sector = random.choice((0.0, 0.5, 0.9, 1.0)), random.choice(SECTORS)
        for operation in self.unsynced:
            if isinstance(operation, Truncate):
                if random.random() < kept:
                    _truncate(data, operation.size)
                continue
            offset, whole = operation.offset, operation.data
            while whole:
                size = sector - offset % sector
                part, whole = whole[:size], whole[size:]
                if random.random() < kept:
                    _put(data, offset, part)
                elif kept and random.random() < 0.2:
                    _put(data, offset, random.choice((bytes(len(part)), random.randbytes(len(part)))))
                offset += len(part)
        return bytes(data)


def _put(data: bytearray, offset: int, new: bytes) -> None:
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


def _truncate(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class Disk:
    """The files below `root`, which exists and is durable. `run` makes operations; `after_failure` changes nothing."""

    def __init__(self, root: Path) -> None:
        """The files that are there now are durable."""
        self.root = str(root)
        # What a name stands for: the durable state, then each unsynced one. None: nothing has the name.
        self._names: dict[str, list[_File | str | None]] = {
            str(path): ["directory" if path.is_dir() else _File(path.read_bytes())] for path in root.rglob("*")
        }

    def run(self, operations: Iterable[Any]) -> None:
        for operation in operations:
            match operation:
                case Write(path) | Truncate(path):
                    self._file(path).unsynced.append(operation)
                case Sync(path):
                    self._file(path).sync()
                case Create(path, directory):
                    self._names.setdefault(path, [None]).append("directory" if directory else _File())
                case Link(path, data, synced):
                    file = _File(synced)
                    if data != synced:
                        file.unsynced.append(Write(path, 0, data))
                    self._names.setdefault(path, [None]).append(file)
                case Delete(path=path):
                    self._names[path].append(None)
                case SyncDirectory(path):
                    for name, states in self._names.items():
                        if str(Path(name).parent) == path:
                            del states[:-1]

    def _file(self, path: str) -> _File:
        found = self._names[path][-1]
        assert isinstance(found, _File)
        return found

    def after_failure(self, random: Random) -> dict[str, bytes | None]:
        """The contents of the files by their paths relative to `root`; None for a directory."""
        left: dict[str, bytes | None] = {}
        for name in sorted(self._names):  # directories before their contents
            relative = str(Path(name).relative_to(self.root))
            state = random.choice(self._names[name])
            parent = str(Path(relative).parent)
            if state is None or (parent != "." and parent not in left):
                continue
            left[relative] = state.after_failure(random) if isinstance(state, _File) else None
        return left


def write_files(files: dict[str, bytes | None], root: Path) -> None:
    for name, data in files.items():
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
