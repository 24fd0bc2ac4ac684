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
from noxu.api.names import is_named_like
from noxu.config import StartError
from noxu.containment import Contained
from noxu.control.arguments import INTEGER, OBJECTS, Argument
from noxu.control.calls import ControlCall, ControlRoute, Created
from noxu.control.fault_triggers import WRITER, TriggerWatcher, mutate
from noxu.control.faults import plans, rules
from noxu.control.faults.armed import Armed, Asked, chance
from noxu.control.faults.rules import Rule
from noxu.control.faults.store import FaultyWrites
from noxu.control.programs import Programs
from noxu.control.running import Control
from noxu.control.workloads import NO_NODES, Workloads
from noxu.features import meant
from noxu.registry import kind_names
from noxu.registry.authors import Author, writing_as
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from noxu_storage.types import Key, Revision

PATH: Final = "/_noxu/faults"
DEFAULT_LIMIT: Final = 500
NO_PROGRAM: Final = (
    "only a program that Noxu has started is killed and paused, and there is none: start it with "
    "`noxu run --restart -- COMMAND`, or --restart=0 to run it once"
)


class Faults:
    """The faults of one server: a part of its `Control`."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self.armed = Armed()
        self._waiting: asyncio.Task[None] | None = None
        self._acting: set[asyncio.Task[None]] = set()
        self._restarted: set[str] = set()
        self._triggers: TriggerWatcher | None = None
        self._of_pods: list[Rule] = []
        self._failed_pods: set[tuple[str, str]] = set()
        control.closing.push_async_callback(self._stop)

    def add(self, values: Sequence[Json], revision: Revision = 0) -> list[Rule]:
        """Add rules; `revision` is what views among them show, 0: the newest one. Raises ApiError."""
        added = self._parsed(values, [rule.name for rule in self.armed.rules])
        server = self._control.server
        self.armed.add(added, server.clock.now(), revision or server.plane.cache.revision)
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
        self.armed.remove(name, self._control.server.plane.cache.revision)
        self._switch()

    def clear(self) -> None:
        server = self._control.server
        self.armed.replace((), self.armed.seed, server.clock.now(), server.plane.cache.revision)
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
        self._control.server.interventions.let_go()
        self._follow(None)
        for task in (self._waiting, *self._acting):
            if task is not None:
                task.cancel()

    def _begin_restarts(self) -> None:
        """End all watches when a restart begins; its requests break by themselves."""
        server, now = self._control.server, self._control.server.clock.now()
        beginning = {rule.name for rule, begins in self.armed.restarts if begins <= now}
        if beginning - self._restarted:
            server.interventions.end_watches()
        self._restarted = beginning

    # -- simulated pods

    def _fail_pods(self) -> None:
        """Let the pods fail that the rules which are on select, and no others."""
        rules = self.armed.of_pods(self._control.server.clock.now())
        if rules == self._of_pods:
            return
        self._of_pods, self._failed_pods = rules, set()
        kubelet = self._control.part(Workloads).kubelet
        kubelet.simulation.selected = self._failure_of if rules else None
        kubelet.look_again()

    def _failure_of(self, pod: Object) -> str:
        """What the newest rule that selects a pod says of it, "": nothing does."""
        metadata = pod["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        for rule in reversed(self._of_pods):
            match, wanted = rule.match, rule.effect.parameters
            if match.namespace not in (None, namespace) or match.name not in (None, name):
                continue
            if not wanted["selector"].matches(metadata.get("labels") or {}):
                continue
            if wanted["pods"] and not is_named_like(wanted["pods"], namespace, name):
                continue
            if chance(self.armed.seed, f"{rule.name}/{namespace}/{name}", 0) >= rule.limits.probability:
                continue
            if (rule.name, metadata["uid"]) not in self._failed_pods:
                self._failed_pods.add((rule.name, metadata["uid"]))
                self.armed.note(
                    rule, Asked("", "pods", "", namespace, name, "", "", ""), self._control.server.clock.now()
                )
            return str(wanted["simulate"])
        return ""

    # -- triggers

    def _watch_triggers(self) -> None:
        """Follow the log while rules wait for a trigger."""
        waiting = self.armed.waiting
        self._follow(TriggerWatcher(self._control.server.plane, waiting, self._fired) if waiting else None)

    def _follow(self, watcher: TriggerWatcher | None) -> None:
        watchers = self._control.server.plane.cache.watchers
        if self._triggers is not None:
            watchers.pop(self._triggers, None)
        if watcher is not None:
            # what the watcher before has counted goes on with the rules that still wait
            watcher.seen = {} if self._triggers is None else self._triggers.seen
            watchers[watcher] = None
        self._triggers = watcher

    def _fired(self, rule: Rule, resource: Resource, key: Key) -> None:
        """The trigger of a rule has fired, by a change of an object."""
        assert rule.trigger is not None
        if not rule.trigger.after and rule.effect.kind != "mutate":
            self._arm(rule)  # before the writer of the change is answered
            if rule.scope == "act":
                self._strike(rule, resource, key)
            return
        task = asyncio.ensure_future(self._act(rule, resource, key))
        self._acting.add(task)
        task.add_done_callback(self._acting.discard)

    def _arm(self, rule: Rule) -> None:
        server = self._control.server
        if any(waiting.name == rule.name for waiting in self.armed.waiting):  # else it was cleared meanwhile
            self.armed.arm(rule.name, server.clock.now(), server.plane.cache.revision)
            asyncio.get_running_loop().call_soon(self._switch)  # not among the watchers of the log, which it changes

    async def _act(self, rule: Rule, resource: Resource, key: Key) -> None:
        server = self._control.server
        assert rule.trigger is not None
        if rule.trigger.after:
            await server.clock.sleep(rule.trigger.after)
        if all(waiting.name != rule.name for waiting in self.armed.waiting):
            return
        self._arm(rule)
        if rule.effect.kind == "process" and rule.scope == "act":
            self._strike(rule, resource, key)
        if rule.effect.kind == "mutate":
            with Contained(f"the fault {rule.name}"), writing_as(Author(verb="patch", user=WRITER.name)):
                self.armed.note(
                    rule, await mutate(server.plane, rule.effect.parameters, resource, key), server.clock.now()
                )

    def _strike(self, rule: Rule, resource: Resource, key: Key) -> None:
        """Kill, pause or resume the programs, because of a change of an object."""
        server, wanted = self._control.server, rule.effect.parameters
        self._control.part(Programs).strike(wanted["what"], wanted["seconds"])
        named = str(resource.group_resource), "", key.partition.removesuffix("/"), key.name
        self.armed.note(rule, Asked("", *named, "", "", ""), server.clock.now())

    def _parsed(self, values: Sequence[Json], names: Sequence[str]) -> list[Rule]:
        """The rules, whose resources have their full names. Raises ApiError."""
        parsed = []
        for n, rule in enumerate(rules.parse(values, names)):
            match, trigger, path = rule.match, rule.trigger, f"rules[{n}]"
            if match.resource not in (None, "*"):
                match = match._replace(resource=self._named(str(match.resource), f"{path}.match.resource"))
            elif match.resource == "*":
                match = match._replace(resource=None)
            if trigger is not None:
                resource = self._named(trigger.resource, f"{path}.trigger.{trigger.happening}")
                trigger = trigger._replace(resource=resource)
            if rule.effect.kind == "pod" and self._control.server.config.nodes is None:
                raise _refused(NO_NODES, f"{path}.pod")
            if rule.effect.kind == "process" and not self._control.part(Programs):
                raise _refused(NO_PROGRAM, f"{path}.process")
            if rule.effect.parameters.get("resource"):
                self._named(rule.effect.parameters["resource"], f"{path}.{rule.effect.kind}.resource")
            parsed.append(rule._replace(match=match, trigger=trigger))
        return parsed

    def _named(self, resource: str, path: str) -> str:
        """The full name of a resource. Raises ApiError for one that is not served."""
        try:
            return str(kind_names.find(self._control.server.plane.served_resources.current, resource).group_resource)
        except LookupError as error:
            raise _refused(str(error), path) from None

    def _switch(self) -> None:
        """Have the filter and the wrapper of the store while rules need them."""
        server = self._control.server
        self._watch_triggers()
        self._begin_restarts()
        self._fail_pods()
        server.retention.shown = self.armed.oldest_shown()
        server.interventions.hit_requests(self.armed or None, self._control.part(Programs))
        self._wait_for_views()
        if not any(rule.effect.kind == "process" for rule in self.armed.rules):
            self._control.part(Programs).resume_paused()
        needs_store = any(rule.effect.kind == "store" for rule in self.armed.rules)
        server.plane.persistence.writes = FaultyWrites(server.plane.store) if needs_store else server.plane.store


def _refused(why: str, path: str) -> ApiError:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": path}]
    return ApiError(422, f"the faults are invalid: {path}: {why}", "Invalid", {"causes": causes})


def begin(control: Control) -> None:
    """Have the faults of the configuration. Raises StartError."""
    config = control.server.config
    try:
        text = config.faults.read_text("utf-8") if config.faults else "{}"
        plan = plans.read(text)
        late = [plans.latency(config.latency)] if config.latency else []
        rules_ = [*late, *plans.preset_rules([*config.presets]), *plan.rules, *config.fault_rules]
        control.part(Faults).replace(rules_, plan.seed if config.fault_seed is None else config.fault_seed)
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(
            f"--faults {config.faults} cannot be read: {getattr(error, 'strerror', '') or error}"
        ) from None
    except ApiError as error:
        option = f"--faults {config.faults}" if config.faults else f"--latency {config.latency}"
        if config.presets and not config.faults:
            option = f"--preset {' --preset '.join(config.presets)}"
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
    return {
        "fired": [hit.described() for hit in newest],
        "total": armed.number_fired,
        "seed": armed.seed,
        "rules": [rule.source for rule in armed.rules],
    }


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
