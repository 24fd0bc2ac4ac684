"""Small recordings: requests and writes as texts.

asked("0.0 update a", "0.5 update a 409 Conflict")     two PUTs of widgets default/a, half a second apart
wrote("0.0 update a: spec.size")                       the first one has changed spec.size
"""

from __future__ import annotations

from typing import Any, Final

from noxu.control.manners.observed import ClientKey, ObjectId, Observed, ObservedWrite, WriteAuthor
from noxu.control.recorded_requests import RecordedRequest

METHODS: Final = {
    "create": "POST",
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
PATH: Final = "/apis/example.com/v1/namespaces/default/widgets"
WIDGETS: Final = "widgets.example.com"
OPERATOR: Final = "operator/v1 (linux)"
BEGAN: Final = 1_800_000_000.0
"""When the recordings begin, in seconds since 1970."""


def request(text: str, agent: str = OPERATOR, **more: Any) -> RecordedRequest:
    """A request: `AT VERB [NAME] [CODE] [REASON]`. `revision` is that of the server then. Its Audit-Id is `AT VERB NAME` and, but for the operator, the agent."""
    at, verb, *rest = text.split()
    name = rest.pop(0) if rest and not rest[0].isdecimal() else ""
    code = int(rest.pop(0)) if rest else 200
    in_path = "" if verb in ("create", "list", "watch") else name
    query = more.pop("query", "")
    of: dict[str, Any] = {
        "resource": WIDGETS,
        "namespace": "default",
        "path": f"{PATH}{f'/{in_path}' if in_path else ''}{f'?{query}' if query else ''}",
        "subresource": "",
        "user": "system:anonymous",
        "id": f"{at} {verb} {name}".strip() + ("" if agent == OPERATOR else f" {agent}"),
        "reason": rest[0] if rest else "",
        "version": "v1",
    } | more
    return RecordedRequest(
        number=round(float(at) * 1000),
        method=METHODS[verb],
        verb=verb,
        name=name,
        user_agent=agent,
        code=code,
        at=BEGAN + float(at),
        **of,
    )


def asked(*texts: str, agent: str = OPERATOR, **more: Any) -> list[RecordedRequest]:
    return [request(text, agent, **more) for text in texts]


def wrote(
    *texts: str, agent: str = OPERATOR, controller: str = "", first: int = 1, resource: str = WIDGETS
) -> list[ObservedWrite]:
    """Revisions: `AT VERB NAME: PATH, …`, written by the request with that Audit-Id."""
    writes = []
    for revision, text in enumerate(texts, first):
        asked_for, _, paths = text.partition(":")
        name = asked_for.split()[2]
        writer = WriteAuthor(agent, "system:anonymous", agent.partition("/")[0], controller)
        changed = tuple(path for path in paths.replace(" ", "").split(",") if path)
        id_ = asked_for if agent == OPERATOR else f"{asked_for} {agent}"
        writes.append(ObservedWrite(revision, ObjectId(resource, "default", name), writer, id_, changed))
    return writes


def in_order(*parts: list[ObservedWrite]) -> list[ObservedWrite]:
    """The writes of several clients, in the order of the times in their Audit-Ids, with revisions of that order."""
    writes = sorted((write for part in parts for write in part), key=lambda write: float(write.request_id.split()[0]))
    return [write._replace(revision=revision) for revision, write in enumerate(writes, 1)]


def of_operator(observed: Observed) -> list[RecordedRequest]:
    return observed.by_client[ClientKey(OPERATOR, "system:anonymous")]
