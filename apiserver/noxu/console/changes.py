"""What one write has changed: `GET /_noxu/console/change?revision=812`, the object before and after, as it is stored.

The values in a Secret are masked, so that a page that is shown to others shows none: each becomes its length.
"""

from __future__ import annotations

from typing import Final

from noxu.api import errors
from noxu.control.arguments import INTEGER, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.masked import masked
from noxu.control.write_log import decoded, events_between
from noxu.registry.offload import offload
from noxu.values import Object
from noxu_storage.types import EVERYTHING, Compacted


async def change(call: ControlCall) -> Object:
    """The object before and after a revision. Raises ApiError NotFound, StoreError."""
    revision, store = call.query["revision"], call.plane.store
    try:
        events = [
            event async for event in events_between(store, EVERYTHING, revision - 1, min(revision, store.revision))
        ]
    except Compacted:
        events = []
    if not events:
        message = f"revision {revision} is not kept: the history begins at {store.compacted + 1}; `noxu serve --history` keeps more"
        raise errors.ApiError(404, message, "NotFound", {})
    [event, *_] = events
    return {
        "before": await _shown(None if event.previous is None else event.previous.value),
        "after": await _shown(event.value),
    }


async def _shown(stored: bytes | None) -> Object | None:
    return masked(await offload(len(stored), decoded, stored)) if stored else None


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/console/change",
        change,
        "The object before and after a write.",
        query={"revision": Argument(INTEGER, "that of the write", required=True)},
    ),
)
