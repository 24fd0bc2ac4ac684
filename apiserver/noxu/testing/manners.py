"""The manners of clients, as the handle has them: what they asked badly.

    noxu.report().assert_polite()                            # fails with what to change, and the requests
    noxu.report(client="operator").assert_polite(conflicts=20, polling=None)
    print(noxu.report())

The requests of the handle itself are left out. See `noxu.control.manners_calls`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

from noxu.registry.offload import imported
from noxu.testing import calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner

if TYPE_CHECKING:
    from noxu.testing.manners_report import MannersReport

__tracebackhide__ = hidden


class MannersCalls:
    """The part of the handle that judges clients."""

    _runner: Runner

    def report(self, *, client: str = "", since: str = "") -> AwaitableReport:
        """What clients asked since the start, and what they did badly.

        `client`: only those whose user agent begins so. `since`: later requests than a time, or within a duration until now
        (`"5m"`). Raises ApiError BadRequest for another text.
        """
        return cast("AwaitableReport", calls.call(self._runner, "report", self._reported, client, since))

    async def _reported(self, client: str, since: str) -> AnsweredCall[MannersReport]:
        module = await imported("noxu.testing.manners_report")  # few tests ask for it
        return AnsweredCall(await module.of_server(self._runner.running, client, since))


if TYPE_CHECKING:

    class AwaitableReport(MannersReport):
        def __await__(self) -> Generator[Any, None, MannersReport]: ...
