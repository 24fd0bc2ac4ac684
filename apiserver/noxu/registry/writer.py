"""The `Writer` of a server: what handlers and controllers use to write. `registry.write` is imported by the first write."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from noxu.registry.draft import Environment, Outcome, WriteRequest, Written
from noxu.registry.offload import imported
from noxu.registry.trace import Trace

Driver: TypeAlias = Callable[
    [Environment, WriteRequest, "Outcome | None", "Trace | None"], Coroutine[Any, Any, Written]
]


class Writer:
    """Runs the writes of clients, for all resources."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._driver: Driver | None = None

    def write(
        self, request: WriteRequest, outcome: Outcome | None = None, trace: Trace | None = None
    ) -> Coroutine[Any, Any, Written]:
        """Run the stages of a request. Raises ApiError, StoreError.

        `outcome` collects warnings and annotations, also of a refused write. `trace` collects a step for each stage; None
        disables tracing.
        """
        driver = self._driver or self._first
        return driver(self.environment, request, outcome, trace)

    async def _first(
        self, environment: Environment, request: WriteRequest, outcome: Outcome | None, trace: Trace | None
    ) -> Written:
        """Import the driver, and write."""
        driver: Driver = (await imported("noxu.registry.write")).write
        self._driver = driver
        return await driver(environment, request, outcome, trace)
