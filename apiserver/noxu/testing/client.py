"""The client of the handle: an HTTP client in the event loop of the server, with the requests of any client.

They pass all filters, are authorized, recorded and audited. One thing only a client in this process can add: if a
function has refused a request, its exception is the cause of the error.
"""

from __future__ import annotations

import re
import ssl
import uuid
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode
from weakref import WeakSet

import aiohttp
from yarl import URL

from noxu import files
from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.http.recent_requests import RecentRequests
from noxu.security.kubeconfig import Access
from noxu.values import Json, Object

USER_AGENT: Final = "noxu-handle"
FIELD_MANAGER: Final = "noxu"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=120)  # seconds; the server has a deadline of its own
_ENDLESS: Final = aiohttp.ClientTimeout(total=None)
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

Query = Mapping[str, str]


class ApiWarning(UserWarning):
    """A warning of the server, such as the use of a deprecated version."""

    __module__ = "noxu"  # where it is public: tracebacks show that name


class UnknownFieldWarning(ApiWarning):
    """The server has pruned a field that the schema does not describe, or a field is there twice."""

    __module__ = "noxu"  # where it is public: tracebacks show that name


class ClientReply(NamedTuple):
    """The answer to a request that was not refused."""

    value: Json
    warnings: list[str]


class UserClient:
    """A client of a server as one user. It is used in the loop of the server."""

    def __init__(self, access: Access, requests: RecentRequests) -> None:
        self._access = access
        self._requests = requests
        self._made: aiohttp.ClientSession | None = None
        self._streams: WeakSet[aiohttp.ClientResponse] = WeakSet()

    async def send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        value: Json = None,
        content_type: str = codec.JSON,
    ) -> ClientReply:
        """Send a request, with `value` as its JSON body. Raises ApiError."""
        id_ = uuid.uuid4().hex
        headers = {"Audit-Id": id_}
        body = None
        if value is not None:
            headers["Content-Type"] = content_type
            body = codec.encode(value, sort_keys=False)
        async with self._session.request(
            method, self._url(path, query), data=body, headers=headers, timeout=_TIMEOUT
        ) as answer:
            content = await answer.read()
            if answer.status >= 300:
                raise error_of(answer.status, content) from self._requests.cause(id_)
            return ClientReply(codec.decode_stored(content), warnings_in(answer.headers.getall("Warning", ())))

    async def stream(self, path: str, query: Query) -> aiohttp.ClientResponse:
        """Begin a watch; the caller closes the answer. Raises ApiError."""
        answer = await self._session.get(self._url(path, query), timeout=_ENDLESS)
        if answer.status >= 300:
            raise error_of(answer.status, await answer.read())
        self._streams.add(answer)
        return answer

    @property
    def is_open(self) -> bool:
        """Whether it has asked anything since it was closed."""
        return self._made is not None

    async def close(self) -> None:
        for answer in list(self._streams):
            answer.close()
        if self._made is not None:
            await self._made.close()
            self._made = None  # a server that is started again has another loop

    def _url(self, path: str, query: Query | None) -> URL:
        return URL(f"{self._access.url}{path}{f'?{urlencode(query)}' if query else ''}", encoded=True)

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Made by the first request: many tests only use other clients."""
        if self._made is None:
            headers = {"User-Agent": USER_AGENT, "Accept": codec.JSON, "Accept-Encoding": "identity"}
            if self._access.token:
                headers["Authorization"] = f"Bearer {self._access.token}"
            context = tls_context(self._access) if self._access.certificate_authority else None
            self._made = aiohttp.ClientSession(
                headers=headers,
                connector=aiohttp.TCPConnector(limit=0, ssl=context or True),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._made


def tls_context(access: Access) -> ssl.SSLContext:
    """How to connect to a server over TLS."""
    context = ssl.create_default_context(cadata=access.certificate_authority.decode())
    if access.client_certificate:
        files.load_certificate(context, access.client_certificate, access.client_key)
    return context


def error_of(code: int, content: bytes) -> ApiError:
    """The error in an answer: a Status, or a text."""
    try:
        status = codec.decode_stored(content)
    except ValueError:
        status = None
    if not isinstance(status, dict):
        return ApiError(code, content.decode(errors="replace").strip() or f"HTTP {code}")
    return error_from_status(status, code)


def error_from_status(status: Object, code: int = 500) -> ApiError:
    """The error that a Status describes."""
    error = ApiError(
        status.get("code") or code, status.get("message", ""), status.get("reason", ""), status.get("details")
    )
    error.metadata = status.get("metadata") or {}
    return error


def warnings_in(headers: Iterable[str]) -> list[str]:
    """The texts of Warning headers: `299 - "unknown field \\"spec.colour\\""`."""
    return [re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header)]
