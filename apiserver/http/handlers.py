"""One function per verb. Which of them a request gets is `routes`' business."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import ParamSpec, TypeVar

from aiohttp import web_request

from apiserver.api import codec, errors, meta, protobuf
from apiserver.api.difference import difference
from apiserver.api.gotime import format_time
from apiserver.api.structs import decode
from apiserver.api.types import Object
from apiserver.api.values import copy
from apiserver.apply import manager
from apiserver.apply.tracker import Tracker
from apiserver.crd import types as crd
from apiserver.http import negotiation, options, responses
from apiserver.http.answer import Answer
from apiserver.http.body import read_body
from apiserver.http.negotiation import Accepted, Endpoint
from apiserver.http.options import ListOptions
from apiserver.http.patches import APPLY_PATCH, BUILT_IN_PATCHES, CUSTOM_PATCHES, Change, read_configuration
from apiserver.http.request import Query, RequestInfo, check_name, first
from apiserver.http.table import include_object
from apiserver.registry import kinds, ownership, pipeline
from apiserver.registry.deletion import delete_keys
from apiserver.registry.entry import Entry, body_at, is_read, object_at
from apiserver.registry.heavy import LIGHT, work
from apiserver.registry.kinds import options as kinds_options
from apiserver.registry.listing import fresh, list_entries
from apiserver.registry.pipeline import Draft, Operation, Options, User
from apiserver.registry.resource import Resource
from apiserver.registry.store import AdmitDelete, DeleteOptions, Preconditions, Registry, Revise, Written
from apiserver.registry.trace import Trace

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Call:
    """One request for a resource."""

    registry: Registry
    request: web_request.BaseRequest
    info: RequestInfo
    query: Query
    resource: Resource
    user: User
    warnings: list[str] = field(default_factory=list)
    weight: int = 0
    """Bytes of the body and of the stored object that it is about. What is heavy is not worked on in the loop."""
    has_turn: bool = False
    deadline: float = math.inf
    """When it must be answered, by the event loop's clock."""
    delete_options: Object = field(default_factory=dict)
    """DeleteOptions as they were sent."""
    trace: Trace | None = None
    """What the write did so far, if the client wants to know."""

    async def body(self) -> bytes:
        """The body. A heavy request waits here for its turn, and keeps it until `leave`. Raises ApiError."""
        body = await read_body(self.request)
        self.weight = len(body) + self.registry.size(self.resource, self.namespace, self.info.name)
        if self.weight > LIGHT and not self.has_turn:
            await self.registry.turns.take()
            self.has_turn = True
        return body

    def leave(self) -> None:
        """The request is answered."""
        if self.has_turn:
            self.registry.turns.give_back()

    async def work(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what takes as long as the request is heavy."""
        return await work(self.weight, do, *args, **kwargs)

    @property
    def endpoint(self) -> Endpoint:
        if self.resource.behaviour.sorted_keys:
            return negotiation.CUSTOM_RESOURCE
        if self.resource.kind == crd.KIND and self.info.subresource:
            return negotiation.DEFINITION_STATUS
        return negotiation.BUILT_IN_LIST if self.info.verb in ("list", "watch") else negotiation.BUILT_IN

    @property
    def user_agent(self) -> str:
        return self.request.headers.get("User-Agent", "")

    def require_name(self) -> None:
        """Raises ApiError: the path names a collection, and the verb wants one object."""
        if not self.info.name:
            raise errors.bad_request("name must be provided")

    def refuse_terminating(self, name: str) -> None:
        """Raises ApiError: the definition is being deleted, nothing can be created any more."""
        if self.resource.versions.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(self.resource.what, name, why)

    def accepted(self, endpoint: Endpoint | None = None) -> Accepted:
        """What to answer with. Raises ApiError NotAcceptable."""
        return negotiation.negotiate(
            self.request.headers.get("Accept", ""),
            endpoint or self.endpoint,
            pretty=first(self.query, "pretty"),
            user_agent=self.user_agent,
        )

    async def answer(self, found: Entry | Written, accepted: Accepted, status: int = 200) -> Answer:
        """One object."""
        entry = found if isinstance(found, Entry) else found.entry
        if entry is not None and is_read(entry, self.resource) and responses.is_plain(accepted):
            return self._answer(found, accepted, status)  # its bytes are there already
        return await work(max(self.weight, len(entry.stored) if entry else 0), self._answer, found, accepted, status)

    def _answer(self, found: Entry | Written, accepted: Accepted, status: int) -> Answer:
        body = body_at(found, self.resource) if isinstance(found, Entry) else found.body(self.resource)
        include = self.include(accepted)
        return responses.object_answer(body, self.resource, accepted, include=include, now=self.now(), status=status)

    def include(self, accepted: Accepted) -> str:
        """What a table shows of its objects beside the cells. Raises ApiError."""
        table = accepted.convert is not None and accepted.convert.kind == "Table"
        return include_object(first(self.query, "includeObject")) if table else ""

    def now(self) -> datetime:
        return self.registry.sources.now()

    def body_format(self) -> str:
        """The media type of the body. Raises ApiError UnsupportedMediaType."""
        media_type = negotiation.request_format(self.request.headers.get("Content-Type", ""))
        if media_type == negotiation.PROTOBUF and self.resource.behaviour.sorted_keys:
            raise errors.unsupported_media_type(negotiation.MEDIA_TYPES)
        return media_type

    def admit_delete(self, given: DeleteOptions) -> AdmitDelete:
        """What judges the deletion of an object."""
        write = Options(dry_run=given.dry_run)

        async def admit(old: Object) -> None:
            draft = self.draft("DELETE", codec.Decoded({}), write)
            draft.old = old
            if self.resource.collection in self.registry.lifecycles:  # upstream then always names the object's uid
                wanted = {"uid": old["metadata"].get("uid", ""), **(draft.given.get("preconditions") or {})}
                draft.given = {**draft.given, "preconditions": wanted}
            await pipeline.admit_delete(draft)

        return admit

    def draft(self, operation: Operation, decoded: codec.Decoded, given: Options) -> Draft:
        draft = self.registry.draft(
            self.resource,
            operation,
            decoded.value,
            namespace=self.namespace,
            name=self.info.name,
            options=given,
            user=self.user,
        )
        draft.subresource = self.info.subresource
        draft.weight = self.weight
        draft.duplicates = list(decoded.strict if given.field_validation == "Strict" else decoded.duplicates)
        draft.warnings = self.warnings
        draft.deadline = self.deadline
        draft.given = self.delete_options if operation == "DELETE" else options.as_sent(self.query)
        draft.trace = self.trace
        return draft

    @property
    def namespace(self) -> str:
        return self.info.namespace if self.resource.namespaced else ""


Handler = Callable[[Call], Awaitable[Answer]]


# -- reading ----------------------------------------------------------------------------------------------------------


async def get(call: Call) -> Answer:
    accepted = call.accepted()
    return await call.answer(await entry_of(call), accepted)


async def entry_of(call: Call) -> Entry:
    """What a GET is about, no older than the resourceVersion that it names. Raises ApiError."""
    check_name(call.info.name)
    revision = options.parse_revision(first(call.query, "resourceVersion"), errors.plain_error)
    if revision:
        await fresh(call.registry, revision)
    return await call.registry.get(call.resource, call.namespace, call.info.name)


async def list_options(call: Call, *, watch: bool) -> ListOptions:
    """Raises ApiError."""
    namespace = call.info.namespace if call.info.in_namespace else None
    weight = len(call.request.raw_path)  # a selector may be long
    return await work(weight, options.list_options, call.resource, namespace, call.info.name, call.query, watch=watch)


async def list_(call: Call) -> Answer:
    accepted = call.accepted()
    wanted = await list_options(call, watch=False)
    listing = await list_entries(call.registry, wanted.selection, options.window(wanted))
    include = call.include(accepted)
    return await responses.list_answer(listing, call.resource, accepted, include=include, now=call.now())


# -- writing ----------------------------------------------------------------------------------------------------------


async def arrived(
    call: Call, body: bytes, media_type: str, given: Options, type_: tuple[str, str] | None = None
) -> codec.Decoded:
    """The object in a request's body, and the decoder's complaints. Raises ApiError.

    `type_`: apiVersion and kind, if they are not the resource's own.
    """
    resource = call.resource
    api_version, kind = type_ or (resource.api_version, resource.kind)
    expected = meta.GroupVersionKind(*meta.parse_api_version(api_version), kind)
    strict = given.field_validation != "Ignore"
    typed = not resource.behaviour.sorted_keys
    if media_type == negotiation.PROTOBUF:
        return codec.Decoded(await call.work(_from_protobuf, body, api_version, kind))
    decoded = await call.work(codec.read_object, body, media_type, expected, strict=strict, typed=typed)
    if typed:  # built-in kinds may be sent without saying what they are
        for name, value in (("apiVersion", api_version), ("kind", kind)):
            if not decoded.value.get(name):
                decoded.value[name] = value
    return decoded


def _from_protobuf(body: bytes, api_version: str, kind: str) -> Object:
    """Clients written in Go send built-in kinds as protobuf. Custom resources have no such form."""
    try:
        return protobuf.decode(body, kinds.struct_of, api_version=api_version, kind=kind)[1]
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


async def create(call: Call) -> Answer:
    accepted = call.accepted()
    media_type = call.body_format()
    body = await call.body()
    given = options.write_options(call.query, "CreateOptions", call.user_agent)
    decoded = await arrived(call, body, media_type, given)
    metadata = decoded.value.get("metadata")
    call.refuse_terminating(metadata.get("name", "") if isinstance(metadata, dict) else "")
    written = await call.registry.create(call.draft("CREATE", decoded, given))
    return await call.answer(written, accepted, 201)


async def update(call: Call) -> Answer:
    call.require_name()
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "UpdateOptions", call.user_agent)
    media_type = call.body_format()

    async def arrive() -> Draft:
        draft = call.draft("UPDATE", await arrived(call, body, media_type, given), given)
        await pipeline.arrive(draft)
        return draft

    first_draft: Draft | None = await arrive()

    async def revise(_: Object) -> Draft:
        """The draft that has arrived; if another writer was faster, the body once more."""
        nonlocal first_draft
        draft, first_draft = first_draft, None
        return draft or await arrive()

    assert first_draft is not None
    preconditions = Preconditions(uid=first_draft.metadata.get("uid") or None)
    may_create = call.resource.behaviour.create_on_update and not call.info.subresource

    async def make() -> Draft:
        first = await arrive()
        first.operation, first.name = "CREATE", ""
        return first

    written = await _update_or_create(call, revise, make if may_create else None, preconditions, whole=True)
    return await call.answer(written, accepted, 201 if written.created else 200)


async def _update_or_create(
    call: Call,
    revise: Revise,
    make: Callable[[], Awaitable[Draft]] | None,
    preconditions: Preconditions = Preconditions(),
    *,
    whole: bool = False,
) -> Written:
    """Update what is there, or create what `make` gives. Others may do the opposite in between. Raises ApiError."""
    update = call.registry.update
    while True:
        try:
            return await update(call.resource, call.namespace, call.info.name, revise, preconditions, whole=whole)
        except errors.ApiError as error:
            if error.reason != "NotFound" or make is None:
                raise
        call.refuse_terminating(call.info.name)
        try:
            return await call.registry.create(await make())
        except errors.ApiError as error:
            if error.reason != "AlreadyExists":
                raise


async def patch_(call: Call) -> Answer:
    struct = call.resource.behaviour.struct
    content_type = call.request.headers.get("Content-Type", "")
    patches = BUILT_IN_PATCHES if struct else CUSTOM_PATCHES
    media_type = negotiation.patch_format(content_type, patches, built_in=struct is not None)
    call.require_name()
    accepted = call.accepted()
    body = await call.body()
    given = options.write_options(call.query, "PatchOptions", call.user_agent, apply=media_type == APPLY_PATCH)
    if media_type == APPLY_PATCH:
        return await _apply(call, accepted, body, given)
    change = await call.work(Change, media_type, body, struct, field_validation=given.field_validation)

    async def revise(old: Object) -> Draft:
        draft = call.draft("UPDATE", await call.work(change, old), given)
        draft.patched = lambda: change.text(old)
        if draft.trace is not None:
            draft.did("patch", patch=await call.work(difference, old, copy(draft.new)))
        return draft

    written = await call.registry.update(call.resource, call.namespace, call.info.name, revise)
    return await call.answer(written, accepted)


async def _apply(call: Call, accepted: Accepted, body: bytes, given: Options) -> Answer:
    """Server-side apply: merge a configuration into the object, or create it."""
    read = partial(call.work, read_configuration, body, field_validation=given.field_validation)
    sent = [await read()]  # until it is used
    call.warnings += sent[0].duplicates if given.field_validation == "Warn" else ()

    async def merged(old: Object | None) -> Object:
        """It shares with the configuration, which is read anew for the next attempt, but not with other objects."""
        config = (sent.pop() if sent else await read()).value
        now = format_time(call.now())

        def merge(tracker: Tracker) -> Object:
            new = manager.apply(old, config, tracker, manager=given.field_manager, force=given.force, now=now)
            return {name: copy(one) if name == "metadata" else one for name, one in new.items()}

        return await ownership.tracked(call.resource, call.info.subresource, merge, call.weight)

    async def revise(old: Object | None) -> Draft:
        new = await merged(old)
        if old is None and (uid := (new.get("metadata") or {}).get("uid")):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(call.resource.what, call.info.name, why)
        draft = call.draft("UPDATE" if old else "CREATE", codec.Decoded(new), given)
        draft.owned = True
        if draft.trace is not None:
            draft.did("apply", patch=await call.work(difference, old or {}, copy(new)))
        await pipeline.run(draft, pipeline.APPLIED)
        draft.arrived = True
        return draft

    async def make() -> Draft:
        draft = await revise(None)
        draft.metadata.pop("resourceVersion", None)
        return draft

    written = await _update_or_create(call, revise, None if call.info.subresource else make)
    return await call.answer(written, accepted, 201 if written.created else 200)


# -- deleting ---------------------------------------------------------------------------------------------------------


async def _delete_options(call: Call) -> DeleteOptions:
    """From the body, or if there is none from the query. Raises ApiError."""
    body = await call.body()
    if not body:
        from_query = options.delete_body_from_query(call.query)
        call.delete_options = options.delete_body_as_sent(from_query)
        return options.delete_options(from_query)
    media_type = negotiation.request_format(call.request.headers.get("Content-Type", ""))
    sent = await call.work(_read_delete_options, call.resource, body, media_type)
    call.delete_options = {name: value for name, value in sent.items() if name not in ("kind", "apiVersion")}
    return options.delete_options(options.delete_body_from_object(sent))


def _read_delete_options(resource: Resource, body: bytes, media_type: str) -> Object:
    """DeleteOptions are known in every group, and may be sent without saying what they are. Raises ApiError."""
    if media_type == negotiation.PROTOBUF:
        return _from_protobuf(body, resource.api_version, resource.kind)
    try:
        value = (codec.decode_yaml if media_type == negotiation.YAML else codec.decode_json)(body).value
    except ValueError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    decoded = decode(kinds_options.DELETE_OPTIONS, value)
    kind, api_version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if kind not in (None, "", "DeleteOptions"):
        raise errors.bad_request(errors.no_kind_registered(kind, api_version or "meta.k8s.io/v1"))
    if decoded.error:
        raise errors.bad_request(decoded.error)
    found: Object = decoded.value
    return found


async def delete(call: Call) -> Answer:
    accepted = call.accepted()
    check_name(call.info.name)
    given = await _delete_options(call)
    if given.damaged and await call.registry.delete_damaged(call.resource, call.namespace, call.info.name, given):
        return _deleted({"name": call.info.name, "kind": call.resource.kind}, accepted, code=200)
    now = format_time(call.registry.sources.now())
    admit = call.admit_delete(given)
    entry, gone = await call.registry.delete(call.resource, call.namespace, call.info.name, given, admit, now)
    if not gone or (not call.resource.behaviour.sorted_keys and call.resource.plural == "namespaces"):
        return await call.answer(entry, accepted)
    details = {
        "name": entry.key.name,
        "group": call.resource.group,
        "kind": call.resource.plural,
        "uid": (await work(len(entry.stored), object_at, entry, call.resource))["metadata"].get("uid", ""),
    }
    return _deleted(details, accepted)


def _deleted(details: Object, accepted: Accepted, **more: int) -> Answer:
    """The object is gone. Upstream tells the code only where it has no object to tell of."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    status["details"] = {name: value for name, value in details.items() if value}
    return Answer(responses.encode(status | more, accepted._replace(convert=None)), 200, accepted.content_type)


async def delete_collection(call: Call) -> Answer:
    accepted = call.accepted()
    wanted = await list_options(call, watch=False)
    given = await _delete_options(call)
    listing = await list_entries(call.registry, wanted.selection, options.window(wanted))
    keys = [entry.key for entry in listing.entries]
    await delete_keys(call.registry, call.resource, keys, given, call.admit_delete(given))
    include = call.include(accepted)
    return await responses.list_answer(listing, call.resource, accepted, include=include, now=call.now())
