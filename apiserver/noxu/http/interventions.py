"""What is done to the requests of a server besides answering them, while it runs: faults, turns, and the look at its clients.

It is made at the first use, and changes the application that exists, or the one that the first request makes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from noxu.clock import Clock
from noxu.control.faults.armed import Armed
from noxu.control.faults.streams import StreamFaults
from noxu.control.faults.webhooks import WebhookFaults
from noxu.control.running import ProgramsUnderTest
from noxu.http.activity import ClientActivity
from noxu.http.exchange import Exchange
from noxu.http.faults import InjectFaults
from noxu.http.filters import AwaitTurn, RequestFilter
from noxu.http.recent_requests import RecentRequests
from noxu.http.request_details import DetailRecorder
from noxu.http.webhooks import WebhookClient

if TYPE_CHECKING:
    from noxu.http.http_server import HttpServer


class Interventions:
    """Those of one server."""

    def __init__(self, server: Callable[[], HttpServer], clock: Clock, webhooks: WebhookClient) -> None:
        self.last: list[RequestFilter] = []
        """Filters that are entered after all others."""
        self._server = server
        self._clock = clock
        self._webhooks = webhooks
        self._faults: InjectFaults | None = None
        self._activity: ClientActivity | None = None
        self._requests: RecentRequests | None = None
        self._details = DetailRecorder()
        self._records_for_good = False
        self._has_gaps = False

    def await_turn(self, turn: Callable[[], Awaitable[None] | None]) -> None:
        """Let each request begin when `turn` allows it."""
        self.last.append(AwaitTurn(turn))
        self._change()

    def activity(self) -> ClientActivity:
        """What the clients do; it is observed from the first call on."""
        if self._activity is None:
            app = self._server().app
            self._activity = observer = ClientActivity(app, asyncio.get_running_loop().time())
            app.observe(observer, observer.sink)
        return self._activity

    def requests(self) -> RecentRequests:
        """What the clients ask; it is recorded from the first call on, or from the start, as in tests."""
        record = self.begin_requests()
        if self._has_gaps:
            record.begin_again()
            self._has_gaps = False
        self._records_for_good = True
        return record

    def begin_requests(self) -> RecentRequests:
        """What the clients ask, until `end_requests`."""
        app = self._server().app
        if self._requests is None:
            self._requests = next((each for each in app.filters if isinstance(each, RecentRequests)), None)
            self._records_for_good = self._requests is not None
        if self._requests is None:
            self._requests = RecentRequests()
        if self._requests not in app.filters:
            self._requests.misses_before = time.time()
            app.observe(self._requests)
        return self._requests

    def details(self) -> DetailRecorder:
        """What the writes of clients had besides, as far as it was kept."""
        return self._details

    def keep_details(self, *, wanted: bool) -> None:
        """Keep the details of further writes, or no longer."""
        app = self._server().app
        if not wanted:
            app.observe_no_longer(self._details)
        elif self._details not in app.filters:
            app.observe(self._details)

    def end_requests(self) -> None:
        """No viewer looks at what the clients ask. It goes on if a report about them, or a test, does."""
        if self._requests is not None and not self._records_for_good:
            self._server().app.observe_no_longer(self._requests)
            self._has_gaps = True

    def record(self, recorder: RequestFilter) -> None:
        """Let a recorder see all requests from now on."""
        self._server().app.observe(recorder)

    def hit_requests(self, armed: Armed | None, programs: ProgramsUnderTest) -> None:
        """Let the rules of faults hit requests and open watches from now on; None: there are none."""
        before, self._faults = self._faults, None
        if before is not None:
            self.last.remove(before)
        if armed is not None:
            is_same = before is not None and before.armed is armed
            self._faults = faults = (is_same and before) or InjectFaults(armed, self._clock, programs)
            self.last.append(faults)
        if before is not None:
            before.release([] if armed is None else [rule.name for rule in armed.rules])
        hits = armed is not None and any(rule.scope == "webhook" for rule in armed.rules)
        self._webhooks.intercept = WebhookFaults(armed, self._clock.now) if armed is not None and hits else None
        self._change()

    def let_go(self) -> None:
        """Break the connections that hang because of faults: the server stops."""
        if self._faults is not None:
            self._faults.release(())

    def _change(self) -> None:
        if (app := self._server().made) is not None:
            app.enter_last(self.last)
            app.watches.hit_by(self._of_stream)

    def _of_stream(self, watch: Exchange) -> StreamFaults | None:
        return None if self._faults is None else self._faults.of_stream(watch)

    def end_watches(self) -> None:
        """End all watches now, as a server does that restarts."""
        if (app := self._server().made) is not None:
            app.end_watches()

    def notes(self) -> list[str]:
        """What a verbose report about the health of the server says besides."""
        if self._faults is None or not self._faults.armed.rules:
            return []
        names = ", ".join(rule.name for rule in self._faults.armed.rules)
        return [f"faults are on: {names}; `noxu fault clear` clears them"]
