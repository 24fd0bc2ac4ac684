"""What is known about an object for which a test has waited in vain: what holds it, and what happened to it.

Everything is read from the store, so there are no further requests. A message has a limited size, whatever the objects are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from noxu.api import codec
from noxu.process.server import Server
from noxu.registry.storage_form import as_json
from noxu.testing.addresses import Address
from noxu.values import Object

MAX_STATE: Final = 4000  # characters of the state of an object
MAX_LINE: Final = 300  # characters
MAX_LISTED: Final = 10  # Events, dependents, names
_EVENT: Final = "Event"


async def circumstances(server: Server, address: Address, value: Object | None) -> list[str]:
    """Lines about an object; `value` is its state, None if it does not exist. In the loop of the server."""
    uid = str(value["metadata"].get("uid", "")) if value else ""
    related = await _naming(server, f'"name":"{address.name}"', uid)  # an Event need not have the uid
    lines: list[str] = []
    if value is None:
        lines += await _others(server, address)
    else:
        lines += _held(value, [each for each in related if _owned_by(each, uid)])
        lines += await _owners(server, value)
    events = [each for each in related if each.get("kind") == _EVENT and _is_about(each, address, uid)]
    return [cut(line) for line in (*lines, *_shown_events(events))]


async def _naming(server: Server, *texts: str) -> list[Object]:
    """The stored objects that contain one of the texts."""
    found: list[Object] = []
    async for states in server.plane.store.scan([text.encode() for text in texts if text]):
        for state in states:
            try:
                value = codec.decode_stored(as_json(state.value))
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
                found.append(value)
    return found


def _held(value: Object, dependents: list[Object]) -> Iterator[str]:
    """What keeps an object from being deleted."""
    metadata = value["metadata"]
    finalizers = metadata.get("finalizers") or []
    if since := metadata.get("deletionTimestamp"):
        grace = metadata.get("deletionGracePeriodSeconds")
        kept = f"finalizers keep it: {_listed(finalizers)}" if finalizers else f"its grace period is {grace or 0} s"
        yield f"it is being deleted (deletionTimestamp {since}); {kept}"
    elif finalizers:
        yield f"its finalizers: {_listed(finalizers)}"
    if dependents:
        yield f"its dependents: {_listed(map(_named, dependents))}"


async def _owners(server: Server, value: Object) -> list[str]:
    """The owners of an object, and which of them do not exist."""
    lines = []
    for owner in (value["metadata"].get("ownerReferences") or [])[:MAX_LISTED]:
        uid = str(owner.get("uid", ""))
        exists = any(each["metadata"].get("uid") == uid for each in await _naming(server, uid)) if uid else False
        lines.append(f"its owner: {owner.get('kind')} {owner.get('name')}{'' if exists else ', which does not exist'}")
    return lines


async def _others(server: Server, address: Address) -> list[str]:
    """The names that a missing object might have been meant by."""
    if not address.resource.is_stored:
        return []
    collection = await server.plane.reader.collection(address.resource)
    names = sorted(f"{key.partition}{key.name}" for key in collection.entries)
    kind = address.resource.kind
    return [f"there is {_listed(names)}" if names else f"there is no {kind} at all"]


def _owned_by(value: Object, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in value["metadata"].get("ownerReferences") or ())


def _is_about(event: Object, address: Address, uid: str) -> bool:
    subject = event.get("involvedObject") or event.get("regarding") or {}
    if uid and subject.get("uid"):
        return bool(subject["uid"] == uid)
    named = subject.get("kind"), subject.get("name"), subject.get("namespace") or ""
    return named == (address.resource.kind, address.name, address.namespace)


def _shown_events(events: list[Object]) -> Iterator[str]:
    if not events:
        return
    yield "Events:" if len(events) <= MAX_LISTED else f"Events (the last {MAX_LISTED} of {len(events)}):"
    for event in sorted(events, key=time_of)[-MAX_LISTED:]:
        count = event.get("count") or 1
        times = f" ({count} times)" if count > 1 else ""
        message = " ".join(str(event.get("message") or event.get("note") or "").split())
        yield f"  {event.get('type', '')} {event.get('reason', '')}: {message}{times}"


def time_of(event: Object) -> tuple[str, int]:
    """When an Event happened last, for sorting."""
    metadata = event["metadata"]
    when = event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp") or ""
    return str(when), int(metadata.get("resourceVersion") or 0)


def shown(value: Object) -> str:
    """An object for a message, without what is never waited for; of a large one, what controllers write comes first."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    text = _yaml({**value, "metadata": metadata})
    if len(text) <= MAX_STATE:
        return text
    first = {name: value[name] for name in ("apiVersion", "kind", "status") if name in value}
    rest = {name: item for name, item in value.items() if name not in (*first, "metadata")}
    return cut(_yaml({**first, "metadata": metadata, **rest}), MAX_STATE)


def _yaml(value: Any) -> str:
    import yaml  # imported late: rarely needed

    text: str = yaml.safe_dump(value, sort_keys=False)
    return text.rstrip()


def _named(value: Object) -> str:
    metadata = value["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{value.get('kind')} {place}{metadata.get('name')}"


def _listed(texts: Iterable[object]) -> str:
    found = [str(text) for text in texts]
    more = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    return f"{', '.join(found[:MAX_LISTED])}{more}"


def cut(text: str, length: int = MAX_LINE) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
