"""Requests in the audit log: what `security.audit` needs to know of an exchange.

The filter `RecordAudit` begins the record as soon as the user is known; handlers and the app add the bodies; the sink ends
it. What fails earlier, above all in authentication, has one event without a user, as in upstream.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from typing import Final

import orjson

from noxu.api import codec, protobuf
from noxu.api.errors import ApiError
from noxu.go import cbor
from noxu.http import negotiation
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange, Sink, attributes_of
from noxu.http.request import is_long_running
from noxu.kinds import scheme
from noxu.registry.access import User
from noxu.registry.resource import Resource
from noxu.security import audit
from noxu.security.audit import AuditLog, Record, RecordedBody, annotations_of
from noxu.security.audit_policy import NO_USER
from noxu.values import Json, Object

MAX_RECORDED_LIST: Final = 16 * 1024 * 1024  # bytes of an answer in chunks; longer ones have no responseObject
_TRACEPARENT: Final = "noxu.dev/traceparent"
"""The annotation with the trace that a request belongs to. Upstream's audit log does not have it."""
_STATUS: Final = b'{"kind":"Status"'
_LONGEST_STATUS: Final = 64 * 1024  # bytes of an answer that may be a Status without being an error


def sink(log: AuditLog) -> Sink:
    """Ends the record of an exchange after its answer."""

    def end(exchange: Exchange) -> None:
        record = exchange.record
        if record is not None:
            _complete(exchange, record)
        elif not exchange.is_judged and exchange.path:
            record = exchange.record = begin(log, exchange, NO_USER)  # refused before its user was known
            if record is not None:
                record.status = _status_of(exchange.error)
                traced = {} if exchange.trace_context is None else {_TRACEPARENT: exchange.traceparent}
                record.started(exchange.code, exchange.now(), traced)

    return end


def begin(log: AuditLog, exchange: Exchange, user: User) -> Record | None:
    """The record of an exchange, None if the policy wants none."""
    exchange.is_judged = True
    request = exchange.request
    headers = request.headers
    asked = attributes_of(exchange)
    if user is not exchange.user:
        asked = asked._replace(user=user)
    addresses = audit.source_ips(headers.get("X-Forwarded-For", ""), headers.get("X-Real-Ip", ""), request.remote or "")
    return log.record(asked, exchange.id, request.raw_path, addresses, headers.get("User-Agent", ""), exchange.now())


def _complete(exchange: Exchange, record: Record) -> None:
    if record.request is None:  # the client was gone before its answer was made
        _keep_body(exchange, record)
    annotations = _annotations(exchange, record)
    if record.status is None:
        record.status = _status_of(exchange.error)
    if is_long_running(exchange.info):  # these have the stage ResponseStarted
        record.started(exchange.code, exchange.now(), annotations)
    record.completed(exchange.code, exchange.now(), annotations, exchange.outcome.sent, panicked=exchange.panicked)


def _annotations(exchange: Exchange, record: Record) -> Object:
    deprecated = exchange.is_routed and bool(exchange.resource.deprecation_text)
    level, admission = record.recording.level, exchange.outcome.audit_annotations
    annotations = annotations_of(level, exchange.decision, admission, deprecated=deprecated)
    if exchange.trace_context is not None:
        annotations[_TRACEPARENT] = exchange.traceparent
    return annotations


def _status_of(error: ApiError | None) -> Object | None:
    """The Status that an error was answered with; None if it was plain text."""
    return error.status if error is not None and error.text is None else None


# -- bodies and answers -----------------------------------------------------------------------------------------------


def observe_start(exchange: Exchange, record: Record) -> None:
    """The head of the answer to a watch has been sent."""
    record.started(exchange.code, exchange.now(), _annotations(exchange, record))


def _keep_body(exchange: Exchange, record: Record) -> None:
    """Keep the body of the request, if it was read and the policy wants it."""
    if exchange.body:
        media_type = exchange.request.headers.get("Content-Type", negotiation.JSON)
        # the bytes are those that the write decodes; they are decoded again only for the log
        record.request = RecordedBody(
            (exchange.body,), decoder_of(exchange, media_type), is_patch=exchange.request.method == "PATCH"
        )


def observed(exchange: Exchange, record: Record, answer: Answer) -> Answer:
    """The answer, unchanged but for counting what is sent of it."""
    _keep_body(exchange, record)
    content, is_json = answer.body, answer.content_type.startswith(negotiation.JSON)
    if record.request is not None:
        sent_json = exchange.request.headers.get("Content-Type", negotiation.JSON).startswith(negotiation.JSON)
        record.request.is_json = sent_json and answer.status < 400  # then it has been decoded
    if is_json and isinstance(content, bytes) and content.startswith(_STATUS) and len(content) <= _LONGEST_STATUS:
        record.status = orjson.loads(content)  # decoded for the log: the answer is bytes
    if not record.with_response or not _is_object(exchange, answer):
        return answer
    decode = decoder_of(exchange, answer.content_type)
    if isinstance(content, AsyncIterable):
        # the chunks pass through; the record gets its own references
        answer.body = kept_chunks(content, MAX_RECORDED_LIST, partial(_keep_answer, record, decode, is_json))
    else:
        record.response = RecordedBody((content,) if isinstance(content, bytes) else content, decode, is_json)
    return answer


def _is_object(exchange: Exchange, answer: Answer) -> bool:
    """Whether an answer is an object of the API: no text, no OpenAPI document."""
    return exchange.path.startswith("/api") and not answer.content_type.startswith("text/")


def _keep_answer(
    record: Record, decode: Callable[[bytes], Json], is_json: bool, chunks: list[bytes] | None, _size: int
) -> None:
    if chunks is not None:
        record.response = RecordedBody(chunks, decode, is_json)


async def kept_chunks(
    content: AsyncIterable[bytes], limit: int, keep: Callable[[list[bytes] | None, int], None]
) -> AsyncIterator[bytes]:
    """The chunks of an answer. At its end `keep` is called with them, None if they are longer than the limit, and their size."""
    kept: list[bytes] | None = []
    size = 0
    async for chunk in content:
        size += len(chunk)
        if size > limit:
            kept = None
        if kept is not None:
            kept.append(chunk)  # a reference: the chunk is not copied
        yield chunk
    keep(kept, size)


def decoder_of(exchange: Exchange, content_type: str) -> Callable[[bytes], Json]:
    """The function that decodes a body of this type. It raises ValueError."""
    return decoder(exchange.resource if exchange.is_routed else None, content_type)


def decoder(resource: Resource | None, content_type: str) -> Callable[[bytes], Json]:
    """The same of a request for a resource; None: its path is not known."""
    media_type = content_type.partition(";")[0].strip()
    if media_type == negotiation.PROTOBUF and resource is not None:
        gvk = resource.gvk
        return partial(_from_protobuf, api_version=gvk.api_version, kind=gvk.kind)
    if "yaml" in media_type:
        return _from_yaml
    if "cbor" in media_type:
        return _from_cbor
    return _from_json


def _from_json(content: bytes) -> Json:
    return codec.decode_json(content).value


def _from_yaml(content: bytes) -> Json:
    return codec.decode_yaml(content).value


def _from_cbor(content: bytes) -> Json:
    return cbor.read(content)


def _from_protobuf(content: bytes, api_version: str, kind: str) -> Json:
    return protobuf.decode(content, scheme.struct_of, api_version=api_version, kind=kind)[1]
