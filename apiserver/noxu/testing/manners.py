"""The manners of clients, as the handle has them: what they asked badly, and the rights that they need.

    noxu.report().assert_polite()                            # fails with what to change, and the requests
    noxu.report(client="operator").assert_polite(conflicts=20, polling=None)
    print(noxu.report())

    for role in noxu.rbac(client="operator", bind=["system:serviceaccount:shop:operator"]):
        noxu.apply(role)

The requests of the handle itself are left out. See `noxu.control.manners_calls`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from noxu.registry.offload import imported
from noxu.testing import addresses, calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner, Session
from noxu.testing.sources import names
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableObjects
    from noxu.testing.manners_report import MannersReport

__tracebackhide__ = hidden


class MannersCalls:
    """The part of the handle that judges clients."""

    _runner: Runner
    _session: Session

    def report(self, *, client: str = "", since: str = "") -> AwaitableReport:
        """What clients asked since the start, and what they did badly.

        `client`: only those whose user agent begins so. `since`: later requests than a time, or within a duration until now
        (`"5m"`). Raises ApiError BadRequest for another text, and ValueError for a client that none is, if one is similar.
        """
        return cast("AwaitableReport", calls.call(self._runner, "report", self._reported, client, since))

    def report_after(self, number: int) -> MannersReport:
        """What clients asked after the request with this number, for plug-ins of pytest: it blocks, also in a coroutine.

        Raises Stopped, StoreError.
        """
        return calls.blocking(self._runner.submit(self._reported("", "", number))).value

    def rbac(
        self,
        *,
        client: str = "",
        user: str = "",
        since: str = "",
        name: str = "",
        bind: Sequence[str] = (),
        any_name: bool = False,
        discovery: bool = False,
    ) -> AwaitableObjects:
        """The least ClusterRole and Roles that would have allowed what clients asked since the start: manifests.

        `client` and `since` are those of `report`; `user`: only requests of this user. `name` is that of the roles, by default
        the user agent's. `bind`: with bindings to these users and service accounts (`system:serviceaccount:shop:operator`).
        `any_name`: no rule is for one name only. `discovery`: include what every user may get. Raises ApiError BadRequest,
        and ValueError for a client or a user that none is, if one is similar.
        """
        wanted: dict[str, Any] = {"client": client, "user": user, "since": since, "name": name}
        wanted |= {"bind": names(bind), "names": not any_name, "discovery": discovery}
        return cast("AwaitableObjects", calls.call(self._runner, "rbac", self._roles, wanted))

    async def _roles(self, wanted: Mapping[str, Any]) -> AnsweredCall[list[Object]]:
        self._check_client(wanted["client"])
        await self._session.check_user(wanted["user"])
        module = await imported("noxu.control.manners_calls")  # few tests ask for it
        answer = await module.roles_of(self._runner.running, **wanted)
        return AnsweredCall(answer["items"])

    async def _reported(self, client: str, since: str, after: int = 0) -> AnsweredCall[MannersReport]:
        self._check_client(client)
        module = await imported("noxu.testing.manners_report")  # few tests ask for it
        return AnsweredCall(await module.of_server(self._runner.running, client, since, after))

    def _check_client(self, client: str) -> None:
        if client:
            asked = self._session.requests.since()
            addresses.client(client, [request.user_agent for request in asked if not request.by_handle])


if TYPE_CHECKING:

    class AwaitableReport(MannersReport):
        def __await__(self) -> Generator[Any, None, MannersReport]: ...
