"""Entries as they read at another version, where a webhook has to be asked for that.

Lists are asked for in reviews of many objects, a few reviews at a time. Upstream's reviews have one object each; so if
one of many fails, its objects are asked for one by one, and the error is that of the first which cannot be converted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.api import codec, errors
from apiserver.api.errors import ApiError
from apiserver.api.types import Object
from apiserver.registry.conversion import Converted, Converter, convert_one
from apiserver.registry.entry import Entry, read, twin
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource, Versions

MAX_OBJECTS: Final = 128  # in one review
MAX_BYTES: Final = 1024 * 1024  # of the objects in one review, but for the last one's
AT_ONCE: Final = 4  # reviews of one list under way together


async def at_storage_version(value: Object, storage: Resource, weight: int) -> Converted:
    """An object of another version as it is to be stored: pruned, without resourceVersion. Raises ApiError."""
    metadata = {name: one for name, one in value["metadata"].items() if name != "resourceVersion"}
    converted = await convert_one({**value, "metadata": metadata}, storage, weight)
    await work(converted.weight, _prune, converted.values[0], storage)
    return converted


def _prune(value: Object, resource: Resource) -> None:
    """Raises ApiError."""
    try:
        resource.behaviour.decode(resource, value)  # in place: a custom resource has no struct
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


async def entry_at(entry: Entry, resource: Resource) -> Entry:
    """The entry as it reads at this version, if somebody has to be asked for that. Raises ApiError."""
    if resource.versions.converter is None:
        return entry
    return (await entries_at([entry], resource))[0]


async def entries_at(entries: list[Entry], resource: Resource) -> list[Entry]:
    """The entries as they read at this version, if somebody has to be asked for that. Raises ApiError."""
    found, error = await entries_before_failure(entries, resource)
    if error is not None:
        raise error
    return found


async def entries_before_failure(entries: list[Entry], resource: Resource) -> tuple[list[Entry], ApiError | None]:
    """The entries as they read at this version, up to the first that cannot be, and why it cannot.

    Where nobody has to be asked they stay as they are.
    """
    unread = sum([len(entry.stored) for entry in entries if not resource.versions.has(entry.reading.version)])
    entries, unreadable = await work(unread, _readable, entries, resource.versions)
    converter = resource.versions.converter
    if converter is None:
        return entries, unreadable
    found: list[Entry] = []
    reviews = list(_reviews(entries, resource))
    for start in range(0, len(reviews), AT_ONCE):
        some = reviews[start : start + AT_ONCE]
        for done, error in await asyncio.gather(*[_converted(converter, one, resource) for one in some]):
            found += done
            if error is not None:
                return found, error
    return found, unreadable


def _readable(entries: list[Entry], versions: Versions) -> tuple[list[Entry], ApiError | None]:
    """The entries up to the first whose version is gone."""
    for n, entry in enumerate(entries):
        try:
            read(entry, versions)
        except ApiError as error:
            return entries[:n], error
    return entries, None


def _reviews(entries: Sequence[Entry], resource: Resource) -> Iterator[list[Entry]]:
    """The entries in order, in lists of one stored version each; those to be converted in lists of limited size."""
    some: list[Entry] = []
    version: Resource | None = None
    size = 0
    for entry in entries:
        own = read(entry, resource.versions).version
        full = own is not resource and (len(some) == MAX_OBJECTS or size > MAX_BYTES)
        if some and (own is not version or full):
            yield some
            some, size = [], 0
        some.append(entry)
        size += len(entry.stored)
        version = own
    if some:
        yield some


async def _converted(
    converter: Converter, entries: list[Entry], resource: Resource
) -> tuple[list[Entry], ApiError | None]:
    """Entries that are stored in one version, as they read at another, up to a failure, and that failure."""
    if read(entries[0], resource.versions).version is resource:
        return entries, None
    weight = sum([len(entry.stored) for entry in entries])
    begun = asyncio.get_running_loop().time()
    try:
        values = await work(weight, _values, entries, resource)
        converted = await converter.convert(values, resource.api_version, weight)
        return await work(converted.weight, _twins, entries, converted.values, resource), None
    except ApiError as error:
        out_of_time = asyncio.get_running_loop().time() - begun >= converter.timeout
        if len(entries) == 1 or out_of_time:
            return [], error
    found: list[Entry] = []
    for entry in entries:
        one, failure = await _converted(converter, [entry], resource)
        if failure is not None:
            return found, failure
        found += one
    return found, None


def _values(entries: Sequence[Entry], resource: Resource) -> list[Object]:
    """What is stored, pruned and defaulted at its own version, without resourceVersions."""
    return [codec.decode_stored(read(entry, resource.versions).shown) for entry in entries]


def _twins(entries: Sequence[Entry], values: Sequence[Object], resource: Resource) -> list[Entry]:
    """Raises ApiError."""
    found = []
    for entry, value in zip(entries, values, strict=True):
        _prune(value, resource)
        found.append(twin(entry, resource, value))
    return found
