"""Changes as they read at another version, where a webhook has to be asked: once for all watches.

A change keeps what was converted of it as long as watches may want it. What failed is not kept: who comes later asks
again. The events before the one that cannot be converted are delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from apiserver.api.errors import ApiError
from apiserver.registry.change import Change
from apiserver.registry.conversion_entries import entries_before_failure
from apiserver.registry.entry import Entry
from apiserver.registry.resource import Resource


async def changes_before_failure(
    changes: Sequence[Change], resource: Resource, *, with_before: bool
) -> tuple[list[Change], ApiError | None]:
    """The changes as they read at this version, up to the first that cannot be converted, and why it cannot.

    `before` is converted of deletions, and of all changes `with_before`.
    """
    _ask(changes, resource, with_before)
    found: list[Change] = []
    for change in changes:
        try:
            made = await _at(change, resource, with_before)
        except ApiError as error:
            return found, error
        made.frames = change.frames
        found.append(made)
    return found, None


async def _at(change: Change, resource: Resource, with_before: bool) -> Change:
    """Raises ApiError."""
    entry, before = change.entry, change.before
    for is_before, _ in _needed(change, with_before):
        one = await _outcome(change, resource, is_before, with_before)
        entry, before = (entry, one) if is_before else (one, before)
    return Change(change.key, change.revision, entry, before)


def _needed(change: Change, with_before: bool) -> Iterator[tuple[bool, Entry]]:
    if change.entry is not None:
        yield False, change.entry
    if change.before is not None and (with_before or change.entry is None):
        yield True, change.before


async def _outcome(change: Change, resource: Resource, is_before: bool, with_before: bool) -> Entry:
    """Raises ApiError."""
    while True:
        _ask([change], resource, with_before)
        assert change.converted is not None
        task, n = place = change.converted[resource, is_before]
        outcome = (await asyncio.shield(task))[n]
        if isinstance(outcome, Entry):
            return outcome
        if change.converted.get((resource, is_before)) is place:
            del change.converted[resource, is_before]
        if outcome is not None:
            raise outcome


def _ask(changes: Sequence[Change], resource: Resource, with_before: bool) -> None:
    """Begin to convert what nobody has asked for yet."""
    missing: list[tuple[Change, bool, Entry]] = []
    for change in changes:
        if change.converted is None:
            change.converted = {}
        for is_before, entry in _needed(change, with_before):
            if (resource, is_before) not in change.converted:
                missing.append((change, is_before, entry))
    if missing:
        entries = [entry for _, _, entry in missing]
        task = asyncio.ensure_future(_outcomes(entries, resource))
        for n, (change, is_before, _) in enumerate(missing):
            assert change.converted is not None
            change.converted[resource, is_before] = task, n


async def _outcomes(entries: list[Entry], resource: Resource) -> list[Entry | ApiError | None]:
    """What became of each; None: it was not tried, because another one failed."""
    found, error = await entries_before_failure(entries, resource)
    outcomes: list[Entry | ApiError | None] = [*found]
    if error is not None:
        outcomes += [error, *[None] * (len(entries) - len(found) - 1)]
    return outcomes
