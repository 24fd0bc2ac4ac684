"""`/_noxu/at/MOMENT/…`: the API as it was at a moment, for clients that only read.

The path behind the moment is one of the API. Filters judge it as such, so users see of the past what they may see now;
the audit log has the real path. A request gets a backend that shows the past (`PastBackend`), and takes the usual way: the
handlers, tables and documents are those of the present. Ages in tables are those of then.

    GET /_noxu/at/-5m/apis/example.com/v1/widgets      the list of five minutes ago, in the representation that is accepted
    GET /_noxu/at/42/openapi/v3                        the schemas of revision 42

A resourceVersion in the query means what it would have meant then: a revision after the moment does not exist, and one before
it can be read exactly. Nothing can be written, watched or connected to.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final
from urllib.parse import quote

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.clock import SystemClock
from noxu.control.past import MAX_VIEWS, TimeTravel
from noxu.control.running import Control
from noxu.http.answer import Answer
from noxu.http.documents import Documents
from noxu.http.exchange import Backend, Exchange
from noxu.http.request import PAST
from noxu.registry.persistence import Persistence
from noxu.registry.served_resources import LiveResources, ServedResources

_READS: Final = frozenset({"GET", "HEAD"})
_DOCUMENTS: Final = frozenset({"", "api", "apis", "openapi", "version"})
"""The first segments of the paths of documents that have a past."""


class StoppedClock(SystemClock):
    """Shows the same time always."""

    def __init__(self, time: datetime) -> None:
        self._time = time

    def now(self) -> datetime:
        return self._time


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBackend(Backend):
    """The backend of requests for one moment. The parts that write belong to the present: no handler uses them."""

    documents: Documents


class _PastDocuments:
    """The documents of one server's views: those of the same resources are made once, and the newest MAX_VIEWS are kept."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._of: OrderedDict[ServedResources, Documents] = OrderedDict()

    def of(self, served: ServedResources, live: Documents) -> Documents:
        """`live` are the documents of the present."""
        # those of the present change with it, and are made already
        if served is self._control.server.plane.served_resources.current:
            return live
        if served not in self._of:
            self._of[served] = live.at(served)
        self._of.move_to_end(served)  # the first one is the one not used for longest
        while len(self._of) > MAX_VIEWS:
            self._of.popitem(last=False)
        return self._of[served]


async def enter(exchange: Exchange, control: Control, documents: Documents) -> None:
    """Give a request the backend of its moment. `documents` are those of the present. Raises ApiError, StoreError."""
    _refuse_more_than_reading(exchange)
    travel = control.part(TimeTravel)
    moment = await travel.moments.find(exchange.moment)
    view = await travel.views.view(moment.revision)
    present = exchange.backend
    persistence = Persistence(view.reader.store, view.reader.cache)
    if exchange.takes_past_for_present:  # else what a client reads is not what it has been shown when it writes
        persistence.journal = present.persistence.journal
    shown = {
        "reader": view.reader,
        "served_resources": LiveResources(view.served),
        "persistence": persistence,
        "clock": present.clock if moment.time is None else StoppedClock(moment.time),
    }
    # a new backend: that of the app is shared by all requests
    parts = {field.name: getattr(present, field.name) for field in fields(Backend)}
    # of this exchange only: what follows asks it for its backend
    exchange.backend = PastBackend(**parts | shown, documents=control.part(_PastDocuments).of(view.served, documents))


def _refuse_more_than_reading(exchange: Exchange) -> None:
    method, info = exchange.request.method, exchange.info
    if method not in _READS:
        exchange.headers.append(("Allow", ", ".join(sorted(_READS))))
        raise _not_allowed(f"the past does not change: {PAST} has no method {method}, only GET and HEAD")
    if info.verb == "watch":
        raise _not_allowed(f"nothing happens in the past: list {exchange.path} there, or watch it without {PAST}")
    if exchange.is_long_running:  # such as a log: what it would be about no longer runs
        raise _not_allowed(f"nothing runs in the past: connect to {exchange.path} without {PAST}")


def _not_allowed(why: str) -> ApiError:
    return ApiError(405, why, "MethodNotAllowed", {})


async def document(exchange: Exchange) -> Answer:
    """Answer a request that is for no resource. Raises ApiError."""
    backend = exchange.backend
    assert isinstance(backend, PastBackend)
    if exchange.path.split("/")[1] not in _DOCUMENTS:
        raise errors.page_not_found()
    answer = await backend.documents.answer(exchange.path, exchange.query, exchange.request.headers)
    if answer.status == 301:  # of another hash: the document of newer resources, at the same moment
        prefix = f"{PAST}{quote(exchange.moment)}"
        # of this answer: its body is shared
        answer.headers = tuple([(name, prefix + text if name == "Location" else text) for name, text in answer.headers])
    return answer
