"""The verbs of the handle: the requests of a test to the server.

A verb is called the same way in a sync test and, with `await`, in an async one (see `calls`). Requests go over HTTP, as
those of other clients. Objects are plain dicts. Errors are `ApiError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast, overload

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.features import check_name
from noxu.manifests import loading
from noxu.manifests.documents import Document, LoadError
from noxu.registry import explain
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.testing import addresses, calls
from noxu.testing.addresses import Address
from noxu.testing.calls import AnsweredCall
from noxu.testing.client import FIELD_MANAGER, ApiWarning, ClientReply, UnknownFieldWarning
from noxu.testing.conditions import CREATE, DELETE, Condition
from noxu.testing.errors import UnknownKind, hidden
from noxu.testing.session import Session
from noxu.testing.sources import Source, documents, path_of
from noxu.testing.waiting import Several, Waiting
from noxu.testing.watching import Watch
from noxu.values import Object, copy

if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableObject, AwaitableObjects

__tracebackhide__ = hidden

T = TypeVar("T")
Patch: TypeAlias = Object | list[Object]
PatchType = Literal["merge", "json", "strategic", "apply"]
_PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PROPAGATIONS: Final = ("Foreground", "Background", "Orphan", "")
TIMEOUT: Final = 10.0
"""Seconds that `wait` and `watch` wait if a call does not say how long."""
_UNKNOWN: Final = ('unknown field "', 'duplicate field "')


class Verbs:
    """What a user of the server may ask it."""

    __slots__ = ()
    _session: Session

    # -- reading

    @overload
    def get(self, what: str, name: str, /, *, namespace: str | None = None) -> AwaitableObject: ...
    @overload
    def get(self, what: Object, /, *, namespace: str | None = None) -> AwaitableObject: ...
    def get(self, what: str | Object, name: str = "", /, *, namespace: str | None = None) -> AwaitableObject:
        """One object, by kind and name (`noxu.get("widgets", "a")`), or the newest state of an object.

        A kind is given by any of its names, with its group if need be: `Widget`, `widgets`, `widgets.example.com`. Without a
        namespace it is that of the object, or `default`. Raises ApiError (404), and UnknownKind for one that is not served.
        """
        return self._ask("get", self._get, self._address(what, name, namespace))

    async def _get(self, address: Address) -> AnsweredCall[AwaitableObject]:
        return _answered(address.resource, await self._session.client.send("GET", address.path()))

    def list(
        self,
        kind: str | Object,
        /,
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
    ) -> AwaitableObjects:
        """The objects of a kind, or of the kind of an object, of all namespaces unless one is given.

        `labels` and `fields` select: `"app=web,tier!=db"`, or a dict of equal values. Each object has its apiVersion and kind.
        Raises UnknownKind, and ValueError for a namespace that has never existed.
        """
        resource = addresses.of_any(self._session.served_resources, kind).resource
        address = Address(resource, namespace or "")
        return self._ask("list", self._list, address, selectors(labels, fields))

    async def _list(self, address: Address, query: Mapping[str, str]) -> AnsweredCall[AwaitableObjects]:
        resource = address.resource
        await self._session.check_namespace(address.namespace)
        reply = await self._session.client.send("GET", address.path(), query)
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        items = [{**head, **item} for item in reply.value["items"]]
        return cast("AnsweredCall[AwaitableObjects]", _answered(resource, reply._replace(value=items)))

    # -- writing

    def create(
        self,
        source: Source,
        /,
        *,
        namespace: str | None = None,
        strict: bool | None = None,
        dry_run: bool = False,
    ) -> AwaitableObject:
        """Create one object, and return it as it is stored.

        The source is a dict, or a file or a text with one manifest. Fields that the schema does not describe are pruned, with
        an UnknownFieldWarning at this line; `strict=True` refuses them. Raises ApiError, and LoadError for an unreadable source.
        """
        path_of(source)  # a wrong source is an error of the call, not of its await
        return self._ask("create", self._write, "POST", source, namespace, strict, dry_run)

    def update(
        self,
        source: Source,
        /,
        *,
        namespace: str | None = None,
        strict: bool | None = None,
        dry_run: bool = False,
    ) -> AwaitableObject:
        """Replace one object. If the given one has a resourceVersion, it must be the newest (else ApiError, 409)."""
        path_of(source)  # a wrong source is an error of the call, not of its await
        return self._ask("update", self._write, "PUT", source, namespace, strict, dry_run)

    async def _write(
        self, method: str, source: Source, namespace: str | None, strict: bool | None, dry_run: bool
    ) -> AnsweredCall[AwaitableObject]:
        sources = await _documents(source)
        if len(sources) != 1:
            raise LoadError(f"{len(sources)} objects, and not one: `apply` takes any number")
        value = sources[0].value
        resource = self._resource(value)
        namespace = (namespace or loading.namespace_of(resource, value)) if resource.namespaced else ""
        address = Address(resource, namespace, loading.name_of(value) if method == "PUT" else "")
        query = self._options(strict, dry_run)
        repeated = _repeated(sources[0], query)
        answered = _answered(resource, await self._session.client.send(method, address.path(), query, value))
        return answered._replace(warnings=[*repeated, *answered.warnings])

    def apply(self, *sources: Source, strict: bool | None = None) -> AwaitableObjects:
        """Create objects, or replace existing ones; CRDs first. Returns them as they are stored.

        A source is a file or a directory, a text with manifests, or a dict. When it returns, the objects can be read and
        watched. Fields that the schema does not describe are pruned, with an UnknownFieldWarning; `strict=True` refuses them.
        Raises ApiError for an object that the server refuses, and LoadError for a source that cannot be read.
        (Server-side apply is `patch(…, type="apply")`.)
        """
        for source in sources:
            path_of(source)  # a wrong source is an error of the call, not of its await
        return self._ask("apply", self._apply, sources, strict)

    async def _apply(self, sources: tuple[Source, ...], strict: bool | None) -> AnsweredCall[AwaitableObjects]:
        stored: list[Object] = []
        warnings: list[Warning] = []
        for document in await _documents(*sources):
            query = self._options(strict)
            warnings += _repeated(document, query)
            answered = await self._applied(document, query)
            stored.append(answered.value)
            warnings += answered.warnings
        return AnsweredCall(cast("AwaitableObjects", stored), warnings)

    async def _applied(self, document: Document, query: Mapping[str, str]) -> AnsweredCall[AwaitableObject]:
        client, resource = self._session.client, self._resource(document.value)
        value = copy(document.value)
        if isinstance(value.get("metadata"), dict):
            for name in ("resourceVersion", "uid"):  # an exported object has those of another one
                value["metadata"].pop(name, None)
        namespace, name = loading.namespace_of(resource, value), loading.name_of(value)
        collection, address = Address(resource, namespace), Address(resource, namespace, name)
        if not name or not await self._exists(address):
            try:
                return _answered(resource, await client.send("POST", collection.path(), query, value))
            except ApiError as error:
                if error.reason != "AlreadyExists" or not name:
                    raise  # otherwise another client has created it in the meantime
        while True:
            old = await client.send("GET", address.path())
            sent = loading.replacing(value, old.value, resource)
            try:
                return _answered(resource, await client.send("PUT", address.path(), query, sent))
            except ApiError as error:
                newest = await client.send("GET", address.path())
                version = newest.value["metadata"]["resourceVersion"]
                if error.reason != "Conflict" or version == sent["metadata"]["resourceVersion"]:
                    raise

    async def _exists(self, address: Address) -> bool:
        """Whether the watch cache has the object."""
        resource = address.resource
        if not resource.is_stored:
            return False
        collection = await self._session.runner.server.plane.reader.collection(resource)
        return key_of(resource, address.namespace, address.name) in collection.entries

    @overload
    def patch(
        self,
        what: str,
        name: str,
        patch: Patch,
        /,
        *,
        type: PatchType | None = None,
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        strict: bool | None = None,
        dry_run: bool = False,
    ) -> AwaitableObject: ...
    @overload
    def patch(
        self,
        what: Object,
        patch: Patch,
        /,
        *,
        type: PatchType | None = None,
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        strict: bool | None = None,
        dry_run: bool = False,
    ) -> AwaitableObject: ...
    def patch(
        self,
        what: str | Object,
        /,
        *rest: Any,
        type: PatchType | None = None,  # noqa: A002 - as kubectl's option
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        strict: bool | None = None,
        dry_run: bool = False,
    ) -> AwaitableObject:
        """Change an object: `noxu.patch("widgets", "a", {"spec": {"size": 2}})`, or with an object in place of kind and name.

        A dict is a merge patch and a list a JSON patch, unless `type` says otherwise: `merge`, `json`, `strategic` (built-in
        kinds), `apply` (server-side apply, as `field_manager`; `force` takes fields of others). Returns the stored object.
        """
        name, patch = _after(what, rest, "patch")
        if type is not None:
            check_name(type, _PATCH_TYPES, "type")
        query = self._options(strict, dry_run) | {"fieldManager": field_manager}
        if type == "apply":
            query["force"] = "true" if force else "false"
        address = self._address(what, name, namespace)
        return self._ask("patch", self._patch, address, subresource, patch, type, query)

    async def _patch(
        self,
        address: Address,
        subresource: str,
        patch: Patch,
        type_: PatchType | None,
        query: Mapping[str, str],
    ) -> AnsweredCall[AwaitableObject]:
        content_type = _PATCH_TYPES[type_ or ("json" if isinstance(patch, list) else "merge")]
        if type_ == "apply" and isinstance(patch, dict):
            patch = {"apiVersion": address.resource.api_version, "kind": address.resource.kind, **patch}
        reply = await self._session.client.send("PATCH", address.path(subresource), query, patch, content_type)
        return _answered(address.resource, reply)

    @overload
    def delete(
        self,
        what: str,
        name: str,
        /,
        *,
        namespace: str | None = None,
        propagation: Literal["Foreground", "Background", "Orphan", ""] = "",
        grace: int | None = None,
    ) -> AwaitableObject: ...
    @overload
    def delete(
        self,
        what: Object,
        /,
        *,
        namespace: str | None = None,
        propagation: Literal["Foreground", "Background", "Orphan", ""] = "",
        grace: int | None = None,
    ) -> AwaitableObject: ...
    def delete(
        self,
        what: str | Object,
        name: str = "",
        /,
        *,
        namespace: str | None = None,
        propagation: Literal["Foreground", "Background", "Orphan", ""] = "",
        grace: int | None = None,
    ) -> AwaitableObject:
        """Delete one object. Returns the server's answer: a Status, or the object if it stays for its finalizers.

        `propagation` says what becomes of its dependents, `grace` is the grace period in seconds.
        """
        check_name(propagation, _PROPAGATIONS, "propagation")
        return self._ask("delete", self._delete, self._address(what, name, namespace), propagation, grace)

    async def _delete(self, address: Address, propagation: str, grace: int | None) -> AnsweredCall[AwaitableObject]:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        return _answered(address.resource, await self._session.client.send("DELETE", address.path(), None, options))

    @overload
    def status(
        self, what: str, name: str, status: Object, /, *, namespace: str | None = None, strict: bool | None = None
    ) -> AwaitableObject: ...
    @overload
    def status(
        self, what: Object, status: Object, /, *, namespace: str | None = None, strict: bool | None = None
    ) -> AwaitableObject: ...
    def status(
        self, what: str | Object, /, *rest: Any, namespace: str | None = None, strict: bool | None = None
    ) -> AwaitableObject:
        """Set fields of the status, as a controller does: `noxu.status("widgets", "a", {"ready": True})`.

        The other fields stay. Returns the stored object.
        """
        name, status = _after(what, rest, "status")
        address = self._address(what, name, namespace)
        return self._ask("status", self._patch, address, "status", {"status": status}, "merge", self._options(strict))

    @overload
    def scale(self, what: str, name: str, replicas: int, /, *, namespace: str | None = None) -> AwaitableObject: ...
    @overload
    def scale(self, what: Object, replicas: int, /, *, namespace: str | None = None) -> AwaitableObject: ...
    def scale(self, what: str | Object, /, *rest: Any, namespace: str | None = None) -> AwaitableObject:
        """Set the number of replicas through /scale. Returns the Scale."""
        name, replicas = _after(what, rest, "replicas")
        address, patch = self._address(what, name, namespace), {"spec": {"replicas": replicas}}
        return self._ask("scale", self._patch, address, "scale", patch, "merge", self._options(None))

    # -- waiting

    def watch(
        self,
        what: str | Object,
        name: str = "",
        /,
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        since: str = "",
        timeout: float | None = TIMEOUT,
    ) -> Watch:
        """The events of a kind, or of one object: `for kind, widget in noxu.watch("widgets")`.

        It begins with this call: with an ADDED for each object there is, or after the resourceVersion `since`. In a coroutine
        the loop is `async for`. An iteration raises WaitTimeout if there is no event for `timeout` seconds (None: never).
        """
        resource, namespace, name = addresses.of_any(self._session.served_resources, what, name, namespace)
        if name:
            fields = ",".join(filter(None, (f"metadata.name={name}", addresses.selector(fields, "fields"))))
        query = selectors(labels, fields) | ({"resourceVersion": since} if since else {})
        path = Address(resource, namespace).path()
        subject = f"{resource.group_resource}{f' {name}' if name else ''}"
        return Watch(self._session.runner, self._session.client, path, query, timeout, subject)

    @overload
    def wait(
        self,
        what: str,
        name: str,
        condition: Condition,
        /,
        *,
        namespace: str | None = None,
        timeout: float = TIMEOUT,
    ) -> AwaitableObject: ...
    @overload
    def wait(
        self, what: Object, condition: Condition, /, *, namespace: str | None = None, timeout: float = TIMEOUT
    ) -> AwaitableObject: ...
    @overload
    def wait(
        self, what: Sequence[Object], condition: Condition, /, *, timeout: float = TIMEOUT
    ) -> AwaitableObjects: ...
    @overload
    def wait(
        self,
        what: str,
        condition: Condition = CREATE,
        /,
        *,
        count: int,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        timeout: float = TIMEOUT,
    ) -> AwaitableObjects: ...
    def wait(
        self,
        what: str | Object | Sequence[Object],
        /,
        *rest: Any,
        count: int | None = None,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        timeout: float = TIMEOUT,
    ) -> AwaitableObject | AwaitableObjects:
        """Wait until an object satisfies a condition, and return it.

        A condition is the type of one in its status (`"Ready"`, `"Ready=False"`), `"create"`, `"delete"`, an expression in CEL
        (`"self.status.size == self.spec.size"`), or a function of the object, which may be async in a coroutine. The object
        need not exist yet; a field that it does not have yet (an error in CEL, a LookupError of a function) means: not yet.
        Raises WaitTimeout after `timeout` seconds, with the newest state of the object and what holds it, and ValueError for an
        expression that does not compile, or has a field that the schema does not describe. After `"delete"` the result is the
        last state, {} if there was none.

        Several objects in a list: each of them; the result is their list. `count`: until exactly so many objects of a kind
        satisfy the condition, or exist if there is none (`noxu.wait("widgets", count=3)`); the result is the list of these.
        `labels` and `fields` select among them, `namespace` None means all namespaces.
        """
        waiting = self._waiting(what, rest, count, namespace, selectors(labels, fields), timeout)
        if calls.in_coroutine():
            return cast("AwaitableObjects", calls.pending("wait", waiting.in_coroutine()))
        return cast("AwaitableObjects", waiting.blocking())

    def _waiting(
        self,
        what: str | Object | Sequence[Object],
        rest: tuple[Any, ...],
        count: int | None,
        namespace: str | None,
        query: dict[str, str],
        timeout: float,
    ) -> Waiting | Several:
        session = self._session
        if count is not None:
            if not isinstance(what, str) or len(rest) > 1 or count < 0:
                raise TypeError("with a count, which is a number of objects, come a kind and a condition")
            condition = rest[0] if rest else CREATE
            if condition == DELETE:
                raise ValueError("count=0 waits until there is none")
            address = Address(addresses.find(session.served_resources, what), namespace or "")
            return Waiting(session, address, condition, timeout, count=count, query=query)
        if query:
            raise TypeError("labels and fields select among the objects of a kind, and need a count")
        if not isinstance(what, Sequence) or isinstance(what, str):
            name, condition = _after(what, rest, "condition")
            return Waiting(session, self._address(what, name, namespace), condition, timeout)
        if len(rest) != 1:
            raise TypeError("after a list of objects comes the condition")
        if not what:
            raise ValueError("there is no object in the list: every condition would be met")
        return Several(session, [self._address(item, "", namespace) for item in what], rest[0], timeout)

    # -- common parts

    def _ask(self, name: str, work: Callable[..., Coroutine[Any, Any, AnsweredCall[T]]], *arguments: Any) -> T:
        return calls.call(self._session.runner, name, work, *arguments)

    def _address(self, what: str | Object, name: str, namespace: str | None) -> Address:
        return addresses.of(self._session.served_resources, what, name, namespace)

    def _resource(self, value: Object) -> Resource:
        """The resource of a manifest. Raises ApiError."""
        try:
            return addresses.of_object(self._session.served_resources, value)
        except UnknownKind:
            raise errors.bad_request(f"{loading.no_matches(value)}: load its CRD, too") from None

    def _options(self, strict: bool | None, dry_run: bool = False) -> dict[str, str]:
        """The query of a write."""
        strict = self._session.strict if strict is None else strict
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict" if strict else "Warn"}
        return query | ({"dryRun": "All"} if dry_run else {})


async def _documents(*sources: Source) -> list[Document]:
    """The objects of sources; files and texts are read in a thread. Raises LoadError."""
    if all(isinstance(source, dict) for source in sources):
        return documents(*sources)
    return await asyncio.to_thread(documents, *sources)


def _repeated(document: Document, query: Mapping[str, str]) -> list[Warning]:
    """Warnings about fields that are there twice: the server, which gets the last ones, cannot see them. Raises ApiError."""
    if document.duplicates and query["fieldValidation"] == "Strict":
        raise errors.bad_request(codec.strict_decoding_error(document.strict))
    return [UnknownFieldWarning(f"{document.kind}: {text}") for text in document.duplicates]


def _after(what: str | Object, rest: tuple[Any, ...], last: str) -> tuple[str, Any]:
    """(name, the last argument): the arguments after a kind are a name and that one, after an object only that one."""
    expected = ("name", last) if isinstance(what, str) else (last,)
    if len(rest) != len(expected):
        raise TypeError(f"after {'a kind' if isinstance(what, str) else 'an object'} come {' and '.join(expected)}")
    return (rest[0], rest[1]) if isinstance(what, str) else ("", rest[0])


def _answered(resource: Resource, reply: ClientReply) -> AnsweredCall[AwaitableObject]:
    return AnsweredCall(reply.value, [_warning(resource, text) for text in reply.warnings])


def _warning(resource: Resource, text: str) -> ApiWarning:
    """A warning of the server; about an unknown field with the one that was probably meant."""
    if not text.startswith(_UNKNOWN):
        return ApiWarning(text)
    path = text.partition('"')[2].rstrip('"')
    advice = explain.advice(resource.schema, path) if resource.schema and text.startswith(_UNKNOWN[0]) else ""
    return UnknownFieldWarning(f"{resource.kind}: {text}{f' ({advice})' if advice else ''}")


def selectors(labels: str | Mapping[str, str], fields: str | Mapping[str, str]) -> dict[str, str]:
    """The query of selectors. Raises TypeError, ValueError."""
    chosen = {
        "labelSelector": addresses.selector(labels, "labels"),
        "fieldSelector": addresses.selector(fields, "fields"),
    }
    return {name: value for name, value in chosen.items() if value}
