"""What a fault does: the effects, and the forms in which their parameters are written.

| effect | what the client sees |
|---|---|
| `error: Conflict`, `error: 503`, `error: {code, reason, message, retryAfter}` | that Status; nothing happened |
| `delay: 20ms`, `delay: 5ms..20ms` | the answer is late |
| `hang: true` | no answer, until the client gives up or the rule is cleared |
| `reset: before`, `reset: after` | the connection breaks before anything happened, or after the write was committed |
| `store: unavailable`, `store: unknown` | what a failing disk gives: nothing was written; it was written, and the server does not know |
| `stale: 5s`, `stale: {revisions: 3}` | reads that accept any age (`resourceVersion=0`) are answered from the past; `{…, all: true}`: all gets and lists |
| `watch: drop`, `duplicate`, `{late: 2s}` | an event is lost (`breaks-contract: true`), sent twice, or keeps itself and all later ones back |
| `watch: close`, `expire` | the stream ends instead of an event, so the client resumes; or with 410, so it lists again |
| `watch: silent` | no bookmarks |
| `view: freeze` | lists and watches show what was there when the rule was added, until it is cleared; then the stream goes on |
| `webhook: fail`, `{delay: 2s}`, `deny`, `{deny: no}` | the webhooks of a write cannot be reached, are late, or deny it |
| `lease: lost` | Leases cannot be renewed: another replica becomes the leader |
| `restart: 2s` | all watches end, and all requests break for two seconds, as those of a server that restarts |
| `mutate: {patch: {…}}` | an object changes: that of the trigger, or `{resource, namespace, name, patch}` |
| `process: {kill: before}`, `{kill: after}` | the program that asks is killed, before anything happens or after the commit |
| `process: pause`, `{pause: 5s}`, `resume` | it is stopped (SIGSTOP), and goes on (SIGCONT) |
| `pod: crash-loop`, `{simulate: crash-loop, pods: "web-*", selector: app=web}` | simulated pods fail as `noxu.dev/simulate` says it, while the rule is on |
| `view: hold` | the same, but then the stream ends with 410: the client never sees the states between |

An `EffectKind` reads its parameters into plain values; what they do to a request is in `noxu.http.faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple

from noxu.api.selectors import parse_labels
from noxu.control.arguments import duration
from noxu.features import meant
from noxu.values import Json

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
MAX_DELAY: Final = 3600.0  # seconds
BEHAVIOURS: Final = "noxu.workloads.kubelet.behaviours"
ERROR_CODES: Final = range(400, 600)


class Effect(NamedTuple):
    """`parameters` are what the kind has read."""

    kind: str
    parameters: Mapping[str, Any]


Scope = Literal["request", "answer", "event", "view", "webhook", "program", "program answer", "act", "pod"]


class EffectKind(NamedTuple):
    """`read` raises ValueError. `verbs`: those that it can hit; None: all.

    `scope` is what it hits: requests, the events of watches, calls of webhooks, what a client sees as long as the rule is
    on, requests of programs that Noxu has started, simulated pods; `act`: it does something by itself, when its trigger fires.
    What happens `after` a request hits those that have succeeded, before they are answered: `answer`, `program answer`.
    """

    read: Callable[[Json], Mapping[str, Any]]
    verbs: Sequence[str] | None = None
    scope: Scope = "request"


class StatusReason(NamedTuple):
    """A reason of metav1.Status, the code that it comes with, and its message in the words of the API server."""

    code: int
    message: str
    retry_after: int = 0


REASONS: Final[Mapping[str, StatusReason]] = {
    "BadRequest": StatusReason(400, "the server rejected our request for an unknown reason"),
    "Unauthorized": StatusReason(401, "Unauthorized"),
    "Forbidden": StatusReason(403, '{resource} "{name}" is forbidden: a fault was injected'),
    "NotFound": StatusReason(404, '{resource} "{name}" not found'),
    "AlreadyExists": StatusReason(409, '{resource} "{name}" already exists'),
    "Conflict": StatusReason(
        409,
        'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; please apply your changes to '
        "the latest version and try again",
    ),
    "Gone": StatusReason(410, "the requested object is no longer available"),
    "Expired": StatusReason(410, "The resourceVersion for the provided watch is too old."),
    "RequestEntityTooLarge": StatusReason(413, "Request entity too large: limit is 3145728"),
    "Invalid": StatusReason(422, '{resource} "{name}" is invalid: a fault was injected'),
    "TooManyRequests": StatusReason(429, "Too many requests, please try again later.", 1),
    "InternalError": StatusReason(500, "Internal error occurred: a fault was injected"),
    "ServerTimeout": StatusReason(
        500, "The {verb} operation against {resource} could not be completed at this time, please try again.", 1
    ),
    "ServiceUnavailable": StatusReason(503, "the server is currently unable to handle the request"),
    "Timeout": StatusReason(504, "Timeout: request did not complete within the allotted timeout"),
}
_REASON_OF_CODE: Final = {reason.code: name for name, reason in reversed([*REASONS.items()])} | {
    409: "Conflict",
    410: "Expired",
    500: "InternalError",
}


def _error(value: Json) -> Mapping[str, Any]:
    if isinstance(value, str | int) and not isinstance(value, bool):
        value = {"code" if isinstance(value, int) else "reason": value}
    if not isinstance(value, dict) or not value:
        raise ValueError("it is a reason such as Conflict, a code, or {code, reason, message, retryAfter}")
    accepted = ("code", "reason", "message", "retryAfter")
    for name in value:
        if name not in accepted:
            raise ValueError(f'there is no "{name}", only {", ".join(accepted)}{meant(name, accepted)}')
    code, reason = value.get("code"), value.get("reason")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool) or code not in ERROR_CODES):
        raise ValueError(f"the code {code!r} is not one of an error: 400 to 599")
    if reason is not None and (not isinstance(reason, str) or (reason not in REASONS and code is None)):
        raise ValueError(
            f"{reason!r} is no reason of a Status{meant(str(reason), REASONS)}; with a code it may be any text"
        )
    name = str(reason or _REASON_OF_CODE.get(code or 0, ""))
    known = REASONS.get(name, StatusReason(code or 500, "a fault was injected"))
    retry_after = value.get("retryAfter", known.retry_after)
    if not isinstance(retry_after, int) or isinstance(retry_after, bool) or retry_after < 0:
        raise ValueError("retryAfter is a number of seconds")
    return {
        "code": code or known.code,
        "reason": name,
        "message": _text(value.get("message", known.message), "message"),
        "retry_after": retry_after,
    }


def _text(value: Json, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is a text")
    return value


def delay_range(text: str) -> tuple[float, float]:
    """(The least, the greatest delay) in seconds: `20ms`, `5ms..20ms`. Raises ValueError."""
    low, dots, high = text.partition("..")
    shortest = duration(low)
    longest = duration(high) if dots else shortest
    if not 0 <= shortest <= longest <= MAX_DELAY:
        raise ValueError(f"{text} is not a delay, such as 20ms or 5ms..20ms, of at most an hour")
    return shortest, longest


def _delay(value: Json) -> Mapping[str, Any]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value}s"
    shortest, longest = delay_range(_text(value, "a delay"))
    return {"min": shortest, "max": longest}


def _chosen(*choices: str) -> Callable[[Json], Mapping[str, Any]]:
    def read(value: Json) -> Mapping[str, Any]:
        if value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}{meant(str(value), choices)}")
        return {"what": value}

    return read


def _true(value: Json) -> Mapping[str, Any]:
    if value is not True:
        raise ValueError("it is true")
    return {}


def _stale(value: Json) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = {"by": value}
    accepted = ("by", "revisions", "all")
    if not isinstance(value, dict) or not value or any(name not in accepted for name in value):
        raise ValueError(
            "it is a duration such as 5s, or {revisions: 3} or {by: 5s}, with all: true for reads of any kind"
        )
    revisions, by = value.get("revisions"), value.get("by")
    if (revisions is None) == (by is None):
        raise ValueError("it is stale by a duration or by a number of revisions: one of them")
    if revisions is not None and (not isinstance(revisions, int) or isinstance(revisions, bool) or revisions < 1):
        raise ValueError("revisions is an integer from 1 on")
    seconds = 0.0 if by is None else duration(_text(by, "by"))
    return {"revisions": revisions, "by": by, "seconds": seconds, "all": bool(value.get("all", False))}


def _watch(value: Json) -> Mapping[str, Any]:
    if isinstance(value, dict) and [*value] == ["late"]:
        return {"what": "late", **_delay(value["late"])}
    return _chosen("drop", "duplicate", "close", "expire", "silent")(value)


def _restart(value: Json) -> Mapping[str, Any]:
    seconds = duration(_text(value, "a duration"))
    if not 0 < seconds <= MAX_DELAY:
        raise ValueError("it is a duration such as 2s, of at most an hour")
    return {"seconds": seconds}


def _mutate(value: Json) -> Mapping[str, Any]:
    accepted = ("resource", "namespace", "name", "patch")
    if not isinstance(value, dict) or not isinstance(value.get("patch"), dict):
        raise ValueError("it has a merge patch: {patch: {spec: {replicas: 2}}}")
    for name in value:
        if name not in accepted:
            raise ValueError(f'there is no "{name}", only {", ".join(accepted)}{meant(name, accepted)}')
    place = {name: _text(value.get(name, ""), name) for name in accepted[:3]}
    if bool(place["resource"]) != bool(place["name"]):
        raise ValueError("resource and name belong together; without both it is the object of the trigger")
    return {**place, "patch": value["patch"]}


def _process(value: Json) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("it is kill, {kill: after}, pause, {pause: 5s} or resume")
    [(what, how)] = value.items()
    if what not in _SIGNALS:
        raise ValueError(f"{what!r} is none of {', '.join(_SIGNALS)}{meant(str(what), _SIGNALS)}")
    if what == "kill":
        return {"what": what, "when": _chosen("before", "after")(how or "before")["what"], "seconds": 0.0}
    if what == "resume" and how is not None:
        raise ValueError("resume has no parameter")
    return {"what": what, "when": "before", "seconds": 0.0 if how is None else duration(_text(how, "a duration"))}


_SIGNALS: Final = ("kill", "pause", "resume")


def _webhook(value: Json) -> Mapping[str, Any]:
    if value == "fail":
        return {"what": "fail"}
    if value == "deny":
        value = {"deny": "a fault was injected"}
    if isinstance(value, dict) and [*value] == ["delay"]:
        return {"what": "delay", **_delay(value["delay"])}
    if isinstance(value, dict) and [*value] == ["deny"]:
        return {"what": "deny", "message": _text(value["deny"], "deny")}
    raise ValueError("it is fail, deny, {deny: why} or {delay: 2s}")


def _pod(value: Json) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = {"simulate": value}
    accepted = ("simulate", "pods", "selector")
    if not isinstance(value, dict) or not value.get("simulate"):
        raise ValueError(
            "it is what pods do, such as crash-loop, or {simulate: crash-loop, pods: web-*, selector: app=web}"
        )
    for name in value:
        if name not in accepted:
            raise ValueError(f'there is no "{name}", only {", ".join(accepted)}{meant(name, accepted)}')
    read = {name: _text(value.get(name, ""), name) for name in accepted}
    import_module(BEHAVIOURS).parse(read["simulate"])  # few servers have simulated pods
    return {**read, "selector": parse_labels(read["selector"])}


def _lease(value: Json) -> Mapping[str, Any]:
    _chosen("lost")(value)
    return _error("Conflict")


EFFECTS: Final[Mapping[str, EffectKind]] = {
    "error": EffectKind(_error),
    "delay": EffectKind(_delay),
    "hang": EffectKind(_true),
    "reset": EffectKind(_chosen("before", "after")),
    "store": EffectKind(_chosen("unavailable", "unknown"), WRITES),
    "stale": EffectKind(_stale, ("get", "list")),
    "watch": EffectKind(_watch, ("watch",), "event"),
    "webhook": EffectKind(_webhook, ("create", "update", "patch", "delete"), "webhook"),
    "lease": EffectKind(_lease, ("update", "patch")),
    "restart": EffectKind(_restart),
    "mutate": EffectKind(_mutate, None, "act"),
    "process": EffectKind(_process, None, "program"),
    "pod": EffectKind(_pod, None, "pod"),
    "view": EffectKind(_chosen("freeze", "hold"), ("list", "watch"), "view"),
}
