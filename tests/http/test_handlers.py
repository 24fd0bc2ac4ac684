"""Each verb's handler: the WriteRequest that it makes of a request, and in which order it refuses."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from noxu.api.errors import ApiError
from noxu.http.answer import Answer
from noxu.http.app import find_resource, handler_of
from noxu.http.exchange import Exchange
from noxu.http.filters import ParseTarget
from noxu.registry.access import User
from noxu.registry.custom import versions_of
from noxu.registry.draft import (
    NO_BODY,
    Action,
    Body,
    DeleteOptions,
    Options,
    Outcome,
    Preconditions,
    WriteRequest,
    Written,
)
from noxu.registry.trace import Trace
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble
from tests.http.conftest import DEFINITION, GROUP, THINGS
from tests.http.exchanges import MAPS, backend_of
from tests.http.wire import received
from tests.rows import rows

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
AGENT = "kubectl/v1.37"
MINE = Options(field_manager="kubectl")
FINISHED = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"replicas": 1}}


class Recorder:
    """A writer that writes nothing. `created`: each write creates its object."""

    def __init__(self, created: bool = False) -> None:
        self.requests: list[WriteRequest] = []
        self.given: list[tuple[Outcome, Trace | None]] = []
        self._created = created

    async def write(self, request: WriteRequest, outcome: Outcome, trace: Trace | None) -> Written:
        self.requests.append(request)
        self.given.append((outcome, trace))
        return Written(None, FINISHED, created=self._created)


def exchange_of(
    method: str, target: str, body: bytes = b"", content_type: str = "", *, created: bool = False, **headers: str
) -> Exchange:
    """An exchange that filters and routing have seen."""
    plane = assemble(MemoryStore())
    status = {"acceptedNames": DEFINITION["spec"]["names"]}
    plane.served_resources.current = plane.served_resources.current.with_definition(
        DEFINITION["metadata"]["name"], versions_of(DEFINITION | {"status": status}, 0)
    )
    sent = {"User-Agent": AGENT, "Content-Type": content_type, **headers}
    request = received(method, target, {k: v for k, v in sent.items() if v}, body=body)
    exchange = Exchange(
        request, backend_of(plane, writer=Recorder(created)), "id", 0.0, user=User("eve"), deadline=60.0
    )
    ParseTarget().enter(exchange)
    exchange.resource = find_resource(plane.served_resources.current, method, exchange.path, exchange.info)
    return exchange


async def handle(exchange: Exchange) -> Answer:
    return await handler_of(exchange.resource, exchange.info)(exchange)


async def written(exchange: Exchange) -> WriteRequest:
    """What is written when the request is handled."""
    await handle(exchange)
    [request] = cast("Recorder", exchange.backend.writer).requests
    return request


# -- verbs ------------------------------------------------------------------------------------------------------------

# name, method, path, Content-Type, the action, and the namespace, name and subresource of the request
VERBS: list[tuple[str, str, str, str, Action, tuple[str, str, str]]] = [
    ("POST", "POST", THINGS, JSON, Action.CREATE, ("default", "", "")),
    ("POST of YAML", "POST", THINGS, YAML, Action.CREATE, ("default", "", "")),
    ("POST of protobuf", "POST", MAPS, PROTOBUF, Action.CREATE, ("default", "", "")),
    ("POST of a review", "POST", REVIEWS, JSON, Action.REVIEW, ("", "", "")),
    ("PUT", "PUT", f"{THINGS}/a", JSON, Action.REPLACE, ("default", "a", "")),
    ("PUT of a status", "PUT", f"{THINGS}/a/status", JSON, Action.REPLACE, ("default", "a", "status")),
    ("PUT of a scale", "PUT", f"{THINGS}/a/scale", JSON, Action.REPLACE_SCALE, ("default", "a", "scale")),
    ("PUT of a cluster-scoped object", "PUT", f"{DEFINITIONS}/a", JSON, Action.REPLACE, ("", "a", "")),
    ("PUT that finalizes a namespace", "PUT", "/api/v1/namespaces/a/finalize", JSON, Action.REPLACE,
     ("", "a", "finalize")),
    ("merge patch", "PATCH", f"{THINGS}/a", MERGE, Action.PATCH, ("default", "a", "")),
    ("JSON patch", "PATCH", f"{THINGS}/a", JSON_PATCH, Action.PATCH, ("default", "a", "")),
    ("strategic patch", "PATCH", f"{MAPS}/a", STRATEGIC, Action.PATCH, ("default", "a", "")),
    ("patch of a status", "PATCH", f"{THINGS}/a/status", MERGE, Action.PATCH, ("default", "a", "status")),
    ("patch of a scale", "PATCH", f"{THINGS}/a/scale", MERGE, Action.PATCH_SCALE, ("default", "a", "scale")),
    ("apply", "PATCH", f"{THINGS}/a?fieldManager=kubectl", APPLY, Action.APPLY, ("default", "a", "")),
    ("apply of a scale", "PATCH", f"{THINGS}/a/scale?fieldManager=kubectl", APPLY, Action.APPLY_SCALE,
     ("default", "a", "scale")),
]  # fmt: skip


@rows(("method", "path", "content_type", "action", "place"), [row[1:] for row in VERBS], ids=[row[0] for row in VERBS])
async def test_the_write_of_a(
    method: str, path: str, content_type: str, action: Action, place: tuple[str, str, str]
) -> None:
    exchange = exchange_of(method, path, b"{}", content_type)
    request = await written(exchange)
    assert (request.action, (request.namespace, request.name, request.subresource)) == (action, place)
    assert request.body == Body(b"{}", content_type)
    assert request.options == MINE
    assert (request.resource, request.user, request.deadline) == (exchange.resource, User("eve"), 60.0)
    assert request.weight == exchange.weight == 2


async def test_the_outcome_and_the_trace_are_those_of_the_exchange() -> None:
    exchange = exchange_of("POST", THINGS, b"{}", JSON)
    exchange.trace = []
    await handle(exchange)
    [(outcome, trace)] = cast("Recorder", exchange.backend.writer).given
    assert outcome is exchange.outcome
    assert trace is exchange.trace


CODES: list[tuple[str, str, str, str, bool, int]] = [
    ("POST", "POST", THINGS, JSON, False, 201),
    ("a review", "POST", REVIEWS, JSON, False, 201),
    ("PUT of an object that exists", "PUT", f"{THINGS}/a", JSON, False, 200),
    ("PUT that creates", "PUT", f"{THINGS}/a", JSON, True, 201),
    ("apply to an object that exists", "PATCH", f"{THINGS}/a?fieldManager=x", APPLY, False, 200),
    ("apply that creates", "PATCH", f"{THINGS}/a?fieldManager=x", APPLY, True, 201),
    ("a patch", "PATCH", f"{THINGS}/a", MERGE, False, 200),
]


@pytest.mark.parametrize(
    ("method", "path", "content_type", "created", "code"), [row[1:] for row in CODES], ids=[row[0] for row in CODES]
)
async def test_the_code_of(method: str, path: str, content_type: str, created: bool, code: int) -> None:
    answer = await handle(exchange_of(method, path, b"{}", content_type, created=created))
    assert answer.status == code
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["metadata"]["name"] == "a"


# -- options of writes ------------------------------------------------------------------------------------------------

OPTIONS: list[tuple[str, str, str, Options, dict[str, Any]]] = [
    ("none", THINGS, "", MINE, {}),
    ("dry run", THINGS, "?dryRun=All", MINE._replace(dry_run=True), {"dryRun": ["All"]}),
    ("a field manager", THINGS, "?fieldManager=x", MINE._replace(field_manager="x"), {"fieldManager": "x"}),
    ("strict validation", THINGS, "?fieldValidation=Strict", MINE._replace(field_validation="Strict"),
     {"fieldValidation": "Strict"}),
    ("pretty, which is none", THINGS, "?pretty=true", MINE, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "query", "options", "sent"), [row[1:] for row in OPTIONS], ids=[row[0] for row in OPTIONS]
)
async def test_options_of_a_create(path: str, query: str, options: Options, sent: dict[str, Any]) -> None:
    request = await written(exchange_of("POST", path + query, b"{}", JSON))
    assert (request.options, request.options_sent) == (options, sent)


# -- deletes ----------------------------------------------------------------------------------------------------------

DELETES: list[tuple[str, str, Any, DeleteOptions, dict[str, Any]]] = [
    ("without options", "", None, DeleteOptions(), {}),
    ("from the query", "?dryRun=All&propagationPolicy=Orphan&gracePeriodSeconds=5", None,
     DeleteOptions(dry_run=True, propagation="Orphan", grace=5),
     {"gracePeriodSeconds": 5, "propagationPolicy": "Orphan", "dryRun": ["All"]}),
    ("from the body", "", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
     DeleteOptions(propagation="Foreground"), {"propagationPolicy": "Foreground"}),
    ("from the body, and not from the query", "?dryRun=All", {"propagationPolicy": "Background"},
     DeleteOptions(propagation="Background"), {"propagationPolicy": "Background"}),
    ("with preconditions", "", {"preconditions": {"uid": "u", "resourceVersion": "7"}},
     DeleteOptions(preconditions=Preconditions("u", "7")), {"preconditions": {"uid": "u", "resourceVersion": "7"}}),
    ("that orphans, as it was said once", "?orphanDependents=true", None, DeleteOptions(propagation="Orphan"),
     {"orphanDependents": True}),
    ("that does not orphan", "?orphanDependents=false", None, DeleteOptions(propagation="Background"),
     {"orphanDependents": False}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "body", "options", "sent"), [row[1:] for row in DELETES], ids=[row[0] for row in DELETES]
)
async def test_a_delete(query: str, body: Any, options: DeleteOptions, sent: dict[str, Any]) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    exchange = exchange_of("DELETE", f"{THINGS}/a{query}", content, JSON if body else "")

    class Deletes(Recorder):
        async def write(self, request: WriteRequest, outcome: Outcome, trace: Trace | None) -> Written:
            await super().write(request, outcome, trace)
            raise ApiError(409, "seen enough")

    recorder = Deletes()
    object.__setattr__(exchange.backend, "writer", recorder)
    with pytest.raises(ApiError, match="seen enough"):
        await handle(exchange)
    [request] = recorder.requests
    assert (request.action, request.namespace, request.name) == (Action.DELETE, "default", "a")
    assert (request.delete_options, request.options_sent, request.body) == (options, sent, NO_BODY)


# -- refusals ---------------------------------------------------------------------------------------------------------

NO_TYPE = "only the following media types are accepted"
REFUSED: list[tuple[str, str, str, str, str, str, int, str]] = [
    # name, method, path, Content-Type, Accept, body, code, part of the message
    ("an unacceptable Accept", "POST", THINGS, JSON, "text/html", "{}", 406, NO_TYPE),
    ("an Accept before the Content-Type", "POST", THINGS, "text/html", "text/html", "{}", 406, NO_TYPE),
    ("a body in no known format", "POST", THINGS, "text/html", "", "{}", 415, "unknown format"),
    ("a custom resource in protobuf", "POST", THINGS, PROTOBUF, "", "{}", 415, "unknown format"),
    ("the Content-Type before options", "POST", f"{THINGS}?dryRun=x", "text/html", "", "{}", 415, "unknown format"),
    ("options that are not valid", "POST", f"{THINGS}?dryRun=x", JSON, "", "{}", 422, 'Unsupported value: ["x"]'),
    ("PUT: no name, before the Accept", "PUT", THINGS, JSON, "text/html", "{}", 400, "name must be provided"),
    ("PATCH: the Content-Type before the name", "PATCH", THINGS, JSON, "", "{}", 415, "unknown format"),
    ("PATCH: no name, before the Accept", "PATCH", THINGS, MERGE, "text/html", "{}", 400, "name must be provided"),
    ("PUT: options before the Content-Type", "PUT", f"{THINGS}/a?dryRun=x", "text/html", "", "{}", 422, "dryRun"),
    ("PUT: the Content-Type", "PUT", f"{THINGS}/a", "text/html", "", "{}", 415, "unknown format"),
    ("PATCH: the Content-Type before the Accept", "PATCH", f"{THINGS}/a", JSON, "text/html", "{}", 415, "unknown format"),
    ("PATCH: a strategic patch of a custom resource", "PATCH", f"{THINGS}/a", STRATEGIC, "", "{}", 415, "unknown format"),
    ("PATCH: the Accept before options", "PATCH", f"{THINGS}/a?dryRun=x", MERGE, "text/html", "{}", 406, NO_TYPE),
    ("PATCH: force without apply", "PATCH", f"{THINGS}/a?force=1", MERGE, "", "{}", 422, "non-apply patch"),
    ("apply without a field manager", "PATCH", f"{THINGS}/a", APPLY, "", "{}", 422, "is required for apply patch"),
    ("DELETE: the Accept before the name", "DELETE", f"{THINGS}/%25", "", "text/html", "", 406, NO_TYPE),
    ("DELETE: the Content-Type before the name", "DELETE", f"{THINGS}/%25", "text/html", "", "{}", 415, "unknown format"),
    ("DELETE: the body before the name", "DELETE", f"{THINGS}/%25", JSON, "", "{", 400, "couldn't get version/kind"),
    ("DELETE: options before the name", "DELETE", f"{THINGS}/%25?dryRun=x", "", "", "", 422, "dryRun"),
    ("DELETE: a body that is none", "DELETE", f"{THINGS}/a", JSON, "", "{", 400, "couldn't get version/kind"),
    ("DELETE: a body of another kind", "DELETE", f"{THINGS}/a", JSON, "", '{"kind":"Thing"}', 400, 'no kind "Thing"'),
    ("DELETE: a field of another type", "DELETE", f"{THINGS}/a", JSON, "", '{"dryRun":1}', 400, "dryRun"),
    ("DELETE: options that exclude each other", "DELETE", f"{THINGS}/a?orphanDependents=1&propagationPolicy=Orphan",
     "", "", "", 422, "cannot be both set"),
    ("DELETE: a number that is none", "DELETE", f"{THINGS}/a?gracePeriodSeconds=x", "", "", "", 400, "ParseInt"),
    ("DELETE: an empty number", "DELETE", f"{THINGS}/a?gracePeriodSeconds=", "", "", "", 400, 'parsing ""'),
    ("DELETE of all: an empty limit", "DELETE", f"{THINGS}?limit=", "", "", "", 400, 'parsing ""'),
    ("DELETE of all: an empty grace period", "DELETE", f"{THINGS}?gracePeriodSeconds=", "", "", "", 400, 'parsing ""'),
    ("GET: a name that is none", "GET", f"{THINGS}/%25", "", "", "", 400, "may not contain '%'"),
    ("GET: a resourceVersion that is none", "GET", f"{THINGS}/a?resourceVersion=x", "", "", "", 500, "ParseUint"),
    ("a list: a limit that is none", "GET", f"{THINGS}?limit=x", "", "", "", 400, "ParseInt"),
    ("a list: an empty limit", "GET", f"{THINGS}?limit=", "", "", "", 400, 'parsing ""'),
    ("a list: an empty timeout", "GET", f"{THINGS}?timeoutSeconds=", "", "", "", 400, 'parsing ""'),
    ("a list: the timeout before the limit", "GET", f"{THINGS}?limit=x&timeoutSeconds=y", "", "", "", 400, '"y"'),
]  # fmt: skip


@rows(
    ("method", "path", "content_type", "accept", "body", "code", "message"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
async def test_the_refusal_of(
    method: str, path: str, content_type: str, accept: str, body: str, code: int, message: str
) -> None:
    exchange = exchange_of(method, path, body.encode(), content_type, Accept=accept)
    with pytest.raises(ApiError) as caught:
        await handle(exchange)
    assert (caught.value.code, message in caught.value.message) == (code, True), caught.value.message
    assert cast("Recorder", exchange.backend.writer).requests == []


async def test_a_large_request_takes_room_and_keeps_it() -> None:
    exchange = exchange_of("POST", THINGS, b'{"a":"%b"}' % (b"x" * 20_000), JSON)
    request = await written(exchange)
    assert request.weight == 20_008
    assert exchange.room == 20_008
    exchange.backend.large_requests.leave(exchange.room)


async def test_a_small_one_takes_none() -> None:
    exchange = exchange_of("POST", THINGS, b"{}", JSON)
    await handle(exchange)
    assert not exchange.room
