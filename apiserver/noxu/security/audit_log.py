"""The audit log: what is recorded of a request, and the lines that its stages become.

    RequestReceived    the user is known, nothing else has happened
    ResponseStarted    a long-running request (a watch) is being answered; also a request that failed before its user was known
    ResponseComplete   it has been answered
    Panic              instead of ResponseComplete, after a bug in the server

Bodies are recorded when they are encoded anyway: in the thread of the log, not in the event loop. Upstream:
pkg/endpoints/filters/audit.go and authn_audit.go, pkg/audit/context.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from noxu.go.time import format_duration
from noxu.instruments import Counter, Family
from noxu.registry.access import Attributes, Decision, User
from noxu.security import audit
from noxu.security.audit import Body
from noxu.security.audit_policy import (
    COMPLETE,
    LEVEL_NAMES,
    PANIC,
    RECEIVED,
    STARTED,
    Level,
    Policy,
    Recording,
)
from noxu.values import Object

SLOW: Final = 0.5  # seconds from which on the duration of a request is annotated
MODES: Final = ("batch", "blocking", "blocking-strict")

_CLOSED_EARLY: Final[Object] = {"status": "Success", "message": "Connection closed early"}
_PATCHES: Final = "patch.webhook.admission.k8s.io/"
_LINE_WEIGHT: Final = 1024  # bytes, about


class Writer(Protocol):
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

    def __init__(self, policy: Policy, writer: Writer, *, mode: str = "blocking", format_: str = "json") -> None:
        self.policy = policy
        self.writer = writer
        self.mode = mode
        self._line = audit.FORMATS[format_]
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
        self, asked: Attributes, audit_id: str, uri: str, source_ips: Sequence[str], user_agent: str, now: datetime
    ) -> Record | None:
        """The record of a request that has arrived, None if the policy says so."""
        recording = self.policy.recording(asked)
        self._levels.add((LEVEL_NAMES[recording.level],))
        if recording.level is Level.NONE:
            return None
        event = audit.first_event(recording, audit_id, uri, asked, source_ips, user_agent, now)
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
    request: Body | None,
    response: Body | None,
    *,
    omit_managed_fields: bool,
) -> bytes:
    for name, body in (("requestObject", request), ("responseObject", response)):
        if body is not None:
            event[name] = audit.body_json(body, omit_managed_fields=omit_managed_fields)
    return line(event)


class Record:
    """What is recorded of one request.

    `request` and `response` are its bodies, which the level allows; `status` is the answer if that is a Status.
    """

    __slots__ = ("_asked", "_event", "_log", "_received", "_started", "recording", "request", "response", "status")

    def __init__(
        self, log: AuditLog, recording: Recording, asked: Attributes, event: Object, received: datetime
    ) -> None:
        self._log = log
        self._asked = asked
        self._event = event
        self._received = received
        self._started = False
        self.recording = recording
        self.request: Body | None = None
        self.response: Body | None = None
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
        self._event["impersonatedUser"] = audit.user_info.__wrapped__(user)
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
            self._event["objectRef"] = audit.object_reference(self._asked, sent)
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
            "responseStatus": audit.response_status(code, status),
            "stageTimestamp": now,
        }
        if annotations:
            more["annotations"] = dict(sorted(annotations.items()))
        self._log.write(self._event | more, self)


def annotations_of(level: Level, decision: Decision | None, admission: dict[str, str], *, deprecated: bool) -> Object:
    """The annotations of an event: of authorization, of admission, of deprecated versions.

    The patches of webhooks are content, so they need the level Request (the dispatcher's AddAnnotationWithLevel).
    """
    found: Object = dict(admission)
    if level < Level.REQUEST and admission:
        found = {key: value for key, value in admission.items() if not key.startswith(_PATCHES)}
    if decision is not None:
        failed = bool(decision.error) and not decision.allowed  # then nothing was decided
        found["authorization.k8s.io/reason"] = "internal error" if failed else decision.reason
        if not failed:
            found["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
    if deprecated:
        found["k8s.io/deprecated"] = "true"
    return found
