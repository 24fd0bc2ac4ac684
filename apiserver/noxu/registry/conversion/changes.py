"""Changes converted to another version by a webhook, once for all watches.

A change keeps its conversions as long as the watch cache keeps the change. A failure is not kept, so the next watch tries
again. The changes before the one that cannot be converted are delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from noxu.api.errors import ApiError, internal_error
from noxu.registry.change import Change
from noxu.registry.conversion.entries import entries_before_failure
from noxu.registry.entry import Entry
from noxu.registry.resource import Resource

MAX_ATTEMPTS: Final = 100  # to convert a change that others start to convert together with one that fails


async def changes_before_failure(
    changes: Sequence[Change], resource: Resource, *, with_before: bool
) -> tuple[list[Change], ApiError | None]:
    """(The changes at this version up to the first that cannot be converted, its error or None).

    The old states of deleted objects are converted, and with `with_before` those of all changes.
    """
    _start_conversions(changes, resource, with_before)
    found: list[Change] = []
    for change in changes:
        try:
            converted = await _converted(change, resource, with_before)
        except ApiError as error:
            return found, error
        converted.frames = change.frames
        found.append(converted)
    return found, None


async def _converted(change: Change, resource: Resource, with_before: bool) -> Change:
    """Raises ApiError."""
    entry, before = change.entry, change.before
    for is_before, _ in _to_convert(change, with_before):
        result = await _result(change, resource, is_before, with_before)
        entry, before = (entry, result) if is_before else (result, before)
    return Change(change.key, change.revision, entry, before)


def _to_convert(change: Change, with_before: bool) -> Iterator[tuple[bool, Entry]]:
    if change.entry is not None:
        yield False, change.entry
    if change.before is not None and (with_before or change.entry is None):
        yield True, change.before


async def _result(change: Change, resource: Resource, is_before: bool, with_before: bool) -> Entry:
    """Raises ApiError."""
    for _ in range(MAX_ATTEMPTS):
        _start_conversions([change], resource, with_before)
        assert change.converted is not None
        task, n = conversion = change.converted[resource, is_before]
        result = (await asyncio.shield(task))[n]
        if isinstance(result, Entry):
            return result
        if change.converted.get((resource, is_before)) is conversion:
            del change.converted[resource, is_before]
        if result is not None:
            raise result
    raise internal_error("other changes, converted together with this one, failed too often")


def _start_conversions(changes: Sequence[Change], resource: Resource, with_before: bool) -> None:
    """Start to convert the entries whose conversions are neither under way nor complete."""
    missing: list[tuple[Change, bool, Entry]] = []
    for change in changes:
        if change.converted is None:
            change.converted = {}
        for is_before, entry in _to_convert(change, with_before):
            if (resource, is_before) not in change.converted:
                missing.append((change, is_before, entry))
    if missing:
        entries = [entry for _, _, entry in missing]
        task = asyncio.ensure_future(_convert_all(entries, resource))
        for n, (change, is_before, _) in enumerate(missing):
            assert change.converted is not None
            change.converted[resource, is_before] = task, n


async def _convert_all(entries: list[Entry], resource: Resource) -> list[Entry | ApiError | None]:
    """The result for each entry: the converted entry, its error, or None for entries after an error."""
    found, error = await entries_before_failure(entries, resource)
    results: list[Entry | ApiError | None] = [*found]
    if error is not None:
        results += [error, *[None] * (len(entries) - len(found) - 1)]
    return results
