"""Noxu: the Kubernetes API for your CustomResourceDefinitions.

    from noxu import Noxu

    with Noxu() as noxu:
        noxu.apply("crds/")

What this module names is the public API (docs/api.md); the modules below it, and `noxu_storage`, are private and may change.
A name is imported when it is first used: `import noxu` alone costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noxu.api.errors import ApiError as ApiError
    from noxu.clock import Clock as Clock
    from noxu.config import Authentication as Authentication
    from noxu.config import StartError as StartError
    from noxu.control.recorded_requests import RecordedRequest as RecordedRequest
    from noxu.exploration.results import ExploreFinding as ExploreFinding
    from noxu.exploration.results import ExploreResult as ExploreResult
    from noxu.exploration.results import explore as explore
    from noxu.manifests.documents import LoadError as LoadError
    from noxu.testing.client import ApiWarning as ApiWarning
    from noxu.testing.client import UnknownFieldWarning as UnknownFieldWarning
    from noxu.testing.errors import Stopped as Stopped
    from noxu.testing.errors import UnknownKind as UnknownKind
    from noxu.testing.errors import WaitTimeout as WaitTimeout
    from noxu.testing.functions import Denied as Denied
    from noxu.testing.handle import MakeNoxu as MakeNoxu
    from noxu.testing.handle import Noxu as Noxu
    from noxu.testing.manners_report import MannersReport as MannersReport
    from noxu.testing.past import PastView as PastView
    from noxu.testing.tenants import TestTenant as TestTenant
    from noxu.testing.users import TestUser as TestUser
    from noxu.testing.watching import Watch as Watch
    from noxu.testing.watching import WatchEvent as WatchEvent
    from noxu.testing.write_log import LoggedWrite as LoggedWrite
    from noxu.testing.write_log import WriteCause as WriteCause

_HOMES = {
    "ApiError": "noxu.api.errors",
    "ApiWarning": "noxu.testing.client",
    "Authentication": "noxu.config",
    "Clock": "noxu.clock",
    "Denied": "noxu.testing.functions",
    "ExploreFinding": "noxu.exploration.results",
    "ExploreResult": "noxu.exploration.results",
    "LoadError": "noxu.manifests.documents",
    "LoggedWrite": "noxu.testing.write_log",
    "MakeNoxu": "noxu.testing.handle",
    "MannersReport": "noxu.testing.manners_report",
    "Noxu": "noxu.testing.handle",
    "PastView": "noxu.testing.past",
    "RecordedRequest": "noxu.control.recorded_requests",
    "StartError": "noxu.config",
    "Stopped": "noxu.testing.errors",
    "TestTenant": "noxu.testing.tenants",
    "TestUser": "noxu.testing.users",
    "UnknownFieldWarning": "noxu.testing.client",
    "UnknownKind": "noxu.testing.errors",
    "WaitTimeout": "noxu.testing.errors",
    "Watch": "noxu.testing.watching",
    "WatchEvent": "noxu.testing.watching",
    "WriteCause": "noxu.testing.write_log",
    "explore": "noxu.exploration.results",
}

__all__ = [
    "ApiError",
    "ApiWarning",
    "Authentication",
    "Clock",
    "Denied",
    "ExploreFinding",
    "ExploreResult",
    "LoadError",
    "LoggedWrite",
    "MakeNoxu",
    "MannersReport",
    "Noxu",
    "PastView",
    "RecordedRequest",
    "StartError",
    "Stopped",
    "TestTenant",
    "TestUser",
    "UnknownFieldWarning",
    "UnknownKind",
    "WaitTimeout",
    "Watch",
    "WatchEvent",
    "WriteCause",
    "explore",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
