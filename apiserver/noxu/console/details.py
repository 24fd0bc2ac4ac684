"""What one write had, and what became of it on the way: `GET /_noxu/console/request?id=…`, with the Audit-Id of a mark.

    {"method": "POST", "path": "/apis/…", "code": 422,
     "sent": {"body": {…}}, "answered": {"body": {…}},      or {"omitted": true}: too long to be kept
     "traced": true,
     "reasons": [{"what": "pruned", "path": "spec.hihg", …}],   as `POST /_noxu/explain` has them (`noxu.control.reasons`)
     "steps": [{"stage": "prune", "milliseconds": 0.1, …}],     the stages; [] if it was not traced
     "calls": [{"webhook": "tag.io", "milliseconds": 3.2, "message": "", "changes": 1}]}

Details are kept while a page follows the stream, and FORGOTTEN_AFTER seconds longer, for a page that is loaded again. What is secret in
bodies is masked as in recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from noxu.api.errors import ApiError
from noxu.control.arguments import TEXT, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.reasons import reasons
from noxu.control.recorded_requests import RequestDetail
from noxu.recordings.masking import is_secret, masked
from noxu.registry import explain
from noxu.registry.offload import offload
from noxu.registry.trace import Note, Step, as_json
from noxu.values import Json, Object

FORGOTTEN_AFTER: Final = 60.0  # seconds without a page
NOT_KEPT: Final = (
    "What it has sent, and what became of that, is no longer known, or never was: it is kept while a page of the console is open, "
    "of the newest writes, and of some of those that come fast."
)


def shown(detail: RequestDetail) -> Object:
    """The details as JSON."""
    steps = as_json(list(_steps(detail)))
    status = None if detail.error is None else detail.error.status
    return {
        "method": detail.method,
        "path": detail.path,
        "code": detail.code,
        "sent": _body(detail, detail.sent, detail.decode_sent),
        "answered": _body(detail, detail.answered, detail.decode_answered),
        "traced": bool(detail.trace),
        "reasons": reasons(steps, status),
        "steps": steps if detail.trace else [],
        "calls": [
            {
                "webhook": call.webhook,
                "milliseconds": round(call.seconds * 1000, 3),
                "message": call.message,
                "changes": call.changes,
            }
            for call in detail.calls
        ],
    }


def _steps(detail: RequestDetail) -> Iterator[Step]:
    """Those of the trace; without one, what is known of a refused write."""
    if detail.trace:
        yield from detail.trace
    elif detail.outcome is not None:
        notes = list(explain.refusal(detail.kind, detail.outcome))
        for stage, has_rule in (("prune", False), ("validate", True)):
            if found := [note for note in notes if bool(note.rule) is has_rule]:
                yield Step(stage, notes=found)
        for call in detail.calls:
            if call.message:
                yield Step(f"webhook {call.webhook}", call.seconds, notes=[Note("", call.message)])


def _body(detail: RequestDetail, body: bytes | None, decode: Callable[[bytes], Json]) -> Object:
    if body is None:
        return {"omitted": True}
    if not body:
        return {}
    try:
        return {"body": masked(decode(body), resource=detail.resource)}
    except (ApiError, ValueError):  # whatever a client has sent: the server has refused it
        return {"omitted": True} if is_secret(detail.resource) else {"body": body.decode("utf-8", "replace")}


async def request(call: ControlCall) -> Object:
    """The details of a write; `{"note": "…"}` if they are not kept, which is no failure."""
    detail = call.control.server.interventions.details().of(call.query["id"])
    if detail is None:
        return {"note": NOT_KEPT}
    return await offload(len(detail.sent or b""), shown, detail)


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/console/request",
        request,
        "What a write had, and what became of it on the way.",
        query={"id": Argument(TEXT, "its Audit-Id", required=True)},
    ),
)
