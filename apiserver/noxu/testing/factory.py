"""The type of the fixture `make_noxu`, for annotations."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import DEFAULT_AUTHENTICATION, Authentication, Profile
from noxu.testing.handle import Noxu, Users
from noxu.testing.source_paths import Source

if TYPE_CHECKING:
    # For type checkers, the result may be used at once or awaited: they do not know where a call is.

    class AwaitableNoxu(Noxu):
        def __await__(self) -> Generator[object, None, Noxu]: ...


class MakeNoxu(Protocol):
    """Starts a server, which runs until the end of the test. In a coroutine it is awaited. The arguments are those of `Noxu`."""

    def __call__(
        self,
        *,
        manifests: Iterable[Source] = (),
        gates: Mapping[str, bool] | None = None,
        profile: Profile = "local",
        data: str | os.PathLike[str] | None = None,
        users: Users = (),
        strict: bool = False,
        tls: bool = False,
        controllers: Iterable[str] | None = None,
        disable_admission_plugins: Iterable[str] = (),
        enable_admission_plugins: Iterable[str] = (),
        authentication: Authentication = DEFAULT_AUTHENTICATION,
        authorization_modes: Iterable[str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> AwaitableNoxu: ...
