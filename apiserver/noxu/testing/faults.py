"""Faults of the server, as the handle has them.

    with noxu.fault(resource="widgets", verbs=["update"], error="Conflict", times=3) as fault:
        reconcile()
    assert fault.hits == 3

    with noxu.faults("plan.yaml"):          # or a plan, or a list of rules
        …
    noxu.fired()                            # what was hit, the oldest first

See `noxu.control.faults.rules` for what a rule has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from noxu.control.fault_routes import Faults
from noxu.control.faults import plans
from noxu.control.faults.rules import from_arguments
from noxu.testing import calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner
from noxu.values import Object

__tracebackhide__ = hidden

Plan = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class InjectedFaults:
    """Rules that are on while the context is open: `with`, or `async with`. It may be opened again."""

    def __init__(self, runner: Runner, rules: Sequence[Object], seed: int | None) -> None:
        self._runner = runner
        self._rules = rules
        self._seed = seed
        self._names: list[str] = []
        self._fired_before = 0
        """How many hits there were when the context was opened: a name is free again when its rule is cleared."""

    @property
    def hits(self) -> int:
        """How many requests were hit since the context was opened."""
        return len(self.fired)

    @property
    def fired(self) -> list[Object]:
        """The hits since the context was opened, the oldest first."""
        armed = self._part.armed
        before = len(armed.fired) - (armed.number_fired - self._fired_before)
        return [hit.described() for hit in [*armed.fired][max(before, 0) :] if hit.rule.name in self._names]

    @property
    def _part(self) -> Faults:
        return self._runner.running.control.part(Faults)

    async def _add(self) -> None:
        part = self._part
        if self._seed is not None:
            part.armed.seed = self._seed
        self._fired_before = part.armed.number_fired
        self._names = [rule.name for rule in part.add(self._rules)]

    async def _remove(self) -> None:
        part = self._part
        there = {rule.name for rule in part.armed.rules}
        for name in self._names:
            if name in there:  # else it was cleared meanwhile
                part.remove(name)

    def __enter__(self) -> Self:
        calls.blocking(self._runner.submit(self._add()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:
            calls.blocking(self._runner.submit(self._remove()))

    async def __aenter__(self) -> Self:
        await calls.awaited(self._runner, self._add())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:
            await calls.awaited(self._runner, self._remove())


class FaultInjection:
    """The part of the handle that breaks things."""

    _runner: Runner

    def fault(self, **rule: Any) -> InjectedFaults:
        """One rule, while the context is open. The fields of its match are spread: `resource="widgets", verbs=["update"]`.

        Raises ApiError, when it is opened, for what is misspelt or contradicts itself.
        """
        return InjectedFaults(self._runner, [from_arguments(rule)], None)

    def faults(self, plan: Plan, *, seed: int | None = None) -> InjectedFaults:
        """Rules of a plan: a file of YAML, a mapping with `rules` and `seed`, or a list of rules. Raises ApiError, OSError."""
        read = plans.read(Path(plan).read_text("utf-8")) if isinstance(plan, str | os.PathLike) else plans.checked(plan)
        return InjectedFaults(self._runner, read.rules, read.seed if seed is None else seed)

    def rules_by_request(self) -> dict[str, list[str]]:
        """The names of the rules that have hit a request, by its Audit-Id."""
        rules: dict[str, list[str]] = {}
        if self._runner.is_running:
            for hit in tuple(self._runner.running.control.part(Faults).armed.fired):
                rules.setdefault(hit.asked.id, []).append(hit.rule.name)
        return rules

    def fired(self) -> list[Object]:
        """What the faults have hit, the oldest first: `rule`, `number`, `time`, the effect, and the `request`."""

        async def listed() -> AnsweredCall[list[Object]]:
            armed = self._runner.running.control.part(Faults).armed
            return AnsweredCall([hit.described() for hit in armed.fired])

        return calls.call(self._runner, "fired", listed)
