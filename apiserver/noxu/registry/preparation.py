"""What is compiled from the schemas of a resource is made at its first request, not when its definition is established.

A server may have hundreds of definitions and use a few. Until its first request a resource has its names, columns and
selectable fields; its schemas are bytes of the stored definition (`Resource.keep_encoded`). The first request waits until
all its versions are prepared, large ones in a thread; the requests that arrive meanwhile wait for the same work. Whatever
uses a resource without a request finds the same, as every part is also computed when it is used.
"""

from __future__ import annotations

import asyncio

from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.resource import Versions


async def prepared(versions: Versions) -> None:
    """Return when a resource is prepared for requests. Raises ApiError Timeout if that takes too long."""
    if versions.is_prepared:
        return
    size = sum(resource.size for resource in versions.all)
    if size <= LOOP_LIMIT:
        versions.prepare()
        return
    if versions.preparing is None:
        versions.preparing = asyncio.ensure_future(_prepare(versions, size))
    await asyncio.shield(versions.preparing)


async def _prepare(versions: Versions, size: int) -> None:
    try:
        await offload(size, versions.prepare)
    finally:
        versions.preparing = None
