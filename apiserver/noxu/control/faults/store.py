"""The faults of a store, for the writes of requests that a rule hits.

    unavailable    the write raises Unavailable: nothing was written
    unknown        the write is committed, and raises OutcomeUnknown: the server does not know what its client does not learn

The wrapper stands before the store of a control plane while there are rules with such an effect. A request that is hit says so
in its context (`STORE_FAULT`), and so do the tasks that it starts; writes of others pass.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, Final

from noxu_storage.store import Store
from noxu_storage.types import Key, OutcomeUnknown, Revision, Unavailable

STORE_FAULT: Final[ContextVar[str]] = ContextVar("store_fault", default="")
"""What happens to the writes of this task: unavailable, unknown; "": nothing."""


class FaultyWrites:
    """The writes of a store, some of which fail. See `registry.persistence.StoreWrites`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.groups_writes = store.groups_writes

    async def put(self, key: Key, value: bytes, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        return await _failing(self.store.put(key, value, expected=expected, replaced=replaced))

    async def delete(self, key: Key, *, expected: Revision, replaced: bytes | None = None) -> Revision:
        return await _failing(self.store.delete(key, expected=expected, replaced=replaced))


async def _failing(write: Coroutine[Any, Any, Revision]) -> Revision:
    fault = STORE_FAULT.get()
    if fault == "unavailable":
        write.close()
        raise Unavailable("the store accepts no writes: a fault was injected")
    revision = await write
    if fault == "unknown":
        raise OutcomeUnknown("the store failed during COMMIT: a fault was injected")
    return revision
