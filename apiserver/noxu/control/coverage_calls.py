"""What of the schemas of a server its clients have shown: `GET /_noxu/coverage`.

Writes are counted from the first call on: a server that is not asked has no trace of it. `noxu.coverage.trees` says what an
answer has.
"""

from __future__ import annotations

from typing import Any, Final

from noxu.control.arguments import Argument, one_of
from noxu.control.calls import ControlCall, ControlRoute, Download
from noxu.control.running import Control
from noxu.registry.offload import imported
from noxu.values import Object

_COLLECTING: Final = "noxu.coverage.collecting"
_TREES: Final = "noxu.coverage.trees"
_REPORTS: Final = "noxu.coverage.reports"


class ServerCoverage:
    """The collector of a server, from the first call on. A restore of a snapshot changes nothing of the counts."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._collector: Any = None

    @property
    def has_begun(self) -> bool:
        """Whether it counts."""
        return self._collector is not None

    async def collected(self) -> Object:
        """The schemas that are served, and the counts until now."""
        plane = self._control.server.plane
        if self._collector is None:
            collecting = await imported(_COLLECTING)
            if self._collector is None:  # another call may have been faster
                self._collector = collecting.Collector()
                self._collector.follow(plane)
        self._collector.add_definitions(plane)
        collected: Object = self._collector.collected()
        return collected


async def _coverage(call: ControlCall) -> Object | Download:
    collected = await call.control.part(ServerCoverage).collected()
    trees, reports = await imported(_TREES), await imported(_REPORTS)
    made = trees.trees(collected)
    if call.query["output"] == "html":
        return Download(reports.as_page(made).encode(), "text/html; charset=utf-8")
    answer: Object = reports.as_json(made)
    return answer


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/coverage",
        _coverage,
        "Report what of the schemas writes have shown, since this was first asked.",
        query={"output": Argument(one_of("json", "html"), "JSON, or a page for people", "json")},
    ),
)
