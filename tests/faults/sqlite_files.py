"""What SQLite does to its files: recorded, and failed on demand.

The store runs unchanged, on the SQLite library that Python's sqlite3 uses. `SqliteFiles` makes a copy of SQLite's default
virtual file system (https://www.sqlite.org/vfs.html) the default one, with its own xOpen and xDelete, and gives every
opened file a copy of its methods, with its own xWrite, xTruncate and xSync. They record the call, and make the original
one. Directories that are synced are found by the system call that opens them (xSetSystemCall "openDirectory").

A failure returns an error code of SQLite instead of making the call, or after half of a write.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from tests.optional import skip_without_platform


class Write(NamedTuple):
    path: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    path: str
    size: int


class Sync(NamedTuple):
    path: str


class Create(NamedTuple):
    """The name of a file or of a directory appears."""

    path: str
    directory: bool = False


class Link(NamedTuple):
    """A file gets a further name (link(2)): its contents, and those that were synced."""

    path: str
    data: bytes
    synced: bytes


class Delete(NamedTuple):
    path: str


class SyncDirectory(NamedTuple):
    path: str


Operation: TypeAlias = Write | Truncate | Sync | Create | Link | Delete | SyncDirectory
Fails: TypeAlias = Callable[[Operation], int]
"""Returns the SQLite code with which an operation fails, 0 to carry it out."""

_POINTER = ctypes.c_void_p
_INT64 = ctypes.c_int64
_XOPEN = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_XDELETE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int)
_XSET = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, _POINTER)
_XGET = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)
_XWRITE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int, _INT64)
_XTRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _INT64)
_XSYNC = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)
_OPEN_DIRECTORY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, _POINTER)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = (
        ("version", ctypes.c_int), ("file_size", ctypes.c_int), ("max_path", ctypes.c_int), ("next", _POINTER),
        ("name", ctypes.c_char_p), ("data", _POINTER), ("xOpen", _XOPEN), ("xDelete", _XDELETE),
        *((name, _POINTER) for name in ("access", "full_path", "dl1", "dl2", "dl3", "dl4", "random", "sleep", "time")),
        ("last_error", _POINTER), ("time64", _POINTER), ("xSetSystemCall", _XSET), ("xGetSystemCall", _XGET),
        ("next_call", _POINTER),
    )  # fmt: skip


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = (
        ("version", ctypes.c_int), ("xClose", _POINTER), ("xRead", _POINTER), ("xWrite", _XWRITE),
        ("xTruncate", _XTRUNCATE), ("xSync", _XSYNC), *((f"other{number}", _POINTER) for number in range(13)),
    )  # fmt: skip


def _library() -> Any:
    """The SQLite library of the module sqlite3. Skips the test if its functions cannot be called."""
    import _sqlite3  # its file is linked to the library, or contains it

    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    if not hasattr(library, "sqlite3_vfs_register"):
        skip_without_platform("a SQLite library with public functions")
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    found = library.sqlite3_vfs_find(None)
    if found.contents.version < 3 or not found.contents.name.startswith(b"unix"):
        skip_without_platform("SQLite's virtual file system for Unix")
    return library


class SqliteFiles:
    """See the module. `operations` grows while files below `root` are written; the caller may append to it, too.

    A write and a truncation are recorded before they are made, a sync after it has returned.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.operations: list[Any] = []
        self.fails: Fails = lambda operation: 0
        self.errors: list[BaseException] = []  # of this module
        self._library = _library()
        self._original: _Vfs = self._library.sqlite3_vfs_find(None).contents
        self._synced: dict[str, bytes] = {}  # by Python, not by SQLite
        self._paths: dict[int, str] = {}  # by the address of the open file
        self._methods: dict[int, _Methods] = {}  # copies, by the address of the original
        self._originals: dict[int, _Methods] = {}  # by the address of the open file
        self._known = {str(path) for path in root.rglob("*")} | {self.root}
        self._callbacks = (_OPEN_DIRECTORY(self._open_directory), _XWRITE(self._write), _XTRUNCATE(self._truncate),
                           _XSYNC(self._sync))  # fmt: skip

    @contextmanager
    def __call__(self) -> Iterator[SqliteFiles]:
        """Record inside the context. Files that are opened inside it have to be closed inside it."""
        vfs = _Vfs()
        ctypes.memmove(ctypes.byref(vfs), ctypes.byref(self._original), ctypes.sizeof(_Vfs))
        vfs.name, vfs.next, vfs.xOpen, vfs.xDelete = b"recorded", None, _XOPEN(self._open), _XDELETE(self._delete)
        default = ctypes.byref(self._original)
        get = self._original.xGetSystemCall(default, b"openDirectory")
        self._real_open_directory = _OPEN_DIRECTORY(get)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "fsync", self._recorded_fsync(os.fsync))
            patched.setattr(os, "link", self._recorded_link(os.link))
            self._library.sqlite3_vfs_register(ctypes.byref(vfs), 1)
            self._original.xSetSystemCall(default, b"openDirectory", ctypes.cast(self._callbacks[0], _POINTER))
            try:
                yield self
            finally:
                self._original.xSetSystemCall(default, b"openDirectory", get)
                self._library.sqlite3_vfs_unregister(ctypes.byref(vfs))
                self._library.sqlite3_vfs_register(default, 1)
        assert not self._paths, "files are still open"
        if self.errors:
            raise self.errors[0]

    def _do(self, operation: Operation) -> int:
        """Record an operation, or its failure. Never raises: the caller is SQLite."""
        try:
            if code := self.fails(operation):
                return code
            self.operations.append(operation)
        except BaseException as error:  # noqa: BLE001 - reported at the end of the context
            self.errors.append(error)
        return 0

    def _created(self, path: str) -> None:
        """Record a name that was not there before, and the directories above it."""
        if path not in self._known and path.startswith(self.root):
            parent = str(Path(path).parent)
            self._created(parent)
            self._known.add(path)
            self.operations.append(Create(path, Path(path).is_dir()))

    def _recorded_fsync(self, fsync: Callable[[int], None]) -> Callable[[int], None]:
        def recorded(handle: int) -> None:
            fsync(handle)
            path = Path(f"/proc/self/fd/{handle}").readlink()
            if path.is_dir() and str(path).startswith(self.root):
                for name in path.iterdir():
                    self._created(str(name))
                self.operations.append(SyncDirectory(str(path)))
            elif path.is_file():
                self._synced[str(path)] = path.read_bytes()

        return recorded

    def _recorded_link(self, link: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def recorded(old: Path, new: Path) -> None:
            link(old, new)
            self._created(str(new.parent))
            self._known.add(str(new))
            self.operations.append(Link(str(new), new.read_bytes(), self._synced.get(str(old), b"")))

        return recorded

    # Called by SQLite.

    def _open(self, vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        path = ctypes.string_at(name).decode() if name else ""  # SQLite keeps the pointer while the file is open
        code = self._original.xOpen(ctypes.addressof(self._original), name, file, flags, out)
        if code or not path.startswith(self.root):
            return code
        self._created(path)
        methods = ctypes.cast(file, ctypes.POINTER(_POINTER))
        original = methods[0] or 0
        if original not in self._methods:
            copied = _Methods.from_buffer_copy(ctypes.string_at(original, ctypes.sizeof(_Methods)))
            _, copied.xWrite, copied.xTruncate, copied.xSync = self._callbacks
            self._close = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER)(self._closed)
            copied.xClose = ctypes.cast(self._close, _POINTER)
            self._methods[original] = copied
        self._paths[file] = path
        self._originals[file] = _Methods.from_address(original)
        methods[0] = ctypes.addressof(self._methods[original])
        return code

    def _closed(self, file: int) -> int:
        original = self._originals.pop(file)
        self._paths.pop(file)
        ctypes.cast(file, ctypes.POINTER(_POINTER))[0] = ctypes.addressof(original)
        return int(ctypes.CFUNCTYPE(ctypes.c_int, _POINTER)(original.xClose)(file))

    def _delete(self, vfs: int, name: bytes, sync: int) -> int:
        path = name.decode()
        if path in self._known:
            if code := self._do(Delete(path)):
                return code
            self._known.discard(path)
        return int(self._original.xDelete(ctypes.addressof(self._original), name, sync))

    def _write(self, file: int, data: int, size: int, offset: int) -> int:
        original = self._originals[file]
        if code := self._do(Write(self._paths[file], offset, ctypes.string_at(data, size))):
            original.xWrite(file, data, size // 2, offset)
            return code
        return int(original.xWrite(file, data, size, offset))

    def _truncate(self, file: int, size: int) -> int:
        code = self._do(Truncate(self._paths[file], size))
        return code or int(self._originals[file].xTruncate(file, size))

    def _sync(self, file: int, flags: int) -> int:
        operation = Sync(self._paths[file])
        if code := self.fails(operation):
            return code
        code = int(self._originals[file].xSync(file, flags))
        if not code:
            self.operations.append(operation)
        return code

    def _open_directory(self, name: bytes, handle: int) -> int:
        """SQLite syncs the directory of a file that it has created or deleted; it passes the name of the file."""
        directory = str(Path(name.decode()).parent)
        if directory.startswith(self.root):
            self.operations.append(SyncDirectory(directory))
        return int(self._real_open_directory(name, handle))


IO_ERRORS: Final = {"full": sqlite3.SQLITE_FULL, "error": sqlite3.SQLITE_IOERR}
