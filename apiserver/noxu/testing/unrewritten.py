"""Modules of this package are imported as they are, in a pytest run, too.

Pytest rewrites the assertions of all modules in the distribution of a plugin, for better messages, and compiles each module
for that when it is first imported. The server has hundreds of modules, and its assertions are for its authors: rewriting
them takes three times as long as the server's start. So a finder stands before pytest's, which imports them as every other
program does, from the bytecode that their installation has compiled.

The plugin installs it when pytest loads it. The few modules that this imports are rewritten.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

_OURS: Final = ("noxu.", "noxu_storage")


class Finder:
    """A finder of `sys.meta_path`: the standard one, for the modules of this package alone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None


def install() -> None:
    """Import the modules of this package without other finders, from now on."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
