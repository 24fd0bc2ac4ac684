"""The limits of the system in sentences: how many files and threads this process may have, and where it may write.

Each sentence says what to do. An error that is not about a limit has none: it is a bug, and keeps its traceback.
"""

from __future__ import annotations

import errno
from typing import Final

MIN_FILES: Final = 32
"""A server has about sixteen open files without a client, and imports modules."""
_ADVICE: Final = {
    errno.EMFILE: "this process may not open more files: raise the limit (ulimit -n)",
    errno.ENFILE: "the system has no more open files to give: close other programs, or raise its limit (fs.file-max)",
    errno.EAGAIN: "the system has no more processes or memory to give: raise the limits (ulimit -u, ulimit -v)",
    errno.ENOMEM: "the system has no more memory to give: raise the limit (ulimit -v)",
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "the quota of this user is used up; make room",
    errno.EROFS: "the file system is read-only; name another directory",
    errno.EFBIG: "files of this size are not allowed: raise the limit (ulimit -f)",
}
_NO_THREAD: Final = "can't start new thread"  # Python's text
_NO_DIRECTORY: Final = "No usable temporary directory found"  # likewise


def sentence(error: BaseException) -> str:
    """What keeps a program from its work, and what to do; "" for an error that is not about a limit of the system."""
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return (
            "the system has no more threads to give: raise the limit on processes (ulimit -u), or stop other programs"
        )
    if isinstance(error, MemoryError):
        return _ADVICE[errno.ENOMEM]
    if not isinstance(error, OSError):
        return ""
    if _NO_DIRECTORY in str(error):
        return f"{error.strerror}: set TMPDIR to a directory that can be written"
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{_ADVICE.get(error.errno or 0) or error.strerror or error}"


def too_few_files() -> str:
    """Why a server cannot run with the files that this process may open; "" if it can."""
    try:
        import resource
    except ImportError:  # not on every platform
        return ""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= MIN_FILES:
        return ""
    return f"this process may open {limit} files, and a server needs {MIN_FILES} and one for each client: raise the limit (ulimit -n)"


def give_back() -> None:
    """Give memory that was freed back to the system, after work that needed much of it for a short time. It takes milliseconds.

    The allocator of glibc gives back what is at the end of its heap. What lasts, such as stored objects, lies behind what
    was needed while it was made; `malloc_trim` (malloc_trim(3)) gives back the pages between. Other allocators have no such
    function.
    """
    try:
        import ctypes  # which few servers need

        trim = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):  # no ctypes, no such library; TypeError: Windows
        return
    trim(0)
