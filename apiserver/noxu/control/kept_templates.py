"""Templates that outlive their process: what they have stored is an entry of the manifest cache.

A process that finds it does not read, validate and write the manifests again: its controllers look once at what is stored.
Times and uids are those of that process, so an object is never older than the process.

    00 00 1f 40   {"revision":761,"defined":["widgets.example.com"],"objects":[["/namespaces","","default",5,312,false],…]}   the values, one after the other

The head has the definitions in their order, the key and the revision of each object, the length of its value, and whether it is about a server. In the values,
UID and TIME stand for the uid of the object and for the times at which the template was made; JSON cannot have these bytes.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Final

import orjson

from noxu.config import Config
from noxu.control.templates import KeptObjects, Period, Template, shared
from noxu.go.time import format_time
from noxu.identifiers import SYSTEM_IDENTIFIERS
from noxu.manifests.manifest_cache import Cache
from noxu_storage.memory import base_of
from noxu_storage.types import Key, KeyValue

KIND: Final = "template"
"""Of the entries."""
MIN_BYTES: Final = 256 * 1024
"""Smaller templates are made in the time that it takes to find them."""
UID: Final = b"\x01u"
TIME: Final = b"\x01t"
_LENGTH: Final = 4  # bytes
_LONGEST: Final = timedelta(minutes=10)


def keep(cache: Cache, digest: bytes, template: Template) -> None:
    """Keep a template of manifests with this digest, if that is worth it and possible."""
    times = [time for period in template.periods for time in _seconds(period)]
    if not cache.keeps or template.base.bytes < MIN_BYTES or not all(times):
        return
    values: list[bytes] = []
    objects = []
    for event in template.base.events:
        value = event.value or b""
        if not value.startswith(b"{"):  # CBOR
            return
        value = value.replace(orjson.loads(value)["metadata"]["uid"].encode(), UID)
        for time in times:
            value = value.replace(time, TIME)
        values.append(value)
        objects.append([*event.key, event.revision, len(value), event.key in template.own])
    defined = list(template.plane.served_resources.current.defined)
    head = orjson.dumps({"revision": template.base.revision, "defined": defined, "objects": objects})
    cache.put_bytes(b"".join((len(head).to_bytes(_LENGTH, "big"), head, *values)), KIND, digest, _name(template.config))
    cache.tidy()


def find(cache: Cache, digest: bytes, config: Config, now: datetime) -> KeptObjects | None:
    """What a template with this configuration has stored of manifests with this digest, None if none is kept."""
    kept = cache.get_bytes(KIND, digest, _name(shared(config)))
    if kept is None:
        return None
    at = _LENGTH + int.from_bytes(kept[:_LENGTH], "big")
    head, time = orjson.loads(kept[_LENGTH:at]), format_time(now).encode()
    states, own = [], set()
    for collection, partition, name, revision, length, is_own in head["objects"]:
        key, value = Key(collection, partition, name), bytes(kept[at : at + length])
        at += length
        uid = SYSTEM_IDENTIFIERS.new_uid().encode()
        states.append(KeyValue(key, value.replace(UID, uid).replace(TIME, time), revision))
        if is_own:
            own.add(key)
    return KeptObjects(base_of(states, head["revision"]), own, head["defined"])


def _seconds(period: Period) -> Iterator[bytes]:
    """The times of objects that were written in a period; one that is empty if it was too long."""
    time, ended = period
    if ended - time > _LONGEST:
        yield b""
        return
    while time < ended + timedelta(seconds=1):
        yield format_time(time).encode()
        time += timedelta(seconds=1)


def _name(config: Config) -> bytes:
    """A text for the part of a configuration that templates have, the same in each process. The host is in a Lease."""
    values = [getattr(config, field.name) for field in fields(config)]
    texts = (repr(sorted(value) if isinstance(value, frozenset) else value) for value in values)
    return "\0".join([socket.gethostname(), *texts]).encode()
