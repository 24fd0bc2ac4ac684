"""Tests that share a server, and still find it clean: `noxu_isolation = rollback`.

    noxu_isolation = server       a server is as its tests have left it: `noxu` is one for each test (the default)
    noxu_isolation = rollback     what a test changes in noxu_class, noxu_module and noxu_session is undone at its end

What fixtures of a class, a module or the session have made before the test remains: a test begins when the first fixture is set
up that is for it alone. With `rollback`:

    session     noxu_session is started
    module      a fixture applies CRDs to it                  remains until the end of the module, and longer
    test        a fixture for the test applies an object      undone
                the test changes what it wants                undone
    teardown    fixtures for the test end, then all of this is undone

This plugin is registered only if the option asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Final

import pytest

from noxu.testing.errors import Stopped
from noxu.testing.handle import Noxu
from noxu.testing.snapshots import Rollback

SHARED: Final = ("noxu_class", "noxu_module", "noxu_session")
"""The fixtures whose servers several tests have."""


class Isolation:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self._servers: dict[str, Noxu] = {}  # the newest of each fixture, which may be stopped
        self._open: list[Rollback] | None = None  # of the test that has begun

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            self._begin()
        value = yield
        if fixturedef.argname in SHARED and isinstance(value, Noxu):
            self._servers[fixturedef.argname] = value
            if self._open is not None:  # the test asks for it now
                self._roll_back_later(value)
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        self._begin()
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            opened, self._open = self._open or [], None
            for rollback in reversed(opened):
                rollback.__exit__(
                    None, None, None
                )  # does nothing if its server was for a class or a module that has ended

    def _begin(self) -> None:
        """The test begins: from here on everything is its own."""
        if self._open is None:
            self._open = []
            for server in self._servers.values():
                self._roll_back_later(server)

    def _roll_back_later(self, server: Noxu) -> None:
        if self._open is not None:
            with suppress(Stopped):
                self._open.append(server.rollback().__enter__())
