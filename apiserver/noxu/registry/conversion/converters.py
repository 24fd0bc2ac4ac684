"""Conversion of custom resources between the versions of their definition.

With strategy None only the apiVersion changes. With strategy Webhook a review is sent (`review`), to the webhook of
the definition or to a function in this process. Objects are pruned and defaulted at their stored version, converted directly
to the requested version, and pruned by its schema; its defaults are not filled in, and the result is not validated
(upstream's versioning codec).

An object that has the requested version is not sent. The changes of a watch are converted once for all watches.

A list is sent in reviews of many objects, a few reviews concurrently. Upstream's reviews have one object each; so if a
review of several objects fails, they are sent again one by one, and the error is that of the first object that fails.

A change keeps its conversions as long as the watch cache keeps the change. A failure is not kept, so the next watch tries
again. The changes before the one that cannot be converted are delivered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError, internal_error
from noxu.identifiers import SYSTEM_IDENTIFIERS, Identifiers
from noxu.registry.cache import Change
from noxu.registry.conversion.metrics import ConversionMetrics
from noxu.registry.offload import offload
from noxu.registry.resource import Converted, Converter, Resource, Versions, prepared
from noxu.registry.stored_object import StoredObject, converted_entry, render, served_bytes
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.registry.conversion.review import ReviewConverter, SendReview
    from noxu.webhook.client import Caller

TIMEOUT: Final = 30  # seconds; upstream's, which no definition can change

InProcess = Callable[[str, Object], Awaitable[Object]]
"""A converter in this process: (name of the definition, `request` of a ConversionReview) → its `response`."""


@dataclass
class Conversions:
    """The converters of all definitions.

    `timeout` is in seconds. `in_process` has converters by the name of the definition, which override its own strategy.
    Without a caller webhooks are ignored: for commands that only validate.
    """

    call: Caller | None = None
    timeout: int = TIMEOUT
    identifiers: Identifiers = SYSTEM_IDENTIFIERS
    in_process: dict[str, InProcess] = field(default_factory=dict)
    metrics: ConversionMetrics = field(default_factory=ConversionMetrics)
    webhooks: dict[str, Object] = field(default_factory=dict, repr=False)
    """The `spec.conversion` of the definitions whose strategy is Webhook, by their names."""
    _converters: dict[str, ReviewConverter | None] = field(default_factory=dict, repr=False)

    def define(self, name: str, spec: Object) -> ReviewConverter | None:
        """Register a definition before it is served; its converter, None if it needs no webhook."""
        conversion = spec.get("conversion") or {}
        self._converters[name] = None  # of the definition as it was before
        self.webhooks.pop(name, None)
        if conversion.get("strategy") == "Webhook" and self.call is not None:
            self.webhooks[name] = conversion
            self._converters[name] = self._converter(
                name, _of_review("send_to")(conversion["webhook"], self.call, self._seconds)
            )
        return self.of(name)

    def _converter(self, name: str, send: SendReview) -> ReviewConverter:
        converter: ReviewConverter = _of_review("ReviewConverter")(
            send, self.identifiers, self.timeout, name, self.metrics
        )
        return converter

    def _seconds(self) -> int:
        return self.timeout

    def of(self, name: str) -> ReviewConverter | None:
        """The converter of a registered definition, None if it needs no webhook."""
        if name in self.in_process:
            return self._converter(name, _of_review("send_in_process")(name, self.in_process[name], self._seconds))
        return self._converters.get(name)


def _of_review(name: str) -> Any:
    """A name of `review`, which few definitions need."""
    return getattr(import_module("noxu.registry.conversion.review"), name)


# -- objects ----------------------------------------------------------------------------------------------------------


async def convert(value: Object, resource: Resource, weight: int = 0) -> Object:
    """Convert an object to a version of its resource. The result is not pruned; the given object is not changed.

    `weight` is its approximate size in bytes. Raises ApiError.
    """
    return (await convert_one(value, resource, weight)).values[0]


async def convert_one(value: Object, resource: Resource, weight: int) -> Converted:
    """Like `convert`, with the weight of further work on the result. Raises ApiError."""
    if value.get("apiVersion") == resource.api_version:
        return Converted([value], weight)
    converter = resource.versions.converter
    if converter is None or value.keys() == {"apiVersion", "kind"}:  # upstream does not send an empty object
        return Converted([{**value, "apiVersion": resource.api_version}], weight)
    return await converter.convert([value], resource.api_version, weight)


# -- stored objects ---------------------------------------------------------------------------------------------------


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
        resource.codec.decode(resource, value)  # in place, as for all custom resources
        resource.codec.prune(resource, value)
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


async def entry_at(entry: StoredObject, resource: Resource) -> StoredObject:
    """The entry at a version of its resource, converted if a webhook does that. Raises ApiError."""
    if resource.versions.converter is None:
        return entry
    return (await entries_at([entry], resource))[0]


async def entries_at(entries: list[StoredObject], resource: Resource) -> list[StoredObject]:
    """The entries at a version of their resource, converted if a webhook does that. Raises ApiError."""
    converted, error = await entries_before_failure(entries, resource)
    if error is not None:
        raise error
    return converted


async def entries_before_failure(
    entries: list[StoredObject], resource: Resource
) -> tuple[list[StoredObject], ApiError | None]:
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
    converted: list[StoredObject] = []
    reviews = list(_reviews(entries, resource))
    for start in range(0, len(reviews), CONCURRENCY):
        batch = reviews[start : start + CONCURRENCY]
        for done, error in await asyncio.gather(*[_converted(converter, run, resource) for run in batch]):
            converted += done
            if error is not None:
                return converted, error
    return converted, render_error


def _rendered(entries: list[StoredObject], versions: Versions) -> tuple[list[StoredObject], ApiError | None]:
    """The entries, rendered, up to the first whose version no longer exists."""
    for n, entry in enumerate(entries):
        try:
            render(entry, versions)
        except ApiError as error:
            return entries[:n], error
    return entries, None


def _reviews(entries: Sequence[StoredObject], resource: Resource) -> Iterator[list[StoredObject]]:
    """Split entries into runs of one stored version; runs that have to be converted are of limited size."""
    run: list[StoredObject] = []
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
    converter: Converter, entries: list[StoredObject], resource: Resource
) -> tuple[list[StoredObject], ApiError | None]:
    """(The entries of one stored version at another version up to the first that fails, its error or None)."""
    if render(entries[0], resource.versions).resource is resource:
        return entries, None
    weight = sum([len(entry.stored) for entry in entries])
    started = asyncio.get_running_loop().time()
    try:
        values = await offload(weight, _values, entries, resource)  # decoded anew: the webhook's caller owns them
        converted = await converter.convert(values, resource.api_version, weight)
        return await offload(converted.weight, _converted_entries, entries, converted.values, resource), None
    except ApiError as error:
        timed_out = asyncio.get_running_loop().time() - started >= converter.timeout
        if len(entries) == 1 or timed_out:
            return [], error
    converted_one_by_one: list[StoredObject] = []
    for entry in entries:
        result, failure = await _converted(converter, [entry], resource)
        if failure is not None:
            return converted_one_by_one, failure
        converted_one_by_one += result
    return converted_one_by_one, None


def _values(entries: Sequence[StoredObject], resource: Resource) -> list[Object]:
    """The objects, pruned and defaulted at their own version, without resourceVersions."""
    for entry in entries:
        render(entry, resource.versions)
    return [codec.decode_stored(served_bytes(entry)) for entry in entries]


def _converted_entries(
    entries: Sequence[StoredObject], values: Sequence[Object], resource: Resource
) -> list[StoredObject]:
    """Raises ApiError."""
    converted = []
    for entry, value in zip(entries, values, strict=True):
        _prune(value, resource)  # in place: the value came from the reply
        converted.append(converted_entry(entry, resource, value))
    return converted


# -- changes ----------------------------------------------------------------------------------------------------------


MAX_ATTEMPTS: Final = 100  # to convert a change that others start to convert together with one that fails


async def changes_before_failure(
    changes: Sequence[Change], resource: Resource, *, with_before: bool
) -> tuple[list[Change], ApiError | None]:
    """(The changes at this version up to the first that cannot be converted, its error or None).

    The old states of deleted objects are converted, and with `with_before` those of all changes.
    """
    _start_conversions(changes, resource, with_before)
    results: list[Change] = []
    for change in changes:
        try:
            converted = await _converted_change(change, resource, with_before)
        except ApiError as error:
            return results, error
        converted.frames = change.frames  # shared: the first stream that encodes does so for all
        results.append(converted)
    return results, None


async def _converted_change(change: Change, resource: Resource, with_before: bool) -> Change:
    """Raises ApiError."""
    entry, before = change.entry, change.before
    for is_before, _ in _to_convert(change, with_before):
        result = await _result(change, resource, is_before, with_before)
        entry, before = (entry, result) if is_before else (result, before)
    return Change(change.key, change.revision, entry, before)


def _to_convert(change: Change, with_before: bool) -> Iterator[tuple[bool, StoredObject]]:
    if change.entry is not None:
        yield False, change.entry
    if change.before is not None and (with_before or change.entry is None):
        yield True, change.before


async def _result(change: Change, resource: Resource, is_before: bool, with_before: bool) -> StoredObject:
    """Raises ApiError."""
    for _ in range(MAX_ATTEMPTS):
        _start_conversions([change], resource, with_before)
        assert change.converted is not None
        task, n = conversion = change.converted[resource, is_before]
        result = (await asyncio.shield(task))[n]  # a watch that ends does not cancel it for the others
        if isinstance(result, StoredObject):
            return result
        if change.converted.get((resource, is_before)) is conversion:
            del change.converted[resource, is_before]  # a failure is not kept, and the next watch tries again
        if result is not None:
            raise result
    raise internal_error("other changes, converted together with this one, failed too often")


def _start_conversions(changes: Sequence[Change], resource: Resource, with_before: bool) -> None:
    """Start to convert the entries whose conversions are neither under way nor complete."""
    missing: list[tuple[Change, bool, StoredObject]] = []
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
            change.converted[resource, is_before] = task, n  # shared: other watches await the same task


async def _convert_all(entries: list[StoredObject], resource: Resource) -> list[StoredObject | ApiError | None]:
    """The result for each entry: the converted entry, its error, or None for entries after an error."""
    converted, error = await entries_before_failure(entries, resource)
    results: list[StoredObject | ApiError | None] = [*converted]
    if error is not None:
        results += [error, *[None] * (len(entries) - len(converted) - 1)]
    return results
