"""Replays in tests: `noxu.replay(FILE)` sends a recording again. What that needs is imported with the first one.

def test_the_bug_is_gone(noxu):
    assert noxu.replay("bugs/lost-update.noxu") == []
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from noxu.testing.client import tls_context
from noxu.testing.errors import hidden
from noxu.testing.session import Runner
from noxu.testing.sources import names

if TYPE_CHECKING:
    from noxu.recordings.replaying import ReplayedStep
    from noxu.testing.calls import AwaitableSteps

__tracebackhide__ = hidden

REPLAYING: Final = "noxu.recordings.replaying"
LINES: Final = "noxu.recordings.lines"


class ReplayCalls:
    """The part of the handle that replays recordings."""

    _runner: Runner
    _sync_or_awaited: Callable[[str, Callable[[], Any]], Any]

    def replay(self, file: str | os.PathLike[str], *, ignore: Iterable[str] = ()) -> AwaitableSteps:
        """Send the requests of a recording again, and return the steps that are answered otherwise: none, or a test should fail.

        The objects that were there when the recording began are created first, if they are not there. `ignore` are names of
        fields that are not compared. Raises OSError and ValueError for a file that cannot be read, or is no recording.
        """
        return cast("AwaitableSteps", self._sync_or_awaited("replay", lambda: self._replay(Path(file), names(ignore))))

    def _replay(self, path: Path, ignore: Iterable[str]) -> list[ReplayedStep]:
        replaying, recording = import_module(REPLAYING), import_module(LINES).read(path)
        access = self._runner.running.access()
        tls = tls_context(access) if access.certificate_authority else None
        target = replaying.ReplayTarget(access.url, tls, f"Bearer {access.token}" if access.token else "")
        try:
            return list(replaying.Replay(recording, target, ignore).run())
        finally:
            target.close()
