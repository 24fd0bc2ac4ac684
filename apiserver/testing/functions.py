"""Python functions as webhooks: no TLS, no ports, and everything else as it is for a webhook elsewhere.

A function gets what a review would bring: the same documents, decoded. It may be async, and then runs in the server's
event loop; a plain one runs in a thread, so it may ask the server. What it does is a JSON patch, a denial or a failed
call, and is treated as such.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from apiserver.admission.matching import Criteria, Rule
from apiserver.admission.webhooks import Hook
from apiserver.api import codec, gobase64
from apiserver.api.difference import difference
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.webhook.client import MAX_ANSWER, USER_AGENT, Caller, CallFailed, Endpoint, Reply

Function = Callable[..., Any]

WRITES: Final = ("CREATE", "UPDATE")

log = logging.getLogger("noxu")


class Denied(Exception):
    """Raised by a function to refuse what it is asked about."""

    def __init__(self, message: str = "", *, code: int = 0, reason: str = "") -> None:
        """Without a code it is 400, as for webhooks."""
        super().__init__(message)
        given = {"status": "Failure", "message": message, "code": code, "reason": reason}
        self.status: Object = {name: value for name, value in given.items() if value}


def hook(
    function: Function,
    resource: str,
    *,
    mutating: bool,
    operations: Iterable[str] = WRITES,
    version: str = "*",
    name: str = "",
    reinvoke: bool = False,
) -> Hook:
    """A function as a webhook. `resource` is like `widgets.example.com`, or `widgets.example.com/status`."""
    what, _, subresource = resource.partition("/")
    plural, _, group = what.partition(".")
    rule = Rule(frozenset(operations), frozenset([group]), frozenset([version]), ((plural, subresource),))
    name = name or getattr(function, "__name__", "function")
    return Hook(
        f"in process/{name}/{id(function)}",
        "in process",
        name,
        Criteria((rule,)),
        Endpoint(f"function://{name}"),
        caller=_caller(function, _mutation if mutating else _validation),
        again=reinvoke,
    )


async def _run(function: Function, *arguments: Json) -> Json:
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    return await asyncio.to_thread(function, *arguments)


Answer = Callable[[Function, Object], Awaitable[Object]]


def _caller(function: Function, answer: Answer) -> Caller:
    async def call(
        endpoint: Endpoint,  # noqa: ARG001
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - as for every caller
        user_agent: str = USER_AGENT,  # noqa: ARG001
        limit: int = MAX_ANSWER,  # noqa: ARG001
    ) -> Reply:
        review = codec.decode_stored(body)
        request = review["request"]
        try:
            async with asyncio.timeout(timeout):
                response = await answer(function, request)
        except Denied as denied:
            response = {"allowed": False, "status": denied.status}
        except TimeoutError:
            raise CallFailed("context deadline exceeded") from None
        except Exception as error:
            log.exception("a function that stands for a webhook failed")
            raise CallFailed(f"{type(error).__name__}: {error}") from error
        review["response"] = {"uid": request["uid"], **response}
        return Reply(200, "application/json", codec.encode(review, sort_keys=False))

    return call


async def _mutation(function: Function, request: Object) -> Object:
    """A mutating function changes `request["object"]`, or returns a new object, a JSON patch or a whole response."""
    before = copy(request["object"])
    outcome = await _run(function, request)
    if isinstance(outcome, dict) and "allowed" in outcome:
        return outcome
    if not isinstance(outcome, list):
        after = outcome if isinstance(outcome, dict) else request["object"]
        outcome = difference(before, after)
    if not outcome:
        return {"allowed": True}
    patch = codec.encode(outcome, sort_keys=False)
    return {"allowed": True, "patchType": "JSONPatch", "patch": gobase64.encode(patch)}


async def _validation(function: Function, request: Object) -> Object:
    """A validating function returns nothing or True to allow, False or a message to deny, or a whole response."""
    outcome = await _run(function, request)
    if isinstance(outcome, dict):
        return outcome
    if isinstance(outcome, str):
        raise Denied(outcome)
    return {"allowed": outcome is not False}


def converter(function: Function) -> Callable[[str, Object], Awaitable[Object]]:
    """A function (object, apiVersion) → object as what converts a definition's objects; it may change the object."""

    async def convert(_: str, request: Object) -> Object:
        wanted, converted = request["desiredAPIVersion"], []
        try:
            for value in request["objects"]:
                new = await _run(function, value, wanted)
                new = value if new is None else new
                new["apiVersion"] = wanted
                converted.append(new)
        except Denied as denied:
            return {"uid": request["uid"], "result": denied.status}
        except Exception as error:
            log.exception("a function that converts failed")
            status = {"status": "Failure", "message": f"{type(error).__name__}: {error}"}
            return {"uid": request["uid"], "result": status}
        return {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}

    return convert
