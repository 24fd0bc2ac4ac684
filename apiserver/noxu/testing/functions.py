"""Python functions in the place of webhooks, without TLS and ports.

A function gets the request of a review, decoded. An async function runs in the server's event loop; a plain one runs in
a thread, so it may send requests to the server. Its result becomes a JSON patch, a denial or a failed call, as the
answer of a webhook would. What stands before the calls of webhooks stands before those of functions, too (`Intercepting`).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from noxu.admission.matching import AdmissionRule, Criteria
from noxu.api import codec
from noxu.api.json_patches import difference
from noxu.containment import Contained
from noxu.go import base64 as go_base64
from noxu.http.recent_requests import hook_errors
from noxu.registry.conversion.converters import TIMEOUT
from noxu.testing import addresses
from noxu.values import Json, Object, copy
from noxu.webhook.client import MAX_ANSWER, USER_AGENT, Caller, CallFailed, Intercept, WebhookEndpoint, WebhookReply

if TYPE_CHECKING:
    from noxu.admission.reviews import Hook

Function = Callable[..., Any]

Intercepting = Callable[[], Intercept | None]
"""What a server asks before it calls a webhook, at the moment of a call."""

_CALLING: Final = ("noxu.", "asyncio.", "concurrent.futures.")
"""The modules whose frames are between the server and a function."""


class Denied(Exception):
    """Raised by a function to refuse a request."""

    __module__ = "noxu"  # where it is public: tracebacks show that name

    def __init__(self, message: str = "", *, code: int = 0, reason: str = "") -> None:
        """Without a code the answer has code 400, as for webhooks."""
        super().__init__(message)
        members = {"status": "Failure", "message": message, "code": code, "reason": reason}
        self.status: Object = {name: value for name, value in members.items() if value}


class FunctionError(Exception):
    """A function has raised an exception other than Denied, or returned something invalid."""


@contextlib.contextmanager
def _function_errors() -> Iterator[None]:
    """Log any exception of a user's function, and raise FunctionError instead. Denied propagates."""
    with Contained("a function in place of a webhook", passing=Denied) as contained:
        try:
            yield
        except BaseException as raised:
            raised.__traceback__ = _of_function(raised.__traceback__)
            raise
    if (error := contained.error) is not None:
        _remember(error)
        raise FunctionError(f"{type(error).__name__}: {error}") from error.with_traceback(
            _of_function(error.__traceback__)
        )


def _of_function(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the function: neither ours nor that of threads. The whole without such a part."""
    frame = trace
    while frame is not None and frame.tb_frame.f_globals.get("__name__", "").startswith(_CALLING):
        frame = frame.tb_next
    return frame or trace


def _remember(error: Exception) -> None:
    """Keep an exception of a user's function for the error of the request that it was called for."""
    errors = hook_errors.get()
    if errors is not None:
        errors.append(error)


def hook(
    function: Function,
    resource: str,
    *,
    mutating: bool,
    operations: Iterable[str] = addresses.WRITES,
    version: str = addresses.ANY,
    name: str = "",
    reinvoke: bool = False,
    intercepting: Intercepting = lambda: None,
) -> Hook:
    """A function as a webhook. `resource` is `widgets.example.com`, or with a subresource `widgets.example.com/status`."""
    from noxu.admission.reviews import Hook  # knows the engine of CEL, which few tests need

    plural, group, subresource = addresses.parts(resource)
    rule = AdmissionRule(frozenset(operations), frozenset([group]), frozenset([version]), ((plural, subresource),))
    name = name or getattr(function, "__name__", "function")
    return Hook(
        f"in process/{name}/{id(function)}",
        "in process",
        name,
        Criteria((rule,)),
        _endpoint(name),
        caller=_caller(function, _mutation if mutating else _validation, intercepting),
        reinvoke=reinvoke,
    )


def _endpoint(name: str) -> WebhookEndpoint:
    return WebhookEndpoint(f"function://{name}")


async def _run(function: Function, *arguments: Json) -> Json:
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    return await asyncio.to_thread(function, *arguments)


Answer = Callable[[Function, Object], Awaitable[Object]]


def _caller(function: Function, answer: Answer, intercepting: Intercepting) -> Caller:
    async def call(
        endpoint: WebhookEndpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - as for every caller
        user_agent: str = USER_AGENT,  # noqa: ARG001
        limit: int = MAX_ANSWER,  # noqa: ARG001
    ) -> WebhookReply:
        intercept = intercepting()
        if intercept is not None and (reply := await intercept(endpoint, body, timeout)) is not None:
            return reply
        review = codec.decode_stored(body)
        request = review["request"]
        try:
            async with asyncio.timeout(timeout):
                with _function_errors():
                    response = await answer(function, request)
        except Denied as denied:
            _remember(denied)
            response = {"allowed": False, "status": denied.status}
        except TimeoutError:
            raise CallFailed("context deadline exceeded") from None
        except FunctionError as error:
            raise CallFailed(str(error)) from error
        review["response"] = {"uid": request["uid"], **response}
        return WebhookReply(200, "application/json", codec.encode(review, sort_keys=False))

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
    return {"allowed": True, "patchType": "JSONPatch", "patch": go_base64.encode(patch)}


async def _validation(function: Function, request: Object) -> Object:
    """A validating function returns None or True to allow, False or a message to deny, or a whole response."""
    outcome = await _run(function, request)
    if isinstance(outcome, dict):
        return outcome
    if isinstance(outcome, str):
        return {"allowed": False, "status": Denied(outcome).status}
    return {"allowed": outcome is not False}


def converter(
    function: Function, intercepting: Intercepting = lambda: None
) -> Callable[[str, Object], Awaitable[Object]]:
    """A function (object, apiVersion) → object as a converter; it may also change the object and return None."""

    async def convert(definition: str, request: Object) -> Object:
        if (intercept := intercepting()) is not None:
            body = codec.encode({"kind": "ConversionReview", "request": request}, sort_keys=False)
            await intercept(_endpoint(definition), body, TIMEOUT)  # nothing answers a conversion
        api_version, converted = request["desiredAPIVersion"], []
        try:
            with _function_errors():
                for value in request["objects"]:
                    new = await _run(function, value, api_version)
                    new = value if new is None else new
                    new["apiVersion"] = api_version
                    converted.append(new)
        except Denied as denied:
            _remember(denied)
            return {"uid": request["uid"], "result": denied.status}
        except FunctionError as error:
            return {"uid": request["uid"], "result": {"status": "Failure", "message": str(error)}}
        return {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}

    return convert
