"""/metrics and /metrics/slis of a server: what is scraped, and from where.

Requests are counted by a sink (`request_metrics`), and queues count what they do. All else is looked up at the scrape: the
objects of each resource, the watches that are open, the requests that are being handled. The numbers are copied in the
event loop, which takes microseconds for each series; the text is made of them in a thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from noxu.control_plane import ControlPlane
from noxu.http.answer import NOT_CACHED, Answer
from noxu.http.app import App
from noxu.http.filters import InFlight
from noxu.http.metrics import REQUEST_LABELS, RequestMetrics, about_of
from noxu.instruments import Family, merged
from noxu.observability import metrics
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu_storage.types import Prefix, StoreError

_IN_A_THREAD: Final = LOOP_LIMIT + 1
_AT_ONCE: Final = 256  # resources whose objects are counted before other tasks run


def install(app: App, plane: ControlPlane) -> None:
    """Count the requests of a server, and serve its metrics."""
    served = ServerMetrics(app, plane)
    app.sinks = (*app.sinks, served.requests)  # a new tuple: requests that are being answered keep the old one
    app.documents.metrics = {"/metrics": served.scrape, "/metrics/slis": served.scrape_slis}


class ServerMetrics:
    """The metrics of one server."""

    def __init__(self, app: App, plane: ControlPlane) -> None:
        self._app = app
        self._plane = plane
        self.requests = RequestMetrics(plane.served_resources)

    async def scrape(self, accept: str) -> Answer:
        """All metrics."""
        return await _answer(await self.families(), accept, "process_")

    async def scrape_slis(self, accept: str) -> Answer:
        """The results of health checks (component-base's metrics/prometheus/slis)."""
        return await _answer(self._app.documents.health_results.families(), accept, metrics.STARTED)

    async def families(self) -> list[Family]:
        """All metrics but those of the process."""
        objects = await self._objects()  # before all others, which are copied in one turn of the loop
        return [
            metrics.build_info(self._app.documents.own_version(), self._app.documents.release),
            *self.requests.families(),
            *self.requests.access.families(self._app.watches.open),
            *self._in_flight(),
            self._long_running(),
            *objects,
            *self._plane.persistence.metrics.families(),
            *self._app.watches.metrics.families(),
            *self._plane.admission.metrics.families(),
            *self._plane.conversions.metrics.families(),
            *self._queues(),
            *self._leadership(),
            self._app.handshake_errors.family(),
            *(self._app.audit_log.families() if self._app.audit_log is not None else ()),
        ]

    def _in_flight(self) -> list[Family]:
        now = asyncio.get_running_loop().time()
        # always in the chain, also without limits
        in_flight = next(request_filter for request_filter in self._app.filters if isinstance(request_filter, InFlight))
        reading, mutating = in_flight.highest(now)
        return [
            Family(
                "apiserver_current_inflight_requests",
                "gauge",
                "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
                ("request_kind",),
                [(("readOnly",), reading), (("mutating",), mutating)],
            ),
            Family(
                "apiserver_current_inqueue_requests",
                "gauge",
                "Maximal number of queued requests in this apiserver per request kind in last second.",
                ("request_kind",),
                [(("readOnly",), 0.0), (("mutating",), 0.0)],  # requests are refused, and do not wait
            ),
        ]

    def _long_running(self) -> Family:
        served_resources = self._plane.served_resources.current
        open_ = Counter(about_of(exchange, served_resources).labels for exchange in self._app.watches.open)
        return Family(
            "apiserver_longrunning_requests",
            "gauge",
            "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and "
            "component. Not all requests are tracked this way.",
            REQUEST_LABELS,
            list(open_.items()),
        )

    async def _objects(self) -> list[Family]:
        """The number of stored objects of each resource, -1 if they cannot be counted; and the size of the store."""
        plane = self._plane
        counts: dict[tuple[str, str], float] = {}
        for n, (name, resource) in enumerate(_stored(plane.served_resources.current).items()):
            if n % _AT_ONCE == _AT_ONCE - 1:  # others run in between: there may be thousands
                await asyncio.sleep(0)
            loaded = plane.cache.collections.get(name)
            try:
                # the cache knows; else the store counts keys
                count = len(loaded.entries) if loaded else await plane.store.count(Prefix(name))
            except StoreError:
                count = -1
            labels = resource.group, resource.plural  # custom resources may have those of a built-in kind
            # one that cannot be counted makes the sum unknown
            counts[labels] = -1 if -1 in (count, counts.get(labels)) else counts.get(labels, 0) + count
        numbers = list(counts.items())
        by_name = [((f"{plural}.{group}" if group else plural,), count) for (group, plural), count in numbers]
        about = (
            "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will "
            "be -1."
        )
        status = await plane.store.status()  # asks the store: the only wait besides counting
        return [
            Family("apiserver_resource_objects", "gauge", about, ("group", "resource"), numbers),
            Family(
                "apiserver_storage_objects",
                "gauge",
                f"[DEPRECATED, consider using apiserver_resource_objects instead] {about}",
                ("resource",),
                by_name,
            ),
            Family(
                "apiserver_storage_size_bytes",
                "gauge",
                "Size of the storage database file physically allocated in bytes.",
                ("storage_cluster_id",),
                [((status.backend,), status.bytes)],
            ),
        ]

    def _leadership(self) -> list[Family]:
        """That of client-go's leader election, if there is one."""
        election = self._plane.election
        if election is None:
            return []
        about = (
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
            "'name' is the string used to identify the lease. Please make sure to group by name."
        )
        values = [((election.name,), float(election.is_leader))]
        return [Family("leader_election_master_status", "gauge", about, ("name",), values)]

    def _queues(self) -> list[Family]:
        queues = [controller.queue.families(controller.name) for controller in self._plane.all_controllers]
        # those of all controllers in one, by their names
        return [merged(families) for families in zip(*queues, strict=True)]


def _stored(served_resources: ServedResources) -> dict[str, Resource]:
    """A resource of each collection, by its name. Events have two groups; upstream counts those of the core group."""
    named = dict(served_resources.preferred)
    named.update((core.collection, core) for core in served_resources.in_version("", "v1") if core.collection in named)
    return named


async def _answer(families: Sequence[Family], accept: str, process: str) -> Answer:
    # on copies: the loop goes on counting
    text = await offload(_IN_A_THREAD, metrics.render, families, accept, process)
    return Answer(text.body, 200, text.content_type, NOT_CACHED)
