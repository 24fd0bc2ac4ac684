"""What was written to the server, by whom, and why: `noxu.log()`.

    for write in noxu.log("widgets", "a", why=True):
        print(write.revision, write.user, write.changed, [cause.name for cause in write.why])

See `noxu.control.write_log`: `noxu log` prints the same.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from noxu.control import arguments, write_log
from noxu.testing import addresses, calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Session
from noxu.values import Object

__tracebackhide__ = hidden


class WriteCause(NamedTuple):
    """What a client had been shown. `how`: watch, get or list; `more`: `number` others are left out.

    `event` is ADDED, MODIFIED or DELETED, "" for what was read. `name` is "" for a list.
    """

    how: str
    revision: int = 0
    resource: str = ""
    namespace: str = ""
    name: str = ""
    event: str = ""
    number: int = 0


class LoggedWrite(NamedTuple):
    """One write. Texts are "" for what is not known; `controller`: the server itself wrote. `resource` is plural.group.

    `changed` are the paths that differ from the state before, [] for a new and for a deleted object. `why` is what the client
    had been shown since its previous write, the newest first; [] unless it was asked for.
    """

    revision: int
    time: datetime | None
    verb: str
    event: str
    resource: str
    namespace: str
    name: str
    subresource: str
    user: str
    user_agent: str
    manager: str
    controller: str
    request_id: str
    traceparent: str
    changed: list[str]
    why: list[WriteCause]


class WriteLog:
    """The part of the handle that lists what was written."""

    _session: Session

    def log(
        self,
        what: str | Object = "",
        name: str = "",
        /,
        *,
        namespace: str = "",
        since: int | str = "",
        limit: int = write_log.MAX_LIMIT,
        why: bool = False,
    ) -> AwaitableWrites:
        """The newest writes, the oldest first: of a kind, of one object, or all; in all namespaces, or in one.

        `since`: later ones than a revision, a duration until now (`"5m"`), or a time of RFC 3339. `limit`: the newest so many.
        `why`: with what the client of each had been shown. Raises UnknownKind, ValueError for a
        namespace that has never existed, and ApiError BadRequest for other arguments that are invalid.
        """
        kind, wanted = "", {"name": name, "namespace": namespace, "since": str(since), "limit": limit, "why": why}
        if what:
            address = addresses.of_any(self._session.served_resources, what, name, namespace or None)
            kind = f"{address.resource.plural}.{address.resource.group}"
            if not isinstance(what, str):
                wanted |= {"name": address.name, "namespace": address.namespace}
        return cast("AwaitableWrites", calls.call(self._session.runner, "log", self._logged, wanted | {"type": kind}))

    async def _logged(self, query: dict[str, Any]) -> AnsweredCall[list[LoggedWrite]]:
        await self._session.check_namespace(query["namespace"])
        server = self._session.runner.running
        answer = await write_log.log(server.plane, server.history, query)
        return AnsweredCall([_write(item) for item in answer["items"]])


def _write(item: Object) -> LoggedWrite:
    return LoggedWrite(
        item["revision"],
        arguments.time(item["time"]) if item["time"] else None,
        item["verb"],
        item["event"],
        item["resource"],
        item["namespace"],
        item["name"],
        item["subresource"],
        item["user"],
        item["userAgent"],
        item["manager"],
        item["controller"],
        item["requestID"],
        item["traceparent"],
        item["changed"],
        [_write_cause(cause) for cause in item.get("why", ())],
    )


def _write_cause(cause: Object) -> WriteCause:
    return WriteCause(**{name: cause[name] for name in WriteCause._fields if name in cause})


if TYPE_CHECKING:

    class AwaitableWrites(list[LoggedWrite]):
        def __await__(self) -> Generator[Any, None, list[LoggedWrite]]: ...
