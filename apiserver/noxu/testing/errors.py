"""The errors of a test, and which frames pytest shows of them.

An error that the test has caused, by its request or by its call, is shown at its call: a module of the handle has
`__tracebackhide__ = hidden`, which pytest looks up in the globals of a frame. A bug has all its frames.
"""

from __future__ import annotations

from typing import Any, Final

from noxu.api.errors import ApiError
from noxu.config import StartError
from noxu.manifests.documents import LoadError


class WaitTimeout(TimeoutError):
    """What was waited for has not happened in time. The message has the newest state of the object."""

    __module__ = "noxu"  # where it is public: tracebacks show that name


class UnknownKind(LookupError):
    """No kind of this name is served; its CRD is missing, or the name is misspelt."""

    __module__ = "noxu"  # where it is public: tracebacks show that name


class Stopped(RuntimeError):
    """The server does not run: it was not started, or it is stopped."""

    __module__ = "noxu"  # where it is public: tracebacks show that name


EXPECTED: Final = (ApiError, LoadError, StartError, WaitTimeout, UnknownKind, Stopped)
"""Errors of what the test asks; they are raised without the frames of the server's thread."""
_MISUSES: Final = (TypeError, ValueError, Warning)
"""Errors of how it calls."""


def hidden(info: Any) -> bool:
    """For `__tracebackhide__`: whether pytest hides a frame of the handle in this traceback."""
    return isinstance(info.value, (*EXPECTED, *_MISUSES))
