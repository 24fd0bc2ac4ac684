"""The past of the server, as the handle has it.

    noxu.at("-5m").get("widgets", "a")                 objects as they were
    print(noxu.diff(before))                           what has changed since, as text
    print(noxu.blame("widgets", "a"))                  who wrote which line
    noxu.bisect("widgets", "a", "self.spec.size > 3")  when that became true

They are those of `noxu.control.past`, `diff` and `past_calls`. A moment is a text as there, a revision, a time, how long ago,
an object (its resourceVersion), or a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, overload
from urllib.parse import quote

from noxu.control import writers
from noxu.control.calls import ControlCall
from noxu.control.moments import NOW
from noxu.go.time import MICRO, format_time
from noxu.registry.access import ANONYMOUS
from noxu.registry.offload import imported
from noxu.testing import addresses, calls
from noxu.testing.addresses import Address
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner, Session
from noxu.testing.verbs import selectors
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.control.past import View
    from noxu.testing.calls import AwaitableObject, AwaitableObjects

__tracebackhide__ = hidden

T = TypeVar("T")
PastMoment: TypeAlias = str | int | datetime | timedelta | Object
_CALLS: Final = "noxu.control.past_calls"


def text_of(moment: PastMoment) -> str:
    """A moment as `/_noxu/at/` takes it."""
    if isinstance(moment, timedelta):
        return f"-{moment.total_seconds():f}s"
    if isinstance(moment, datetime):
        return format_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC), MICRO)
    if isinstance(moment, dict):
        return str((moment.get("metadata") or {}).get("resourceVersion") or moment["revision"])
    return str(moment)


class PastCalls:
    """The part of the handle that looks at the past."""

    _runner: Runner
    _session: Session
    url: str

    def at(self, moment: PastMoment) -> PastView:
        """The API as it was at a moment: `noxu.at("-5m").get("widgets", "a")`."""
        return PastView(self._session, self.url, text_of(moment))

    def diff(
        self,
        since: PastMoment,
        to: PastMoment = NOW,
        what: str | Object = "",
        name: str = "",
        /,
        *,
        namespace: str | None = None,
    ) -> AwaitableText:
        """What is different between two moments, as YAML in the format of `diff -u`; "" if nothing is.

        All objects, those of a kind, or one: `noxu.diff(41, 57, "widgets", "a")`. Raises ValueError for a
        namespace that has never existed, and ApiError for a moment that is not kept.
        """
        query = {"from": text_of(since), "to": text_of(to), **_named(what, name, namespace)}
        differences = self._answered("diff", "noxu.control.diff", query, _differences, existing=query["namespace"])
        return cast("AwaitableText", differences)

    @overload
    def blame(
        self, what: str, name: str, /, *, namespace: str | None = None, at: PastMoment = NOW
    ) -> AwaitableText: ...
    @overload
    def blame(self, what: Object, /, *, namespace: str | None = None, at: PastMoment = NOW) -> AwaitableText: ...
    def blame(
        self, what: str | Object, name: str = "", /, *, namespace: str | None = None, at: PastMoment = NOW
    ) -> AwaitableText:
        """An object as YAML, and before each line the revision that wrote it last, its time and its writer.

        Raises ApiError (404) for an object that does not exist at that moment.
        """
        query = {**_named(what, name, namespace), "at": text_of(at)}
        return cast("AwaitableText", self._answered("blame", _CALLS, query, _annotated))

    @overload
    def bisect(
        self, what: str, name: str, condition: str, /, *, namespace: str | None = None, at: PastMoment = NOW
    ) -> AwaitableObject: ...
    @overload
    def bisect(
        self, what: Object, condition: str, /, *, namespace: str | None = None, at: PastMoment = NOW
    ) -> AwaitableObject: ...
    def bisect(
        self, what: str | Object, /, *rest: str, namespace: str | None = None, at: PastMoment = NOW
    ) -> AwaitableObject:
        """When a condition in CEL over `self` became true: `{"revision", "changes", "states", "complete"}`.

        `revision` is the first one, None if it never was true; `changes` are all at which it became true or false, each with
        `met`, `revision`, `time` and its writer. Raises ApiError for a bad condition, and for an object that does not exist.
        """
        *names, condition = rest
        query = {**_named(what, "".join(names), namespace), "at": text_of(at), "condition": condition}
        return cast("AwaitableObject", self._answered("bisect", _CALLS, query, _same))

    def _answered(self, name: str, module: str, query: Object, shown: Callable[[Object], T], existing: str = "") -> T:
        """What the route of that name answers, which is in that module. `existing`: a namespace that must have existed."""

        async def work() -> AnsweredCall[T]:
            await self._session.check_namespace(existing)
            [route] = [route for route in (await imported(module)).ROUTES if route.path == f"/_noxu/{name}"]
            given = {argument: declared.default for argument, declared in route.query.items()} | query
            answer = await route.answer(ControlCall({}, given, {}, ANONYMOUS, self._runner.running.control))
            return AnsweredCall(shown(answer))

        return calls.call(self._runner, name, work)


def _named(what: str | Object, name: str = "", namespace: str | None = None) -> Object:
    """The arguments of a call that name an object, or a kind."""
    if isinstance(what, str):
        return {"type": what, "name": name, "namespace": namespace or ""}
    metadata = what["metadata"]
    own = namespace or metadata.get("namespace") or ""
    return {"type": f"{what['apiVersion']}/{what['kind']}", "name": metadata["name"], "namespace": own}


def _differences(answer: Object) -> str:
    return "".join(item["diff"] for item in answer["items"])


def _annotated(answer: Object) -> str:
    return "".join(f"{line}\n" for line in writers.annotated(answer))


def _same(answer: Object) -> Object:
    return answer


class PastView:
    """The API as it was at a moment. `url` is that of other clients: `kubectl --server {noxu.at("-5m").url} get pods`."""

    def __init__(self, session: Session, url: str, moment: str) -> None:
        self._session = session
        self._path = f"/_noxu/at/{quote(moment, safe='')}"
        self._moment = moment
        self.url = url + self._path

    def __repr__(self) -> str:
        return f"<the past at {self._moment}: {self.url}>"

    @overload
    def get(self, what: str, name: str, /, *, namespace: str | None = None) -> AwaitableObject: ...
    @overload
    def get(self, what: Object, /, *, namespace: str | None = None) -> AwaitableObject: ...
    def get(self, what: str | Object, name: str = "", /, *, namespace: str | None = None) -> AwaitableObject:
        """One object, as `Noxu.get`. Kinds are those of then. Raises ApiError (404; 410 if that is no longer kept)."""

        async def work() -> AnsweredCall[Object]:
            address = addresses.of((await self._view()).served, what, name, namespace)
            return AnsweredCall(await self._read(address))

        return cast("AwaitableObject", self._call("get", work))

    def list(
        self,
        kind: str | Object,
        /,
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
    ) -> AwaitableObjects:
        """The objects of a kind, as `Noxu.list`."""
        query = selectors(labels, fields)

        async def work() -> AnsweredCall[list[Object]]:
            resource = addresses.of_any((await self._view()).served, kind).resource
            answer = await self._read(Address(resource, namespace or ""), query)
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            return AnsweredCall([{**head, **item} for item in answer["items"]])

        return cast("AwaitableObjects", self._call("list", work))

    async def _view(self) -> View:
        travel = (await imported("noxu.control.past")).TimeTravel
        return await self._session.runner.running.control.part(travel).at(self._moment)  # type: ignore[no-any-return]

    async def _read(self, address: Address, query: Mapping[str, str] | None = None) -> Object:
        reply = await self._session.client.send("GET", self._path + address.path(), query)
        return cast("Object", reply.value)

    def _call(self, name: str, work: Callable[[], Coroutine[Any, Any, AnsweredCall[T]]]) -> T:
        return calls.call(self._session.runner, f"at.{name}", work)


if TYPE_CHECKING:

    class AwaitableText(str):
        def __await__(self) -> Generator[Any, None, str]: ...
