"""The HTTP server's one handler: filters, routing, errors, and answers on the wire.

aiohttp's low-level server calls `App.handle`; there is no router and no middleware stack. A request is refused, answered
by a document (discovery, health, OpenAPI), or given to the handler of its verb; every ApiError becomes a Status.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion10, web_request, web_response
from aiohttp.web_ws import WebSocketResponse
from multidict import CIMultiDict

from apiserver.api import codec, errors
from apiserver.api.errors import ApiError
from apiserver.http import (
    documents,
    filters,
    handlers,
    negotiation,
    options,
    responses,
    services,
    traces,
    watch,
    websocket,
)
from apiserver.http.answer import Answer, text_answer
from apiserver.http.connection import limit_unsent
from apiserver.http.handlers import Call, Handler
from apiserver.http.request import (
    Query,
    RequestInfo,
    check_namespace,
    decode_path,
    first,
    is_watch,
    parse_query,
    resource_info,
    split_target,
)
from apiserver.http.routes import handler_of
from apiserver.registry.heavy import work
from apiserver.registry.pipeline import User
from apiserver.registry.resource import Resource
from apiserver.registry.sources import new_uuid
from apiserver.registry.store import Registry
from apiserver.registry.trace import Trace
from storage.types import StoreError

HEALTH: Final = ("/healthz", "/livez", "/readyz")
READS: Final = ("get", "list")
REQUEST_DEADLINE: Final = 60.0  # seconds; upstream's --request-timeout. Watches have their own

log = logging.getLogger("noxu")


class App:
    """Answers requests for one registry."""

    def __init__(
        self,
        registry: Registry,
        documents_: documents.Documents,
        own_names: Iterable[str] = (),
        traces_: traces.Traces | None = None,
    ) -> None:
        """Without `traces_` nobody can have a write traced."""
        self.registry = registry
        self.documents = documents_
        self.traces = traces_
        self.own_names = frozenset(own_names)
        self.in_flight = filters.InFlight()
        self.streams: set[watch.Stream] = set()

    def end_watches(self) -> None:
        for stream in list(self.streams):
            stream.stop()

    async def handle(self, request: web_request.BaseRequest) -> web_response.StreamResponse:
        """One request. Whatever happens inside, the client gets an answer."""
        warnings: list[str] = []
        extra: list[tuple[str, str]] = []
        try:
            answer = await self._route(request, warnings, extra)
        except ApiError as error:
            answer = await work(len(error.message), _error_answer, error, request)
        except ConnectionError:
            raise
        except StoreError as failure:
            log.error("%s %s: %s", request.method, request.raw_path[:1000], failure)  # noqa: TRY400 - it is no bug
            answer = _error_answer(errors.internal_error(f"the storage failed: {failure}"), request)
        except Exception:
            log.exception("%s %s", request.method, request.raw_path[:1000])
            answer = _error_answer(errors.internal_error("this is a bug in the server; its log says more"), request)
        if isinstance(answer, web_response.StreamResponse):
            return answer
        return await _send(request, answer, warnings, extra)

    async def _route(
        self, request: web_request.BaseRequest, warnings: list[str], extra: list[tuple[str, str]]
    ) -> Answer | web_response.StreamResponse:
        """Raises ApiError. What is to be told in the answer's headers, whatever becomes of the request, is added to
        `warnings` and `extra`."""
        if request.version < HttpVersion10:
            raise ApiError(400, "", text="400 Bad Request: malformed HTTP version")
        raw_path, raw_query, host = split_target(request.raw_path)
        filters.check_origin(host or request.headers.get("Host", ""), request.headers.get("Origin"), self.own_names)
        path, query = decode_path(raw_path), parse_query(raw_query)
        info = resource_info(request.method, path, query)
        services.check(self.registry.catalog, request.method, path, info)
        if info is None:
            return await self._document(request, path, query)
        check_namespace(info.namespace)
        resource = self._resource(info)
        call = Call(self.registry, request, info, query, resource, User(), warnings)
        if info.verb == "watch" and not info.subresource and "watch" in resource.verbs:
            _warn_deprecated(resource, warnings)
            return await self._watch(call)
        if info.subresource and info.subresource not in resource.subresources:
            raise errors.not_found(resource.what, info.name)
        handler = handler_of(resource, info.subresource, info.verb)
        _warn_deprecated(resource, warnings)
        call.deadline = asyncio.get_running_loop().time() + options.request_timeout(query, REQUEST_DEADLINE)
        with self.in_flight.request(info.verb):
            try:
                async with asyncio.timeout_at(call.deadline):
                    if traces.HEADER in request.headers:
                        return await self._traced(call, handler, extra)
                    return await handler(call)
            except TimeoutError:
                raise _too_late() from None
            finally:
                call.leave()

    async def _traced(self, call: Call, handler: Handler, extra: list[tuple[str, str]]) -> Answer:
        """A write whose client wants to know what happens to it. Raises ApiError."""
        if self.traces is None:
            raise errors.bad_request(f"{traces.HEADER}: this server offers no traces: it is not on loopback")
        if not traces.is_wanted(call.request.headers[traces.HEADER]) or call.info.verb in READS:
            return await handler(call)
        trace: Trace = []
        call.trace = trace
        failure: ApiError | None = None
        try:
            return await handler(call)
        except ApiError as error:
            failure = error
            raise
        finally:
            request = {"method": call.request.method, "path": call.request.raw_path, "user": call.user.name}
            extra.append((traces.HEADER, self.traces.keep(request, trace, failure)))

    def _resource(self, info: RequestInfo) -> Resource:
        """Raises ApiError NotFound: not served, or a path of the wrong scope (CVE-2019-11247)."""
        resource = self.registry.catalog.find(info.group, info.version, info.resource)
        if resource is None:
            raise errors.page_not_found()
        if info.in_namespace and not resource.namespaced:
            raise errors.page_not_found()
        if resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
            raise errors.page_not_found()
        return resource

    async def _document(self, request: web_request.BaseRequest, path: str, query: Query) -> Answer:
        """Everything that is not about an object: discovery, OpenAPI, health. It does not matter how it is asked."""
        if self.traces is not None and path.startswith(traces.FOLDER):
            return self.traces.answer(request.method, path)
        if path in HEALTH:  # who is busy is not ill
            return await self.documents.answer(path, query, request.headers)
        with self.in_flight.request("get"):
            return await self.documents.answer(path, query, request.headers)

    async def _watch(self, call: Call) -> Answer | web_response.StreamResponse:
        accepted = call.accepted()
        wanted = await handlers.list_options(call, watch=is_watch(call.query))
        after = watch.start_revision(wanted)
        accepted = negotiation.as_stream(accepted)
        representation = watch.Representation(call.resource)
        upgrade = websocket.is_upgrade(call.request)
        if accepted.convert is not None or accepted.media_type == negotiation.PROTOBUF:
            make = responses.converter(call.resource, accepted, call.include(accepted), call.now)
            representation = watch.Converted(call.resource, make)
            if accepted.media_type == negotiation.PROTOBUF:
                if upgrade:
                    raise errors.not_acceptable((negotiation.JSON,))  # its messages are lines of text
                encode = functools.partial(responses.encode, accepted=accepted)
                representation = watch.InProtobuf(call.resource, make, encode)
        headers = _headers(accepted.content_type, (("Cache-Control", "no-cache, private"),))
        for text in negotiation.warning_headers(call.warnings):
            headers.add("Warning", text)
        refusal = websocket.refusal(call.request) if upgrade else None
        if refusal is not None:
            return refusal
        response: web_response.StreamResponse
        pipe: watch.Pipe
        if upgrade:
            response = socket = await websocket.accept(call.request, headers)
            pipe = websocket.WebSocketPipe(call.request)
        else:
            response = web_response.StreamResponse(headers=headers)
            response.enable_chunked_encoding()
            pipe = _ChunkedPipe(call.request)
            await response.prepare(call.request)
            if call.request.method == "HEAD":
                return response
        limit_unsent(call.request, watch.HIGH_WATER)
        stream = watch.Stream(self.registry, wanted.selection, representation, pipe)
        stream.after = after
        self.streams.add(stream)
        try:
            if upgrade:
                async with _until_closed(socket, stream):
                    await stream.run(wanted, watch.lifetime(wanted))
            else:
                await stream.run(wanted, watch.lifetime(wanted))
        except (ConnectionError, asyncio.CancelledError):
            response.force_close()
            if call.request.transport is not None:
                call.request.transport.abort()
            raise
        finally:
            self.streams.discard(stream)
        return response


@contextlib.asynccontextmanager
async def _until_closed(socket: WebSocketResponse, stream: watch.Stream) -> AsyncIterator[None]:
    """Ends the stream when the client closes its WebSocket, and closes it when the stream ends."""
    closed = asyncio.ensure_future(websocket.ignore_messages(socket))
    closed.add_done_callback(lambda _: stream.stop())
    try:
        yield
    finally:
        closed.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closed
    await socket.close()


class _ChunkedPipe:
    """A watch's way to the client. Chunks are put together here so that an event costs one write, and no task."""

    def __init__(self, request: web_request.BaseRequest) -> None:
        self._request = request

    def write(self, data: bytes) -> int:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return transport.get_write_buffer_size()

    async def drain(self) -> None:
        await self._request.writer.drain()


# -- the wire ---------------------------------------------------------------------------------------------------------


def _warn_deprecated(resource: Resource, warnings: list[str]) -> None:
    if resource.deprecation_text:
        warnings.append(resource.deprecation_text)


def _too_late() -> ApiError:
    """Upstream's timeout filter writes its Status by hand: without a kind, and without a Content-Type."""
    error = errors.timeout("request did not complete within the allotted timeout", 0)
    shown = {name: value for name, value in error.status.items() if name not in ("kind", "apiVersion")}
    error.text = codec.encode({**shown, "details": {}}, sort_keys=False).decode()
    return error


def _error_answer(error: ApiError, request: web_request.BaseRequest) -> Answer:
    extra = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    if error.text is not None:
        return text_answer(error.text, error.code, extra)
    query = parse_query(split_target(request.raw_path)[1])
    accepted = negotiation.negotiate_error(
        request.headers.get("Accept", ""),
        pretty=first(query, "pretty"),
        user_agent=request.headers.get("User-Agent", ""),
    )
    headers = (("Cache-Control", "no-cache, private"), *extra)
    return Answer(responses.encode(error.status, accepted), error.code, accepted.content_type, headers)


_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


def _headers(content_type: str, more: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    headers = CIMultiDict(more)
    headers["Content-Type"] = content_type
    headers["Audit-Id"] = new_uuid()
    return headers


async def _send(
    request: web_request.BaseRequest, answer: Answer, warnings: list[str], extra: Iterable[tuple[str, str]]
) -> web_response.StreamResponse:
    headers = _headers(answer.content_type, (*answer.headers, *extra))
    if "Audit-Id" in request.headers:
        headers["Audit-Id"] = request.headers["Audit-Id"]
    for text in negotiation.warning_headers(warnings):
        headers.add("Warning", text)
    accept_encoding = request.headers.get("Accept-Encoding", "")
    reason = _REASONS.get(answer.status, "")
    if isinstance(answer.body, bytes):
        body = answer.body
        if negotiation.compresses(accept_encoding, len(body)):
            headers["Content-Encoding"] = "gzip"
            headers.add("Vary", "Accept-Encoding")  # some documents vary with Accept, too
            body = await asyncio.to_thread(_gzip, body)
        response = web_response.Response(body=body, status=answer.status, reason=reason, headers=headers)
        if headers.get("Connection") == "close":
            response.force_close()
        return response
    return await _send_chunks(request, answer.body, headers, gzip=negotiation.accepts_gzip(accept_encoding))


async def _send_chunks(
    request: web_request.BaseRequest, chunks: AsyncIterable[bytes], headers: CIMultiDict[str], *, gzip: bool
) -> web_response.StreamResponse:
    """A body that is made while it is sent; others get their turn between two chunks."""
    compressor = zlib.compressobj(1, wbits=31) if gzip else None
    if gzip:
        headers["Content-Encoding"] = "gzip"
        headers.add("Vary", "Accept-Encoding")
    response = web_response.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    if request.method != "HEAD":
        async for chunk in chunks:
            await response.write(compressor.compress(chunk) if compressor else chunk)
            await asyncio.sleep(0)
        if compressor:
            await response.write(compressor.flush())
    await response.write_eof()
    return response


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return compressor.compress(body) + compressor.flush()
