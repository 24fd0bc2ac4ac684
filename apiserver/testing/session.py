"""What the verbs of the handle use: the server, and a client of it for one user."""

from __future__ import annotations

from noxu.apiserver.http.recent_requests import RecentRequests
from noxu.apiserver.records import record
from noxu.apiserver.registry.catalog import Catalog
from noxu.apiserver.testing.client import Client
from noxu.apiserver.testing.runner import Runner


@record(frozen=True, slots=True)
class Session:
    """`strict`: unknown fields are refused unless a call says otherwise."""

    runner: Runner
    client: Client
    requests: RecentRequests
    strict: bool = False

    @property
    def catalog(self) -> Catalog:
        return self.runner.server.plane.catalog.current
