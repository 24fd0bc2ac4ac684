"""Simulated pods and nodes in tests: `noxu.pods` and `noxu.nodes`, of a server with `nodes=`.

    noxu.pods.fail("web-1", "crash-loop")           # also for a pod that comes later; see kubelet.behaviours for what there is
    noxu.pods.ready("web-1")                        # and it recovers
    noxu.pods.exec("web-*", ["pg_isready"], stdout="accepting connections")
    noxu.nodes.lose("node-2")
    noxu.nodes.restore("node-2")
    await noxu.nodes.lose("node-2")                 # in a coroutine

See `noxu.control.workloads` for what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

from noxu.control.workloads import Workloads
from noxu.testing import calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableObject, AwaitableObjects

__tracebackhide__ = hidden


class _SimulatedPart:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def _call(self, name: str, work: Callable[[Workloads], Awaitable[Object]]) -> AwaitableObject:
        async def answered() -> AnsweredCall[Object]:
            return AnsweredCall(await work(self._runner.running.control.part(Workloads)))

        return cast("AwaitableObject", calls.call(self._runner, name, answered))


class SimulatedPods(_SimulatedPart):
    """`noxu.pods`. `pods` is the name of a pod, or NAMESPACE/NAME; * stands for any text. Methods raise ApiError."""

    def fail(self, pods: str, how: str) -> AwaitableObject:
        """Let pods fail, as the annotation `noxu.dev/simulate` says it: `crash-loop`, `exit=3@10s`, `never-ready`."""
        return self._call("pods.fail", lambda part: part.simulate(pods, how))

    def ready(self, pods: str) -> AwaitableObject:
        """Let pods recover, whatever their annotations say."""
        return self.fail(pods, "ready")

    def recover(self, pods: str) -> AwaitableObject:
        """Let pods do what their annotations say again; those without one are ready."""
        return self.fail(pods, "recover")

    def exec(
        self,
        pods: str,
        command: Sequence[str] = (),
        *,
        stdout: str = "",
        stderr: str = "",
        code: int = 0,
        exact: bool = False,
    ) -> AwaitableObject:
        """Say what a command in pods answers. `command` is how it begins, () any; with `exact` it is all of it."""

        async def answer(part: Workloads) -> Object:
            return part.answer(pods, command, stdout=stdout, stderr=stderr, code=code, exact=exact)

        return self._call("pods.exec", answer)

    def forget(self) -> AwaitableObject:
        """Forget all rules: pods do what their annotations say."""
        return self._call("pods.forget", lambda part: part.forget())

    def rules(self) -> AwaitableObject:
        """The rules: `rules` for pods, and `exec` for commands in them."""

        async def listed(part: Workloads) -> Object:
            return part.rules()

        return self._call("pods.rules", listed)


class SimulatedNodes(_SimulatedPart):
    """`noxu.nodes`. Methods raise ApiError."""

    def lose(self, node: str) -> AwaitableObject:
        """Nothing is heard of a node any more, and nothing happens on it."""
        return self._call("nodes.lose", lambda part: part.lose(node))

    def restore(self, node: str) -> AwaitableObject:
        """The node is back."""
        return self._call("nodes.restore", lambda part: part.restore(node))

    def list(self) -> AwaitableObjects:
        """The nodes: `name`, and whether they are `lost`."""

        async def listed() -> AnsweredCall[list[Object]]:
            return AnsweredCall(self._runner.running.control.part(Workloads).nodes())

        return cast("AwaitableObjects", calls.call(self._runner, "nodes.list", listed))


class WorkloadCalls:
    """The part of the handle about simulated pods and nodes."""

    _runner: Runner

    @property
    def pods(self) -> SimulatedPods:
        """The simulated pods: let them fail and recover, and say what commands in them answer."""
        return SimulatedPods(self._runner)

    @property
    def nodes(self) -> SimulatedNodes:
        """The simulated nodes: lose them, and have them back."""
        return SimulatedNodes(self._runner)
