"""Simulated pods and nodes of a running server: let pods fail and recover, say what commands in them answer, lose nodes.

    GET    /_noxu/pods                  the rules: what pods do, and what commands in them answer
    POST   /_noxu/pods                  {"pods": "web-*", "simulate": "crash-loop"}; "ready" and "recover" take it back
    DELETE /_noxu/pods                  forget all rules
    POST   /_noxu/pods/exec             {"pods": "web-*", "command": ["pg_isready"], "stdout": "", "code": 0}
    GET    /_noxu/nodes                 the simulated nodes, and whether they are lost
    POST   /_noxu/nodes/{node}/lose     nothing is heard of a node any more
    POST   /_noxu/nodes/{node}/restore  it is back

A rule holds for pods that come later, too, and goes before their annotation `noxu.dev/simulate`. A lost node has that annotation.
The pods that exist have changed when a call returns, unless what was asked takes object time.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.control.arguments import BOOLEAN, INTEGER, TEXT, TEXTS, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.running import Control
from noxu.registry.access import User
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.resource import MERGE_PATCH
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.workloads.kubelet.commands import Commands
    from noxu.workloads.kubelet.kubelet import Kubelet

PODS: Final = "/_noxu/pods"
NODES: Final = "/_noxu/nodes"
COMMANDS: Final = "noxu.workloads.kubelet.commands"
SIMULATE: Final = "noxu.dev/simulate"
LOST: Final = "node-lost"
WRITER: Final = User("noxu:workloads", groups=("system:masters",))
MANAGER: Final = "noxu-workloads"
NO_NODES: Final = "this server has no simulated nodes: start it with --nodes 1, or nodes=1"


class Workloads:
    """The simulated pods and nodes of one server: a part of its `Control`. All methods raise ApiError."""

    def __init__(self, control: Control) -> None:
        self._control = control

    @property
    def kubelet(self) -> Kubelet:
        found = next((each for each in self._control.server.plane.all_controllers if each.name == "kubelet"), None)
        if found is None:
            raise ApiError(409, NO_NODES, "Conflict", {})
        return cast("Kubelet", found)

    @property
    def commands(self) -> Commands:
        found = self._control.server.plane.commands
        if found is None:
            raise ApiError(409, NO_NODES, "Conflict", {})
        return found

    def rules(self) -> Object:
        """The rules, the oldest first."""
        pods = [{"pods": rule.pods, "simulate": rule.text} for rule in self.kubelet.simulation.rules]
        commands = [
            {"pods": rule.pods, "command": list(rule.command), "exact": rule.exact, **rule.result._asdict()}
            for rule in self.commands.rules
        ]
        return {"rules": pods, "exec": commands}

    async def simulate(self, pods: str, text: str) -> Object:
        """Add a rule. The pods that are concerned now."""
        kubelet = self.kubelet
        try:
            concerned = kubelet.simulate(pods, text)
        except ValueError as error:
            raise _invalid("simulate", str(error)) from None
        await kubelet.observed()
        for key in concerned:
            await kubelet.queue.processed(key)
        return {"pods": pods, "simulate": text, "concerned": ["/".join(key) for key in concerned]}

    async def forget(self) -> Object:
        """Have no rules any more."""
        self.kubelet.simulation.rules.clear()
        self.commands.rules.clear()
        for key in self.kubelet.look_again():
            await self.kubelet.queue.processed(key)
        return self.rules()

    def answer(
        self,
        pods: str,
        command: Sequence[str],
        *,
        stdout: str = "",
        stderr: str = "",
        code: int = 0,
        exact: bool = False,
    ) -> Object:
        """Add a rule for commands."""
        types = import_module(COMMANDS)  # few servers have nodes
        self.commands.add(types.CommandRule(pods, tuple(command), types.CommandResult(stdout, stderr, code), exact))
        rule: Object = self.rules()["exec"][-1]
        return rule

    def nodes(self) -> list[Object]:
        """The nodes, in the order of their names."""
        objects = self.kubelet.objects
        found = sorted(objects.all(("", "nodes")), key=lambda node: str(node["metadata"]["name"]))
        return [{"name": node["metadata"]["name"], "lost": _is_lost(node)} for node in found]

    async def lose(self, name: str) -> Object:
        """Lose a node."""
        return await self._annotate(name, LOST)

    async def restore(self, name: str) -> Object:
        """Have a node back."""
        return await self._annotate(name, None)

    async def _annotate(self, name: str, value: str | None) -> Object:
        kubelet, plane = self.kubelet, self._control.server.plane
        resource = plane.served_resources.current.find("", "v1", "nodes")
        assert resource is not None
        patch: Object = {"metadata": {"annotations": {SIMULATE: value}}}
        body = Body(codec.encode(patch, sort_keys=False), MERGE_PATCH)
        options = Options(field_manager=MANAGER)
        await plane.writer.write(
            WriteRequest(Action.PATCH, resource, "", name, body=body, options=options, user=WRITER)
        )
        await kubelet.caught_up()
        return {"name": name, "lost": value is not None}


def _is_lost(node: Object) -> bool:
    return (node["metadata"].get("annotations") or {}).get(SIMULATE) == LOST


def _invalid(field: str, why: str) -> ApiError:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiError(422, f"{field}: {why}", "Invalid", {"causes": causes})


# -- routes -----------------------------------------------------------------------------------------------------------


async def _rules(call: ControlCall) -> Object:
    return call.control.part(Workloads).rules()


async def _simulate(call: ControlCall) -> Object:
    return await call.control.part(Workloads).simulate(call.body["pods"], call.body["simulate"])


async def _forget(call: ControlCall) -> Object:
    return await call.control.part(Workloads).forget()


async def _answer(call: ControlCall) -> Object:
    given = dict(call.body)
    return call.control.part(Workloads).answer(given.pop("pods"), given.pop("command"), **given)


async def _nodes(call: ControlCall) -> Object:
    return {"nodes": call.control.part(Workloads).nodes()}


async def _lose(call: ControlCall) -> Object:
    return await call.control.part(Workloads).lose(call.path["node"])


async def _restore(call: ControlCall) -> Object:
    return await call.control.part(Workloads).restore(call.path["node"])


_OF_PODS: Final = Argument(TEXT, "the name of a pod, or NAMESPACE/NAME; * stands for any text", required=True)
ROUTES: Final = (
    ControlRoute("GET", PODS, _rules, "List the rules for simulated pods, and for commands in them."),
    ControlRoute(
        "POST",
        PODS,
        _simulate,
        "Let pods fail in a way, or recover.",
        body={
            "pods": _OF_PODS,
            "simulate": Argument(
                TEXT,
                "what the annotation noxu.dev/simulate would say; ready, or recover: it is what that says again",
                required=True,
            ),
        },
    ),
    ControlRoute("DELETE", PODS, _forget, "Forget all rules for pods and commands."),
    ControlRoute(
        "POST",
        f"{PODS}/exec",
        _answer,
        "Say what a command in pods answers.",
        body={
            "pods": _OF_PODS,
            "command": Argument(TEXTS, "how the command begins; []: any command", required=True),
            "stdout": Argument(TEXT, "what it writes", ""),
            "stderr": Argument(TEXT, "what it writes as errors", ""),
            "code": Argument(INTEGER, "its exit code", 0),
            "exact": Argument(BOOLEAN, "the command is all of it, not its beginning", False),
        },
    ),
    ControlRoute("GET", NODES, _nodes, "List the simulated nodes, and whether they are lost."),
    ControlRoute("POST", f"{NODES}/{{node}}/lose", _lose, "Lose a node: nothing is heard of it any more."),
    ControlRoute("POST", f"{NODES}/{{node}}/restore", _restore, "Have a lost node back."),
)
