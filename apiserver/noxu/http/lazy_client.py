"""aiohttp without its client until that is used: importing the client reads the certificates of all the system's CAs.

`import aiohttp.http_parser` executes the package's `__init__`, which imports the client for its names. A server needs the
client only for webhooks. After `install`, the package has its submodules; its own names are there when the first one is
asked for. Only a process that is a server and nothing else may do this.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

PACKAGE: Final = "aiohttp"


class _Package(ModuleType):
    """A package whose `__init__` is executed when a name is missing that is not a submodule."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if (name.startswith("__") and name.endswith("__")) or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if find_spec(f"{self.__name__}.{name}") is not None:
            raise AttributeError(name)  # the import system imports it, and sets the attribute
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on an ordinary package
        spec.loader.exec_module(self)
        return getattr(self, name)


def install() -> None:
    """Make the package lazy, unless it has been imported or is not as expected."""
    spec = None if PACKAGE in sys.modules else find_spec(PACKAGE)
    version = _version(spec) if spec is not None else ""
    if spec is None or not version:
        return
    package = module_from_spec(spec)
    package.__class__ = _Package
    vars(package)["__version__"] = version  # submodules import it
    sys.modules[PACKAGE] = package


def _version(spec: ModuleSpec) -> str:
    """The version in the text of the package, "" if it is not there."""
    source = spec.loader.get_source(spec.name) if hasattr(spec.loader, "get_source") else None  # type: ignore[union-attr]
    _, _, rest = f"\n{source or ''}".partition('\n__version__ = "')
    version, _, _ = rest.partition('"\n')
    return version
