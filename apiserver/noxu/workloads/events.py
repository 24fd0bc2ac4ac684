"""Events that controllers record, as client-go's recorder makes them (tools/record, events_cache.go).

The first Event of its kind is created; the same one again counts up (`count`, `lastTimestamp`). More than MAX_SIMILAR that
differ only in their message within SIMILAR_WITHIN become one, whose message begins with "(combined from similar events)".
An object with very many Events gets a BURST, and then one every five minutes. Upstream names an Event after its object
and the nanosecond; so does this, and a second one in the same nanosecond, which a stopped clock makes, gets the next.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeVar

from noxu.go.time import format_time
from noxu.values import Object
from noxu.workloads.writes import NewEvent

MAX_KEPT: Final = 4096
MAX_SIMILAR: Final = 10
SIMILAR_WITHIN: Final = 600.0  # seconds
BURST: Final = 25
PER_SECOND: Final = 1 / 300
MAX_MESSAGE: Final = 1024
_COMBINED: Final = "(combined from similar events): "

T = TypeVar("T")


class _Similar(NamedTuple):
    """Events that differ only in their messages: the last time, and the different messages."""

    last: float
    messages: frozenset[str]


class _Bucket(NamedTuple):
    """The tokens of an object, at a time in seconds."""

    tokens: float
    at: float


class Recorder:
    """The Events of one component. `record` is pure but for what it remembers: the newest MAX_KEPT of each."""

    def __init__(self, component: str) -> None:
        self.component = component
        self._written: OrderedDict[object, Object] = OrderedDict()
        self._similar: OrderedDict[object, _Similar] = OrderedDict()
        self._buckets: OrderedDict[object, _Bucket] = OrderedDict()
        self._last_nanosecond = 0

    def record(self, event: NewEvent, now: datetime) -> tuple[Literal["create", "replace"], Object] | None:
        """What to write; None: nothing, because there are too many about this object."""
        seconds, reference = now.timestamp(), _reference(event.about)
        if event.field:
            reference["fieldPath"] = event.field
        if not self._may_write((reference["uid"], event.host), seconds):
            return None
        group = (reference["uid"], event.field, event.host, event.type, event.reason)
        is_combined = self._is_combined(group, event.message, seconds)
        message = (f"{_COMBINED}{event.message}" if is_combined else event.message)[:MAX_MESSAGE]
        key = (*group, _COMBINED if is_combined else message)
        time = format_time(now)
        earlier = self._written.get(key)
        if earlier is None:
            value = self._new(event, message, reference, time, self._nanosecond(now))
        else:
            value = {**earlier, "count": earlier["count"] + 1, "lastTimestamp": time, "message": message}
        _keep(self._written, key, value)
        return "create" if earlier is None else "replace", value

    def forget(self, value: Object) -> None:
        """An Event is not there: the next one like it is new."""
        name = value["metadata"]["name"]
        for key in [key for key, written in self._written.items() if written["metadata"]["name"] == name]:
            del self._written[key]

    def _new(self, event: NewEvent, message: str, reference: Object, time: str, nanosecond: int) -> Object:
        namespace = reference.get("namespace") or "default"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{reference['name']}.{nanosecond:x}", "namespace": namespace},
            "involvedObject": reference,
            "reason": event.reason,
            "message": message,
            "source": {"component": self.component, **({"host": event.host} if event.host else {})},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "type": event.type,
            "eventTime": None,
            "reportingComponent": self.component,
            "reportingInstance": event.host,
        }

    def _nanosecond(self, now: datetime) -> int:
        nanosecond = max(int(now.timestamp()) * 10**9 + now.microsecond * 1000, self._last_nanosecond + 1)
        self._last_nanosecond = nanosecond
        return nanosecond

    def _is_combined(self, group: object, message: str, seconds: float) -> bool:
        """Whether there are very many similar messages, of which this is one."""
        similar = self._similar.get(group)
        if similar is None or seconds - similar.last > SIMILAR_WITHIN:
            similar = _Similar(seconds, frozenset())
        is_full = len(similar.messages) >= MAX_SIMILAR
        _keep(self._similar, group, _Similar(seconds, similar.messages if is_full else similar.messages | {message}))
        return is_full and message not in similar.messages

    def _may_write(self, about: object, seconds: float) -> bool:
        bucket = self._buckets.get(about) or _Bucket(BURST, seconds)
        tokens = min(bucket.tokens + (seconds - bucket.at) * PER_SECOND, BURST)
        _keep(self._buckets, about, _Bucket(max(tokens - 1, 0.0) if tokens >= 1 else tokens, seconds))
        return tokens >= 1


def _keep(kept: OrderedDict[object, T], key: object, value: T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MAX_KEPT:
        kept.popitem(last=False)


def _reference(value: Object) -> Object:
    """A reference to an object (tools/reference.GetReference)."""
    metadata = value["metadata"]
    reference = {
        "kind": value["kind"],
        "apiVersion": value["apiVersion"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    if metadata.get("resourceVersion"):
        reference["resourceVersion"] = metadata["resourceVersion"]
    return reference
