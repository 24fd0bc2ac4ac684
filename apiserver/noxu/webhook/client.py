"""Calls of webhooks, for any kind of review (apiserver/pkg/util/webhook and client-go's rest client).

There is no I/O: `WebhookEndpoint` is the target of a WebhookClientConfig, a `Caller` sends a review to it, and `read_review`
reads the review in the answer. Every failure is a `CallFailed` with upstream's message.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote as percent_encode

from noxu.api import codec
from noxu.api.errors import no_kind_registered
from noxu.api.meta import GroupVersionKind
from noxu.expressions import expression
from noxu.go import base64 as go_base64
from noxu.go import url as go_url
from noxu.go import x509
from noxu.go.json import string_of
from noxu.go.structs import Struct, decode
from noxu.go.text import quote
from noxu.values import Object

MAX_ANSWER: Final = 8 * 1024 * 1024  # bytes: an object of 3 MiB in base64, and as much again for the rest
USER_AGENT: Final = "kube-apiserver-admission"
HTTPS_PORT: Final = 443
_MAX_TEXT: Final = 2048  # bytes of a text answer in messages (client-go's maxUnstructuredResponseTextBytes)


class CallFailed(Exception):
    """A webhook did not answer with a review. `text` is upstream's message."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Unusable(CallFailed):
    """The webhook cannot be called: upstream cannot make a REST client for it."""


class BadAnswer(CallFailed):
    """A webhook answered, but not with a review. `text` quotes the answer, so it is for the client and not for the log."""


class Service(NamedTuple):
    """The service in a webhook's configuration."""

    namespace: str
    name: str
    port: int = HTTPS_PORT


class WebhookEndpoint(NamedTuple):
    """The target of calls.

    `url` is in Go's form, without a query. `ca_bundle` is PEM; without it the system's authorities are used.
    """

    url: str
    ca_bundle: bytes = b""
    service: Service | None = None


def endpoint_of(config: Object) -> WebhookEndpoint:
    """The endpoint of a WebhookClientConfig, of admission or of conversion. Raises Unusable."""
    ca_bundle = go_base64.decode(config.get("caBundle") or "")
    service: Object | None = config.get("service")
    if service is not None:
        reference = Service(service["namespace"], service["name"], service.get("port") or HTTPS_PORT)
        path = _cleaned(service.get("path") or "/")
        url = f"https://{reference.name}.{reference.namespace}.svc:{reference.port}{path}"
    elif config.get("url"):
        reference, url = None, _without_query(config["url"])
    else:
        raise Unusable("webhook configuration must have either service or URL")
    if error := x509.load_error(ca_bundle):
        raise Unusable(error)
    return WebhookEndpoint(url, ca_bundle, reference)


def _without_query(text: str) -> str:
    try:
        url = go_url.parse(text)
    except ValueError as error:
        raise Unusable(f"Unparsable URL: {error}") from None
    return f"{url.scheme}://{url.host}{_cleaned(url.path)}"


def _cleaned(path: str) -> str:
    """client-go joins the path with `/`, which cleans it: `a//../b` is `/b`."""
    clean = posixpath.normpath(f"/{path}").lstrip("/")
    return "/" + percent_encode(clean, safe="/$&+,:;=@~!*'()", errors="surrogateescape")


class WebhookReply(NamedTuple):
    """The HTTP response of a webhook. `content_type` is None without that header."""

    code: int
    content_type: str | None
    body: bytes


class Caller(Protocol):
    """Sends reviews to webhooks."""

    async def __call__(
        self,
        endpoint: WebhookEndpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - also sent to the webhook
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> WebhookReply:
        """POST a review as JSON. Raises CallFailed.

        `timeout` is in seconds, until the last byte of the answer; `limit` is the maximum size of the answer in bytes.
        """
        ...


Intercept = Callable[[WebhookEndpoint, bytes, int], Awaitable[WebhookReply | None]]
"""The endpoint, the review, the seconds that the call may take. None: the webhook is called. Raises CallFailed."""


def describe(endpoint: WebhookEndpoint, timeout: int) -> str:
    """The beginning of Go's errors about a call."""
    return f"Post {quote(f'{endpoint.url}?timeout={timeout}s')}"


# -- answers ----------------------------------------------------------------------------------------------------------


class ReviewKind(NamedTuple):
    """A kind of review in one version."""

    group: str
    version: str
    struct: Struct

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.struct.name)


_UNVERSIONED: Final = ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")
_IN_EVERY_VERSION: Final = (
    "WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"
)  # fmt: skip
_VERSIONS: Final = ("v1", "v1beta1")


def read_review(reply: WebhookReply, kind: ReviewKind) -> Object:
    """The decoded review in an answer, with the `kind` and `apiVersion` that were sent. Raises CallFailed."""
    if error := _media_type_error(reply.content_type):
        raise CallFailed(f"Internal error occurred: {error}")
    if not 200 <= reply.code <= 206:
        raise CallFailed(_http_error(reply))
    if not reply.body:
        content_type = reply.content_type or "application/json"
        raise CallFailed(f"0-length response with status code: {reply.code} and content type: {content_type}")
    try:
        sent, value = codec.identify(reply.body, kind.gvk)
    except ValueError as unreadable:
        raise CallFailed(str(unreadable)) from None
    if sent != kind.gvk:
        raise CallFailed(_kind_error(sent, kind))
    decoded = decode(kind.struct, {} if value is None else value)
    if decoded.error:
        raise CallFailed(decoded.error)
    review: Object = decoded.value
    return review


_WORD: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]*"
_MEDIA_TYPE: Final = expression(rf"({_WORD})(/?)({_WORD})(.*)", re.DOTALL)
_PARAMETERS: Final = expression(rf'(\s*;\s*(?!=){_WORD}\s*=\s*({_WORD}|"([^"\\]|\\.)*"))*\s*;?\s*')


def _media_type_error(content_type: str | None) -> str:
    """The error of Go's mime.ParseMediaType for a Content-Type, "" if there is none. client-go checks nothing else."""
    if not content_type:
        return ""
    media_type, semicolon, parameters = content_type.partition(";")
    match = _MEDIA_TYPE.fullmatch(media_type.strip())
    assert match is not None, "it matches anything"
    type_, slash, subtype, rest = match.groups()
    if not type_:
        return "mime: no media type"
    if not slash and (subtype or rest):
        return "mime: expected slash after first token"
    if slash and not subtype:
        return "mime: expected token after slash"
    if rest:
        return "mime: unexpected content after media subtype"
    return "" if _PARAMETERS.fullmatch(semicolon + parameters) else "mime: invalid media parameter"


def _kind_error(sent: GroupVersionKind, kind: ReviewKind) -> str:
    """The error for another kind: known kinds cannot be converted, other kinds are not registered."""
    group, version, name = sent
    is_known = (not group and version == "v1" and name in _UNVERSIONED) or (
        group == kind.group and version in _VERSIONS and name in (kind.struct.name, *_IN_EVERY_VERSION)
    )
    if is_known:
        package = version if name == kind.struct.name else "v1"
        return f"converting ({package}.{name}) to ({kind.version}.{kind.struct.name}): unknown conversion"
    api_version = f"{group}/{version}" if group else version
    return no_kind_registered(name, api_version)


_HTTP_ERRORS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _http_error(reply: WebhookReply) -> str:
    """client-go's message for an HTTP error: that of a Status, or one for the code (NewGenericServerResponse)."""
    message = _message_of_status(reply.body)
    if message is not None:
        return message
    code, text = reply.code, "unknown"
    if not reply.content_type or reply.content_type.strip().lower().startswith("text/"):
        text = string_of(reply.body[:_MAX_TEXT]).strip()
    if code in _HTTP_ERRORS:
        return _HTTP_ERRORS[code]
    if code in (403, 415):
        return text
    if code == 406:
        wrong_type = "the server was unable to respond with a content type that the client supports"
        return wrong_type if text in ("", "unknown") else text
    if code >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _message_of_status(body: bytes) -> str | None:
    """The message of a Status with a failure, None for anything else. Its apiVersion may be missing."""
    try:
        sent, value = codec.identify(body, GroupVersionKind("", "v1", ""))
    except ValueError:
        return None
    if sent != ("", "v1", "Status") or value.get("status") != "Failure":
        return None
    message = value.get("message", "")
    return message if isinstance(message, str) else None
