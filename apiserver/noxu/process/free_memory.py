"""Give memory that was freed back to the system, after work that needed much of it for a short time.

The allocator of glibc gives back what is at the end of its heap. What lasts, such as stored objects, lies behind what was
needed while it was made; `malloc_trim` (malloc_trim(3)) gives back the pages between. Other allocators have no such function.
"""

from __future__ import annotations


def give_back() -> None:
    """Give free pages back. It takes milliseconds."""
    try:
        import ctypes  # which few servers need

        trim = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):  # no ctypes, no such library; TypeError: Windows
        return
    trim(0)
