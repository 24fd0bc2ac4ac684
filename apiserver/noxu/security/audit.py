"""Audit events: one line of JSON for each recorded stage of a request (audit.k8s.io/v1 Event).

The order of the fields is that of the Go struct. An event has no header but User-Agent, and bodies only at the levels
Request and RequestResponse. Upstream: pkg/audit (request.go, format.go), apimachinery's util/net.SourceIPs.

The audit log has a line for each stage of a request that is recorded.

    RequestReceived    the user is known, nothing else has happened
    ResponseStarted    a long-running request (a watch) is being answered; also a request that failed before its user was known
    ResponseComplete   it has been answered
    Panic              instead of ResponseComplete, after a bug in the server

Bodies are recorded when they are encoded anyway: in the thread of the log, not in the event loop. Upstream:
pkg/endpoints/filters/audit.go and authn_audit.go, pkg/audit/context.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Final, Protocol

import orjson

from noxu.api import codec
from noxu.expressions import expression
from noxu.go.net import parse_sloppy
from noxu.go.text import quote, trim_space
from noxu.go.time import format_duration
from noxu.instruments import Counter, Family
from noxu.registry.access import AccessAttributes, Decision, User
from noxu.security.audit_policy import (
    COMPLETE,
    GROUP_VERSION,
    LEVEL_NAMES,
    NO_USER,
    PANIC,
    RECEIVED,
    STARTED,
    AuditPolicy,
    Level,
    Recording,
)
from noxu.values import Json, Object

MAX_USER_AGENT: Final = 1024  # bytes; upstream's maxUserAgentLength
MAX_FORWARDED: Final = 100  # addresses in X-Forwarded-For; upstream has no limit
_MAX_CACHED: Final = 260  # characters of headers that are cached with what was read in them
_TRUNCATED: Final = "...TRUNCATED"


# -- events -----------------------------------------------------------------------------------------------------------


def first_event(
    recording: Recording,
    audit_id: str,
    uri: str,
    asked: AccessAttributes,
    source_ips: Iterable[str],
    user_agent: str,
    received: datetime,
) -> Object:
    """An event with what is known when the request arrives. Each stage is a copy with `stage`, `stageTimestamp` and more."""
    event: Object = {
        "kind": "Event",
        "apiVersion": GROUP_VERSION,
        "level": LEVEL_NAMES[recording.level],
        "auditID": audit_id,
        "stage": "",
        "requestURI": uri,
        "verb": asked.verb,
        "user": user_info(asked.user),
    }
    event["impersonatedUser"] = None
    event["authenticationMetadata"] = None
    event["sourceIPs"] = source_ips
    if user_agent:
        event["userAgent"] = truncated(user_agent) if len(user_agent) > MAX_USER_AGENT else user_agent
    if asked.resource:
        event["objectRef"] = object_reference(asked)
    event["responseStatus"] = event["requestObject"] = event["responseObject"] = None
    event["requestReceivedTimestamp"] = event["stageTimestamp"] = received
    event["annotations"] = None
    return event


@lru_cache(maxsize=256)
def user_info(user: User) -> Object:
    """The UserInfo of a user. It is shared: do not change it."""
    if user is NO_USER:
        return {}
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in sorted(user.extra)}
    return info


def object_reference(asked: AccessAttributes, sent: Object | None = None) -> Object:
    """The ObjectReference of a request. `sent` has fields of the metadata in its body, which complete it."""
    sent = sent or {}
    fields = {
        "resource": asked.resource,
        "namespace": asked.namespace or sent.get("namespace"),
        "name": asked.name or sent.get("name"),
        "uid": sent.get("uid"),
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "resourceVersion": sent.get("resourceVersion"),
        "subresource": asked.subresource,
    }
    return {name: value for name, value in fields.items() if value}


def response_status(code: int, status: Object | None = None) -> Object:
    """The responseStatus: of an answer that is a Status its bounded fields, of others the code."""
    if not status:
        return {"metadata": {}, "code": code}
    copied: Object = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if status.get(name) is not None:
            copied[name] = status[name]
    copied["code"] = code
    return copied


def truncated(user_agent: str) -> str:
    encoded = user_agent.encode("utf-8", "surrogateescape")
    if len(encoded) <= MAX_USER_AGENT:
        return user_agent
    return encoded[:MAX_USER_AGENT].decode("utf-8", "replace") + _TRUNCATED


def micro_time(moment: datetime) -> str:
    """A metav1.MicroTime; the moment is in UTC."""
    return f"{moment.isoformat(timespec='microseconds')[:26]}Z"


# -- lines ------------------------------------------------------------------------------------------------------------


_TIMES: Final = ("requestReceivedTimestamp", "stageTimestamp")
_JSON: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


def json_line(event: Object) -> bytes:
    """The event as encoding/json writes it: without empty fields, HTML characters escaped, a line end at the end."""
    present = {name: value for name, value in event.items() if value is not None}
    for name in _TIMES:
        if name in present and not present[name].microsecond:
            present[name] = micro_time(present[name])  # orjson would leave out the zeros
    try:
        line = orjson.dumps(present, option=_JSON)
    except TypeError:  # bytes of the client that are no UTF-8
        line = orjson.dumps(_in_utf8(present), option=_JSON)
    return codec.escape_html(line)


def _in_utf8(value: Json) -> Json:
    """A value whose strings are valid: Go writes U+FFFD for each byte that is not UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_in_utf8(name): _in_utf8(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_utf8(item) for item in value]
    return value


def legacy_line(event: Object) -> bytes:
    """The event in upstream's format of one line of text, with part of what it knows."""
    user, impersonated = event["user"], event.get("impersonatedUser")
    names, groups = ("<none>", "<none>")
    if user.get("username"):
        names, groups = user["username"], _groups(user.get("groups")) or "<none>"
    status = event.get("responseStatus")
    pairs = (
        ("id", event["auditID"]),
        ("stage", event["stage"]),
        ("ip", next(iter(event["sourceIPs"] or ()), "<unknown>")),
        ("method", event["verb"]),
        ("user", names),
        ("groups", groups),
        ("as", impersonated["username"] if impersonated else "<self>"),
        ("asgroups", (_groups(impersonated.get("groups")) if impersonated else "") or "<lookup>"),
        ("user-agent", event.get("userAgent", "")),
        ("namespace", event.get("objectRef", {}).get("namespace") or "<none>"),
        ("uri", event["requestURI"]),
        ("response", str(status["code"]) if status else "<deferred>"),
    )
    received = micro_time(event["requestReceivedTimestamp"])[:-1].rstrip("0").rstrip(".")
    text = f"{received}Z AUDIT: {' '.join(f'{name}={quote(value)}' for name, value in pairs)}\n"
    return text.encode("utf-8", "backslashreplace")


def _groups(groups: Iterable[str] | None) -> str:
    return ",".join(map(quote, groups or ()))


FORMATS: Final[dict[str, Callable[[Object], bytes]]] = {"json": json_line, "legacy": legacy_line}


# -- bodies -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RecordedBody:
    """The body of a request or an answer, whole or in parts.

    `is_json`: it is known to be valid JSON. `is_patch`: it is no object. `decode` raises ValueError.
    """

    parts: Sequence[bytes | memoryview]
    decode: Callable[[bytes], Json]
    is_json: bool = False
    is_patch: bool = False

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


def body_json(body: RecordedBody, *, omit_managed_fields: bool) -> orjson.Fragment | None:
    """A body as JSON on one line; None if it cannot be decoded. Takes time in proportion to its size.

    JSON on one line, which is what most clients send and the server answers, is taken over without being decoded.
    """
    content = b"".join(body.parts).strip()
    strips = omit_managed_fields and not body.is_patch
    if body.is_json and not strips and not _BREAKS.search(content) and _is_utf8(content):
        return orjson.Fragment(content)
    try:
        value = body.decode(content)
    except ValueError:
        return None
    if strips:
        value = without_managed_fields(value)
    return orjson.Fragment(codec.encode(value, sort_keys=False))


_BREAKS: Final = expression(rb"[\r\n]")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_managed_fields(value: Json) -> Json:
    """An object, list or table without the managedFields of its objects."""
    if not isinstance(value, dict):
        return value
    for document in (value, *_items(value)):
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
    return value


def _items(value: Object) -> Iterator[Json]:
    """The objects in a list, and those in the rows of a table."""
    items, rows = value.get("items"), value.get("rows")
    if isinstance(items, list):
        yield from items
    if value.get("kind") == "Table" and isinstance(rows, list):
        yield from (row.get("object") for row in rows if isinstance(row, dict))


# -- addresses --------------------------------------------------------------------------------------------------------


def source_ips(forwarded_for: str, real_ip: str, remote: str) -> Sequence[str]:
    """The addresses of the client and its proxies, from X-Forwarded-For, X-Real-Ip and the connection, in this order.

    At most MAX_FORWARDED of the first are read.
    """
    if len(forwarded_for) + len(real_ip) <= _MAX_CACHED:
        return _known_source_ips(forwarded_for, real_ip, remote)
    return _known_source_ips.__wrapped__(forwarded_for, real_ip, remote)


@lru_cache(maxsize=256)
def _known_source_ips(forwarded_for: str, real_ip: str, remote: str) -> Sequence[str]:
    chain = forwarded_for.split(",", MAX_FORWARDED)[:MAX_FORWARDED]
    addresses = [address for part in chain if (address := _address(trim_space(part)))]
    if (real := _address(real_ip)) and real not in addresses:
        addresses.append(real)
    if (peer := _address(remote)) and addresses[-1:] != [peer]:
        addresses.append(peer)
    return addresses


def _address(text: str) -> str:
    """An address as Go prints it, "" if it is none."""
    address = parse_sloppy(text)
    return "" if address is None else str(address)


# -- audit log --------------------------------------------------------------------------------------------------------


SLOW: Final = 0.5  # seconds from which on the duration of a request is annotated
MODES: Final = ("batch", "blocking", "blocking-strict")

_CLOSED_EARLY: Final[Object] = {"status": "Success", "message": "Connection closed early"}
_PATCHES: Final = "patch.webhook.admission.k8s.io/"
_LINE_WEIGHT: Final = 1024  # bytes, about


class AuditWriter(Protocol):
    """Writes lines; see `observability.line_writer`."""

    @property
    def failed(self) -> int:
        """The lines that were lost or dropped until now."""
        ...

    def put(self, line: bytes | Callable[[], bytes], weight: int, *, bounded: bool = True) -> None: ...

    @property
    def is_full(self) -> bool: ...

    async def room(self) -> None: ...

    async def flushed(self) -> bool: ...


class AuditLog:
    """Records requests as a policy says.

    `mode`: what a request does if the log is slow or broken. batch: its events are dropped. blocking: it waits for room.
    blocking-strict: it waits until its RequestReceived is written, and fails if that fails.
    """

    def __init__(
        self, policy: AuditPolicy, writer: AuditWriter, *, mode: str = "blocking", format_: str = "json"
    ) -> None:
        self.policy = policy
        self.writer = writer
        self.mode = mode
        self._line = FORMATS[format_]
        self._events = Counter(
            "apiserver_audit_event_total", "Counter of audit events generated and sent to the audit backend."
        )
        self._rejected = Counter(
            "apiserver_audit_requests_rejected_total",
            "Counter of apiserver requests rejected due to an error in audit logging backend.",
        )
        self._levels = Counter(
            "apiserver_audit_level_total", "Counter of policy levels for audit events (1 per request).", "level"
        )

    def record(
        self,
        asked: AccessAttributes,
        audit_id: str,
        uri: str,
        source_ips: Sequence[str],
        user_agent: str,
        now: datetime,
    ) -> Record | None:
        """The record of a request that has arrived, None if the policy says so."""
        recording = self.policy.recording(asked)
        self._levels.add((LEVEL_NAMES[recording.level],))
        if recording.level is Level.NONE:
            return None
        event = first_event(recording, audit_id, uri, asked, source_ips, user_agent, now)
        return Record(self, recording, asked, event, now)

    def families(self) -> list[Family]:
        """The metrics of the log (pkg/audit/metrics.go)."""
        about = "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error."
        failed = [(("log",), float(self.writer.failed))] if self.writer.failed else []
        errors = Family("apiserver_audit_error_total", "counter", about, ("plugin",), failed)
        return [self._events.family(), self._levels.family(), errors, self._rejected.family()]

    def rejected(self) -> None:
        """A request is refused because its event cannot be stored."""
        self._rejected.add(())

    def write(self, event: Object, record: Record) -> None:
        self._events.add(())
        request, response = record.request, record.response
        bounded = self.mode == "batch"
        if request is None and response is None:
            line = self._line(event)
            self.writer.put(line, len(line), bounded=bounded)
            return
        weight = _LINE_WEIGHT + sum(body.size for body in (request, response) if body is not None)
        omit = record.recording.omit_managed_fields
        make = partial(_line_with_bodies, self._line, event, request, response, omit_managed_fields=omit)
        self.writer.put(make, weight, bounded=bounded)


def _line_with_bodies(
    line: Callable[[Object], bytes],
    event: Object,
    request: RecordedBody | None,
    response: RecordedBody | None,
    *,
    omit_managed_fields: bool,
) -> bytes:
    for name, body in (("requestObject", request), ("responseObject", response)):
        if body is not None:
            event[name] = body_json(body, omit_managed_fields=omit_managed_fields)
    return line(event)


class Record:
    """What is recorded of one request.

    `request` and `response` are its bodies, which the level allows; `status` is the answer if that is a Status.
    """

    __slots__ = ("_asked", "_event", "_log", "_received", "_started", "recording", "request", "response", "status")

    def __init__(
        self, log: AuditLog, recording: Recording, asked: AccessAttributes, event: Object, received: datetime
    ) -> None:
        self._log = log
        self._asked = asked
        self._event = event
        self._received = received
        self._started = False
        self.recording = recording
        self.request: RecordedBody | None = None
        self.response: RecordedBody | None = None
        self.status: Object | None = None

    @property
    def with_request(self) -> bool:
        return self.recording.level >= Level.REQUEST

    @property
    def with_response(self) -> bool:
        return self.recording.level >= Level.REQUEST_RESPONSE

    def received(self) -> bool:
        """The stage RequestReceived, whose time is that of the request. Returns whether it is recorded."""
        if RECEIVED in self.recording.omit_stages:
            return False
        self._log.write(self._event | {"stage": RECEIVED}, self)
        return True

    def impersonated(self, user: User, constraint: str = "") -> None:
        """From now on the request is that of another user."""
        self._event["impersonatedUser"] = user_info.__wrapped__(user)
        if constraint:
            self._event["authenticationMetadata"] = {"impersonationConstraint": constraint}

    def started(self, code: int, now: datetime, annotations: Object) -> None:
        """The stage ResponseStarted of a long-running request, or of one without a user."""
        if not self._started:
            self._started = True
            self._stage(STARTED, code, self.status, now, annotations)

    def completed(
        self, code: int, now: datetime, annotations: Object, sent: Object | None = None, *, panicked: bool = False
    ) -> None:
        """The last stage. `code` 0: the client left before it was answered. `sent`: see `audit.object_reference`."""
        if sent:
            self._event["objectRef"] = object_reference(self._asked, sent)
        if panicked:
            self._stage(PANIC, code, self.status, now, annotations)
            return
        seconds = (now - self._received).total_seconds()
        if seconds > SLOW and not self._started:
            annotations["apiserver.latency.k8s.io/total"] = format_duration(round(seconds * 1e6) * 1000)
        self._stage(COMPLETE, code, self.status, now, annotations)

    def _stage(self, stage: str, code: int, status: Object | None, now: datetime, annotations: Object) -> None:
        if stage in self.recording.omit_stages:
            return
        if not code:
            code, status = 200, _CLOSED_EARLY
        more: Object = {
            "stage": stage,
            "responseStatus": response_status(code, status),
            "stageTimestamp": now,
        }
        if annotations:
            more["annotations"] = dict(sorted(annotations.items()))
        self._log.write(self._event | more, self)


def annotations_of(level: Level, decision: Decision | None, admission: dict[str, str], *, deprecated: bool) -> Object:
    """The annotations of an event: of authorization, of admission, of deprecated versions.

    The patches of webhooks are content, so they need the level Request (the dispatcher's AddAnnotationWithLevel).
    """
    texts: Object = dict(admission)
    if level < Level.REQUEST and admission:
        texts = {key: value for key, value in admission.items() if not key.startswith(_PATCHES)}
    if decision is not None:
        failed = bool(decision.error) and not decision.allowed  # then nothing was decided
        texts["authorization.k8s.io/reason"] = "internal error" if failed else decision.reason
        if not failed:
            texts["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
    if deprecated:
        texts["k8s.io/deprecated"] = "true"
    return texts
