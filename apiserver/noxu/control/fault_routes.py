"""The faults of a running server: add rules, replace them by a plan, see what they have hit, clear them.

    GET    /_noxu/faults            the rules, with how many requests they have matched and hit
    PUT    /_noxu/faults            a plan: {"seed": 7, "rules": […]} replaces all rules
    POST   /_noxu/faults            {"rules": […]} adds rules
    DELETE /_noxu/faults            clear all, or DELETE /_noxu/faults/NAME one
    GET    /_noxu/faults/fired      what was hit, the oldest first

A change of rules is whole or does not happen. While there are none, no request passes a filter of faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from noxu.api.errors import ApiError
from noxu.config import StartError
from noxu.control.arguments import INTEGER, OBJECTS, Argument
from noxu.control.calls import ControlCall, ControlRoute, Created
from noxu.control.faults import plans, rules
from noxu.control.faults.armed import Armed
from noxu.control.faults.rules import Rule
from noxu.control.faults.store import FaultyWrites
from noxu.control.running import Control
from noxu.features import meant
from noxu.registry import kind_names
from noxu.values import Json, Object

PATH: Final = "/_noxu/faults"
DEFAULT_LIMIT: Final = 500


class Faults:
    """The faults of one server: a part of its `Control`."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.armed = Armed()
        self._waiting: asyncio.Task[None] | None = None
        control.closing.push_async_callback(self._stop)

    def add(self, values: Sequence[Json]) -> list[Rule]:
        """Add rules. Raises ApiError."""
        added = self._parsed(values, [rule.name for rule in self.armed.rules])
        server = self._control.server
        self.armed.add(added, server.clock.now(), server.plane.cache.revision)
        self._switch()
        return added

    def replace(self, values: Sequence[Json], seed: int) -> None:
        """Have these rules only, which have seen nothing. Raises ApiError."""
        server = self._control.server
        self.armed.replace(self._parsed(values, ()), seed, server.clock.now(), server.plane.cache.revision)
        self._switch()

    def remove(self, name: str) -> None:
        """Raises ApiError NotFound."""
        names = [rule.name for rule in self.armed.rules]
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "there are none"
            raise ApiError(404, f'there is no fault "{name}"; {there}{meant(name, names)}', "NotFound", {})
        self.armed.remove(name)
        self._switch()

    def clear(self) -> None:
        self.armed.replace((), self.armed.seed, self._control.server.clock.now())
        self._switch()

    def _wait_for_views(self) -> None:
        """Look at the streams again when a view begins or ends by itself."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        now = self._control.server.clock.now()
        if (due := self.armed.next_change(now)) is not None:
            self._waiting = asyncio.ensure_future(self._look_again((due - now).total_seconds()))

    async def _look_again(self, seconds: float) -> None:
        await self._control.server.clock.sleep(seconds)
        self._waiting = None  # this task, which must not cancel itself
        self._switch()

    async def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _parsed(self, values: Sequence[Json], names: Sequence[str]) -> list[Rule]:
        served = self._control.server.plane.served_resources.current
        parsed = rules.parse(values, names)
        for n, rule in enumerate(parsed):
            resource = rule.match.resource
            if resource is not None and resource != "*":
                try:
                    named = str(kind_names.find(served, resource).group_resource)
                except LookupError as error:
                    path = f"rules[{n}].match.resource"
                    causes = [{"reason": "FieldValueInvalid", "message": str(error), "field": path}]
                    raise ApiError(
                        422, f"the faults are invalid: {path}: {error}", "Invalid", {"causes": causes}
                    ) from None
                parsed[n] = rule._replace(match=rule.match._replace(resource=named))
        return parsed

    def _switch(self) -> None:
        """Have the filter and the wrapper of the store while rules need them."""
        server = self._control.server
        server.retention.shown = self.armed.oldest_shown()
        server.hit_requests(self.armed or None)
        self._wait_for_views()
        needs_store = any(rule.effect.kind == "store" for rule in self.armed.rules)
        server.plane.persistence.writes = FaultyWrites(server.plane.store) if needs_store else server.plane.store


def begin(control: Control) -> None:
    """Have the faults of the configuration. Raises StartError."""
    config = control.server.config
    try:
        text = config.faults.read_text("utf-8") if config.faults else "{}"
        plan = plans.read(text)
        rules_ = [plans.latency(config.latency), *plan.rules] if config.latency else plan.rules
        control.part(Faults).replace(rules_, plan.seed)
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(
            f"--faults {config.faults} cannot be read: {getattr(error, 'strerror', '') or error}"
        ) from None
    except ApiError as error:
        option = f"--faults {config.faults}" if config.faults else f"--latency {config.latency}"
        raise StartError(f"{option}: {error.message}") from None


# -- routes -----------------------------------------------------------------------------------------------------------


async def _list(call: ControlCall) -> Object:
    armed = call.control.part(Faults).armed
    return {"seed": armed.seed, "rules": armed.described(), "fired": armed.number_fired}


async def _replace(call: ControlCall) -> Object:
    call.control.part(Faults).replace(call.body["rules"], call.body["seed"])
    return await _list(call)


async def _add(call: ControlCall) -> Created:
    added = call.control.part(Faults).add(call.body["rules"])
    return Created({"rules": [rule.source for rule in added]})


async def _clear(call: ControlCall) -> Object:
    call.control.part(Faults).clear()
    return await _list(call)


async def _remove(call: ControlCall) -> Object:
    call.control.part(Faults).remove(call.path["name"])
    return await _list(call)


async def _fired(call: ControlCall) -> Object:
    armed, limit = call.control.part(Faults).armed, max(call.query["limit"], 0)
    newest = list(armed.fired)[-limit:] if limit else []
    return {"fired": [hit.described() for hit in newest], "total": armed.number_fired}


_RULES: Final = Argument(OBJECTS, "the rules", required=True)
ROUTES: Final = (
    ControlRoute("GET", PATH, _list, "List the faults."),
    ControlRoute(
        "PUT",
        PATH,
        _replace,
        "Replace all faults by a plan.",
        body={"rules": _RULES, "seed": Argument(INTEGER, "what chance depends on", 0)},
    ),
    ControlRoute("POST", PATH, _add, "Add faults.", body={"rules": _RULES}),
    ControlRoute("DELETE", PATH, _clear, "Clear all faults."),
    ControlRoute("DELETE", f"{PATH}/{{name}}", _remove, "Clear one fault."),
    ControlRoute(
        "GET",
        f"{PATH}/fired",
        _fired,
        "List what was hit, the oldest first.",
        query={"limit": Argument(INTEGER, "how many of the newest", DEFAULT_LIMIT)},
    ),
)
