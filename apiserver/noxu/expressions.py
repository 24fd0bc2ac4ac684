"""`expression`: a regular expression that is compiled when it is first used.

Compiling a pattern takes a tenth of a millisecond, and the modules that a server imports have more than a hundred, of which
most servers use a few. An expression has the methods of `re.Pattern`; from its first use on they are those of the
compiled pattern itself. For mypy it is `re.compile`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["expression"]

if TYPE_CHECKING:
    from re import compile as expression
else:
    _METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")

    class expression:  # noqa: N801 - it takes the place of a function
        """A regular expression. A pattern that is invalid raises `re.error` when it is first used."""

        __slots__ = (*_METHODS, "flags", "pattern")

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self.pattern = pattern
            self.flags = flags

        def __getattr__(self, name: str) -> Any:
            """Called for a method that is not there yet."""
            if name not in _METHODS:
                raise AttributeError(f"an expression has no attribute {name!r}")
            compiled = re.compile(self.pattern, self.flags)
            for method in _METHODS:
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)

        def __repr__(self) -> str:
            return f"expression({self.pattern!r})"
