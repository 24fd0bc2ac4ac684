"""Noxu: the Kubernetes API for your CustomResourceDefinitions.

    from noxu import Noxu

    with Noxu() as noxu:
        noxu.apply("crds/")

What this module names is the public API; everything below `noxu.apiserver` and `noxu.storage` is private and may change.
A name is imported when it is first used: `import noxu` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noxu.apiserver.api.errors import ApiError as ApiError
    from noxu.apiserver.manifests import LoadError as LoadError
    from noxu.apiserver.server import StartError as StartError
    from noxu.apiserver.testing.functions import Denied as Denied
    from noxu.apiserver.testing.handle import Noxu as Noxu

_HOMES = {
    "ApiError": "noxu.apiserver.api.errors",
    "Denied": "noxu.apiserver.testing.functions",
    "LoadError": "noxu.apiserver.manifests",
    "Noxu": "noxu.apiserver.testing.handle",
    "StartError": "noxu.apiserver.server",
}

__all__ = ["ApiError", "Denied", "LoadError", "Noxu", "StartError"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
