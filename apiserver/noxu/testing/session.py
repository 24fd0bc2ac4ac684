"""What the verbs of the handle use: the server, and a client of it for one user."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from noxu.http.recent_requests import RecentRequests
from noxu.registry.served_resources import ServedResources
from noxu.testing import spelling
from noxu.testing.client import Client
from noxu.testing.errors import hidden
from noxu.testing.runner import Runner

__tracebackhide__ = hidden
ACCOUNT: Final = "system:serviceaccount:"
"""How the name of a service account's user begins: its namespace and its name follow."""
HTTP_ERRORS: Final = 400
"""The first code of an error."""


@dataclass(frozen=True, slots=True)
class Session:
    """`strict`: unknown fields are refused unless a call says otherwise."""

    runner: Runner
    client: Client
    requests: RecentRequests
    strict: bool = False
    named: AbstractSet[str] = frozenset()
    """The users that the handle has made."""

    async def check_namespace(self, namespace: str) -> None:
        """Raises ValueError for one that has never existed, as far as requests tell, unless objects need none. In the server's loop."""
        running = self.runner.running
        resource = running.plane.served_resources.current.find("", "v1", "namespaces")
        if not namespace or resource is None or "NamespaceLifecycle" not in running.config.admission_plugins:
            return
        there = await running.plane.reader.collection(resource)
        known = {key.name for key in there.entries}
        if namespace in known:
            return
        asked = (each for each in self.requests.since() if each.resource == "namespaces" and each.code < HTTP_ERRORS)
        spelling.namespace(namespace, known.union(each.name for each in asked if each.name))

    async def check_user(self, user: str) -> None:
        """Raises ValueError for one who is not known, and whose name is similar to a known one's. In the server's loop.

        Known are those that were made, those with a token or a service account, and those who have asked something.
        """
        plane = self.runner.running.plane
        known = {*self.named, *plane.static_tokens.names(), *(each.user for each in self.requests.since())}
        resource = plane.served_resources.current.find("", "v1", "serviceaccounts")
        if user.startswith(ACCOUNT) and resource is not None:
            accounts = await plane.reader.collection(resource)
            known |= {f"{ACCOUNT}{key.partition.removesuffix('/')}:{key.name}" for key in accounts.entries}
        spelling.user(user, known)

    @property
    def served_resources(self) -> ServedResources:
        return self.runner.running.plane.served_resources.current
