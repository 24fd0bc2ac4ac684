"""The HTTP application: an exchange for each request, filters around it, routing, and an answer whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from aiohttp import web_request, web_response

from noxu.apiserver.api import errors
from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.containment import Contained
from noxu.apiserver.http import documents, filters, routing, traces
from noxu.apiserver.http.answer import Answer
from noxu.apiserver.http.exchange import Backend, Exchange
from noxu.apiserver.http.filters import Filter
from noxu.apiserver.http.sending import error_answer, send, too_late
from noxu.apiserver.http.watch_requests import Watches
from noxu.apiserver.identifiers import new_uuid
from noxu.apiserver.registry.offload import offload
from noxu.storage.types import StoreError

log = logging.getLogger("noxu")


class App:
    """Answers requests."""

    def __init__(
        self,
        backend: Backend,
        documents_: documents.Documents,
        own_names: Iterable[str] = (),
        traces_: traces.Traces | None = None,
        sinks: Sequence[filters.Sink] = (),
    ) -> None:
        """`own_names` are names of this server besides loopback. `traces_` None disables tracing."""
        self.backend = backend
        self.documents = documents_
        self.traces = traces_
        self.watches = Watches()
        self.filters = filters.chain(
            own_names=frozenset(own_names),
            authenticator=None,
            authorizer=None,
            traces=traces_,
            sinks=sinks,
        )
        numbered = list(enumerate(self.filters))
        self._enter = [(n, one) for n, one in numbered if type(one).enter is not Filter.enter]
        self._leave = [(n, one) for n, one in reversed(numbered) if type(one).leave is not Filter.leave]

    def end_watches(self) -> None:
        self.watches.end()

    async def handle(self, request: web_request.BaseRequest) -> web_response.StreamResponse:
        """One request. Whatever happens inside, the client gets an answer. Raises ConnectionError."""
        received = asyncio.get_running_loop().time()
        exchange = Exchange(request, self.backend, request.headers.get("Audit-Id") or new_uuid(), received)
        answer = await self._filtered(exchange)
        return answer if isinstance(answer, web_response.StreamResponse) else await send(exchange, answer)

    async def _filtered(self, exchange: Exchange) -> Answer | web_response.StreamResponse:
        """Enter the filters, answer, and leave those that were entered."""
        answer: Answer | web_response.StreamResponse | None = None
        passed = 0  # how many filters have let the request pass
        try:
            with Contained(exchange, passing=ConnectionError) as contained:
                try:
                    for number, one in self._enter:
                        waits = one.enter(exchange)
                        if waits is not None:
                            await waits
                        passed = number + 1
                    passed = len(self.filters)
                    answer = await self._route(exchange)
                except ApiError as error:
                    exchange.error = error
                except StoreError as failure:
                    log.error("%s: %s", exchange, failure)  # noqa: TRY400 - it is no bug
                    exchange.error = errors.internal_error(f"the storage failed: {failure}")
            if contained.error is not None:
                exchange.error = errors.internal_error("this is a bug in the server; its log says more")
            if answer is None:
                assert exchange.error is not None
                size = len(exchange.error.message)
                answer = await offload(size, error_answer, exchange.error, exchange.request)
            exchange.code = answer.status
            return answer
        finally:
            exchange.times["handled"] = asyncio.get_running_loop().time()
            for number, one in self._leave:
                if number < passed:
                    one.leave(exchange)

    async def _route(self, exchange: Exchange) -> Answer | web_response.StreamResponse:
        """Raises ApiError."""
        info, method = exchange.info, exchange.request.method
        catalog = self.backend.catalog.current
        if not info.is_resource:
            routing.check_route(catalog, method, exchange.path, info)
            return await self._document(exchange)
        resource = exchange.resource = routing.find_resource(catalog, method, exchange.path, info)
        is_watch = info.verb == "watch" and not info.subresource and "watch" in resource.verbs
        handler = None if is_watch else routing.handler_of(resource, info)
        exchange.times["routed"] = asyncio.get_running_loop().time()
        if resource.deprecation_text:
            exchange.outcome.warnings.append(resource.deprecation_text)
        if handler is None:
            return await self.watches.handle(exchange)
        try:
            async with asyncio.timeout_at(exchange.deadline):
                return await handler(exchange)
        except TimeoutError:
            raise too_late() from None

    async def _document(self, exchange: Exchange) -> Answer:
        """Everything that is not about an object: discovery, OpenAPI, health. The method does not matter."""
        if self.traces is not None and exchange.path.startswith(traces.FOLDER):
            return self.traces.answer(exchange.request.method, exchange.path)
        return await self.documents.answer(exchange.path, exchange.query, exchange.request.headers)
