"""Noxu: the Kubernetes API for your CustomResourceDefinitions.

    from noxu import Noxu

    with Noxu() as noxu:
        noxu.apply("crds/")

What this module names is the public API (docs/api.md); everything below `noxu.apiserver` and `noxu.storage` is private and may change.
A name is imported when it is first used: `import noxu` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noxu.apiserver.api.errors import ApiError as ApiError
    from noxu.apiserver.clock import Clock as Clock
    from noxu.apiserver.config import Authentication as Authentication
    from noxu.apiserver.http.recent_requests import RecordedRequest as RecordedRequest
    from noxu.apiserver.manifests import LoadError as LoadError
    from noxu.apiserver.server import StartError as StartError
    from noxu.apiserver.testing.client import ApiWarning as ApiWarning
    from noxu.apiserver.testing.client import UnknownFieldWarning as UnknownFieldWarning
    from noxu.apiserver.testing.errors import Stopped as Stopped
    from noxu.apiserver.testing.errors import UnknownKind as UnknownKind
    from noxu.apiserver.testing.errors import WaitTimeout as WaitTimeout
    from noxu.apiserver.testing.factory import MakeNoxu as MakeNoxu
    from noxu.apiserver.testing.functions import Denied as Denied
    from noxu.apiserver.testing.handle import Noxu as Noxu
    from noxu.apiserver.testing.users import TestUser as TestUser
    from noxu.apiserver.testing.watching import Watch as Watch
    from noxu.apiserver.testing.watching import WatchEvent as WatchEvent

_HOMES = {
    "ApiError": "noxu.apiserver.api.errors",
    "ApiWarning": "noxu.apiserver.testing.client",
    "Authentication": "noxu.apiserver.config",
    "Clock": "noxu.apiserver.clock",
    "Denied": "noxu.apiserver.testing.functions",
    "LoadError": "noxu.apiserver.manifests",
    "MakeNoxu": "noxu.apiserver.testing.factory",
    "Noxu": "noxu.apiserver.testing.handle",
    "RecordedRequest": "noxu.apiserver.http.recent_requests",
    "StartError": "noxu.apiserver.server",
    "Stopped": "noxu.apiserver.testing.errors",
    "TestUser": "noxu.apiserver.testing.users",
    "UnknownFieldWarning": "noxu.apiserver.testing.client",
    "UnknownKind": "noxu.apiserver.testing.errors",
    "WaitTimeout": "noxu.apiserver.testing.errors",
    "Watch": "noxu.apiserver.testing.watching",
    "WatchEvent": "noxu.apiserver.testing.watching",
}

__all__ = [
    "ApiError",
    "ApiWarning",
    "Authentication",
    "Clock",
    "Denied",
    "LoadError",
    "MakeNoxu",
    "Noxu",
    "RecordedRequest",
    "StartError",
    "Stopped",
    "TestUser",
    "UnknownFieldWarning",
    "UnknownKind",
    "WaitTimeout",
    "Watch",
    "WatchEvent",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
