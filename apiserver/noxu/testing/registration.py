"""The functions that a test registers in the place of webhooks, and whether they will ever be called.

The resource of a function must exist when the function is registered, or be announced (`later=True`). An announced
resource that is never served is an error at the end: the function was never called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from noxu.registry.served_resources import ServedResources
from noxu.testing import addresses, calls, functions
from noxu.testing.errors import UnknownKind, hidden
from noxu.testing.session import Runner
from noxu.webhook.client import Intercept

__tracebackhide__ = hidden

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Announced(NamedTuple):
    """A function for what is defined later: how a message names both, and whether that is among served resources."""

    text: str
    is_served: Callable[[ServedResources], bool]


class Registration:
    """The part of the handle that registers functions."""

    _runner: Runner
    _announced: list[Announced]
    """What has not been served yet."""

    def mutating(
        self,
        resource: str,
        *,
        operations: Iterable[str] = addresses.WRITES,
        version: str = addresses.ANY,
        name: str = "",
        reinvoke: bool = False,
        later: bool = False,
    ) -> Callable[[F], F]:
        """Decorates a function that is called like a mutating webhook; see docs/testing.md.

        `resource` is `widgets.example.com`, or with a subresource `widgets.example.com/status`; `*` stands for any of the
        three names. `operations` are `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`. The function gets objects in `version`
        (`*`: in the version of the request). `reinvoke`: reinvocationPolicy IfNeeded. `later`: the resource is defined later;
        if it never is, that is an error at the end.

        Raises UnknownKind for a resource that is not served, and ValueError for other names that are unknown, and if the
        plug-in that calls mutating webhooks is disabled.
        """
        return self._registering(True, resource, operations, version, name, reinvoke, later)

    def validating(
        self,
        resource: str,
        *,
        operations: Iterable[str] = addresses.WRITES,
        version: str = addresses.ANY,
        name: str = "",
        later: bool = False,
    ) -> Callable[[F], F]:
        """Decorates a function that is called like a validating webhook; see `mutating`."""
        return self._registering(False, resource, operations, version, name, False, later)

    def converting(self, definition: str, *, later: bool = False) -> Callable[[F], F]:
        """Decorates a function (object, apiVersion) → object that converts the objects of a CRD.

        It takes the place of the CRD's `spec.conversion`. `definition` is the name of the CRD; `later`: see `mutating`.
        Raises UnknownKind for a CRD that is not served.
        """
        _require_text(definition, "definition")
        plane = self._runner.running.plane
        if not later:
            addresses.definition(definition, plane.served_resources.current)

        def register(function: F) -> F:
            convert = functions.converter(function, self._intercepting)
            if later:
                self._announce(
                    Announced(
                        f"converting {definition}", lambda served_resources: definition in served_resources.defined
                    )
                )
            self._soon(lambda: plane.convert_in_process(definition, convert))
            return function

        return register

    def _registering(
        self,
        mutating: bool,
        resource: str,
        operations: str | Iterable[str],
        version: str,
        name: str,
        reinvoke: bool,
        later: bool,
    ) -> Callable[[F], F]:
        verb, plugin = ("mutating", "Mutating") if mutating else ("validating", "Validating")
        if f"{plugin}AdmissionWebhook" not in self._runner.config.admission_plugins:
            raise ValueError(
                f"the function would not be called: the admission plug-in {plugin}AdmissionWebhook is disabled"
            )
        _require_text(resource, "resource")
        chosen = addresses.operations(operations)
        rule = addresses.FunctionRule(resource, version, chosen)
        plane = self._runner.running.plane
        if not later:
            rule.check(plane.served_resources.current)
        chain = plane.admission

        def register(function: F) -> F:
            hook = functions.hook(
                function,
                resource,
                mutating=mutating,
                operations=chosen,
                version=version,
                name=name,
                reinvoke=reinvoke,
                intercepting=self._intercepting,
            )
            if later:
                self._announce(Announced(f"{verb} {resource}, {hook.name}", rule.is_served))
            (chain.local_mutating if mutating else chain.local_validating).append(hook)
            return function

        return register

    def _intercepting(self) -> Intercept | None:
        """What the server that runs now asks before it calls a webhook: faults, as long as there are rules about webhooks."""
        return self._runner.running.outgoing.intercept

    def _soon(self, register: Callable[[], object]) -> None:
        """Register in the loop of the server, before any request that is sent from now on."""
        done: Future[None] = Future()

        def run() -> None:
            register()
            done.set_result(None)

        self._runner.loop.call_soon_threadsafe(run)
        if not calls.in_coroutine():
            done.result()

    # -- what is defined later

    def _announce(self, announced: Announced) -> None:
        self._announced.append(announced)
        self._soon(self._follow_catalog)

    def _follow_catalog(self) -> None:
        """See each set of served resources of the server from now on. In its loop."""
        followers = self._runner.running.plane.served_resources.followers
        if self._see_catalog not in followers:
            followers.append(self._see_catalog)
        self._see_catalog()

    def _see_catalog(self) -> None:
        served_resources = self._runner.running.plane.served_resources.current
        self._announced = [announced for announced in self._announced if not announced.is_served(served_resources)]

    def _check_announced(self) -> None:
        """Raises UnknownKind for functions that were never called, because what they are for was never served."""
        never, self._announced = self._announced, []
        if never:
            texts = "; ".join(announced.text for announced in never)
            raise UnknownKind(f"never called: no such resource was served until the end: {texts}")


def _require_text(text: object, what: str) -> None:
    """Raises TypeError, as for a decorator without its argument."""
    if not isinstance(text, str):
        raise TypeError(f"the {what} is missing: its name comes first, and not {text!r}")
