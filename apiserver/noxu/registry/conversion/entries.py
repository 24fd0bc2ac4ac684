"""Entries converted to another version by a webhook.

A list is sent in reviews of many objects, a few reviews concurrently. Upstream's reviews have one object each; so if a
review of several objects fails, they are sent again one by one, and the error is that of the first object that fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.registry.conversion.converters import convert_one
from noxu.registry.entry import Entry, converted_entry, render, served_bytes
from noxu.registry.offload import offload
from noxu.registry.resource import Converted, Converter, Resource, Versions, prepared
from noxu.values import Object

MAX_OBJECTS: Final = 128  # in one review
MAX_BYTES: Final = 1024 * 1024  # of the objects in one review, not counting the last one
CONCURRENCY: Final = 4  # concurrent reviews of one list


async def at_storage_version(value: Object, storage: Resource, weight: int) -> Converted:
    """An object of another version in the form in which it is stored: pruned, without resourceVersion. Raises ApiError."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "resourceVersion"}
    converted = await convert_one({**value, "metadata": metadata}, storage, weight)
    await offload(converted.weight, _prune, converted.values[0], storage)
    return converted


def _prune(value: Object, resource: Resource) -> None:
    """Raises ApiError."""
    try:
        resource.behaviour.decode(resource, value)  # in place, as for all custom resources
        resource.behaviour.prune(resource, value)
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


async def entry_at(entry: Entry, resource: Resource) -> Entry:
    """The entry at a version of its resource, converted if a webhook does that. Raises ApiError."""
    if resource.versions.converter is None:
        return entry
    return (await entries_at([entry], resource))[0]


async def entries_at(entries: list[Entry], resource: Resource) -> list[Entry]:
    """The entries at a version of their resource, converted if a webhook does that. Raises ApiError."""
    found, error = await entries_before_failure(entries, resource)
    if error is not None:
        raise error
    return found


async def entries_before_failure(entries: list[Entry], resource: Resource) -> tuple[list[Entry], ApiError | None]:
    """(The entries at this version up to the first that cannot be converted, its error or None).

    If no webhook converts the resource, the entries are returned unchanged.
    """
    versions, converter = resource.versions, resource.versions.converter
    if converter is None and {entry.rendering.resource for entry in entries} <= {resource}:
        return entries, None  # as what follows finds
    if not versions.is_prepared:  # by a request for the resource: policies and references read it, too
        await prepared(versions)
    not_rendered = sum([len(entry.stored) for entry in entries if not versions.has(entry.rendering.resource)])
    entries, render_error = await offload(not_rendered, _rendered, entries, versions)
    if converter is None:
        return entries, render_error
    found: list[Entry] = []
    reviews = list(_reviews(entries, resource))
    for start in range(0, len(reviews), CONCURRENCY):
        batch = reviews[start : start + CONCURRENCY]
        for done, error in await asyncio.gather(*[_converted(converter, run, resource) for run in batch]):
            found += done
            if error is not None:
                return found, error
    return found, render_error


def _rendered(entries: list[Entry], versions: Versions) -> tuple[list[Entry], ApiError | None]:
    """The entries, rendered, up to the first whose version no longer exists."""
    for n, entry in enumerate(entries):
        try:
            render(entry, versions)
        except ApiError as error:
            return entries[:n], error
    return entries, None


def _reviews(entries: Sequence[Entry], resource: Resource) -> Iterator[list[Entry]]:
    """Split entries into runs of one stored version; runs that have to be converted are of limited size."""
    run: list[Entry] = []
    version: Resource | None = None
    size = 0
    for entry in entries:
        own = render(entry, resource.versions).resource
        full = own is not resource and (len(run) == MAX_OBJECTS or size > MAX_BYTES)
        if run and (own is not version or full):
            yield run
            run, size = [], 0
        run.append(entry)
        size += len(entry.stored)
        version = own
    if run:
        yield run


async def _converted(
    converter: Converter, entries: list[Entry], resource: Resource
) -> tuple[list[Entry], ApiError | None]:
    """(The entries of one stored version at another version up to the first that fails, its error or None)."""
    if render(entries[0], resource.versions).resource is resource:
        return entries, None
    weight = sum([len(entry.stored) for entry in entries])
    started = asyncio.get_running_loop().time()
    try:
        values = await offload(weight, _values, entries, resource)
        converted = await converter.convert(values, resource.api_version, weight)
        return await offload(converted.weight, _converted_entries, entries, converted.values, resource), None
    except ApiError as error:
        timed_out = asyncio.get_running_loop().time() - started >= converter.timeout
        if len(entries) == 1 or timed_out:
            return [], error
    converted_one_by_one: list[Entry] = []
    for entry in entries:
        result, failure = await _converted(converter, [entry], resource)
        if failure is not None:
            return converted_one_by_one, failure
        converted_one_by_one += result
    return converted_one_by_one, None


def _values(entries: Sequence[Entry], resource: Resource) -> list[Object]:
    """The objects, pruned and defaulted at their own version, without resourceVersions."""
    for entry in entries:
        render(entry, resource.versions)
    return [codec.decode_stored(served_bytes(entry)) for entry in entries]


def _converted_entries(entries: Sequence[Entry], values: Sequence[Object], resource: Resource) -> list[Entry]:
    """Raises ApiError."""
    found = []
    for entry, value in zip(entries, values, strict=True):
        _prune(value, resource)
        found.append(converted_entry(entry, resource, value))
    return found
