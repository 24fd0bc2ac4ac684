"""metadata.managedFields read and written: who owns which fields, in which version, since when.

An entry is known by manager, operation, subresource and, for updates only, apiVersion: whoever applies is the same
manager at every version. Entries are sorted by operation, time (in whole seconds, none first), manager, apiVersion and
subresource. (apimachinery's managedfields/internal/managedfields.go.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import orjson

from apiserver.api.gotext import compact_json, quote
from apiserver.api.gotime import parse_time
from apiserver.api.types import Json, Object
from apiserver.apply.fieldset import FieldSet, MalformedFields, ordered, parse

Operation = Literal["Apply", "Update"]


class Manager(NamedTuple):
    """Who owns fields. `version` is an apiVersion, empty for those who apply."""

    name: str
    operation: Operation
    version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """Upstream's key for it, by which some things are sorted: an entry with only these members, as JSON."""
        members = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.version,
            "subresource": self.subresource,
        }
        return compact_json({name: text for name, text in members.items() if text}, sort_keys=False)

    def __str__(self) -> str:
        """As conflicts name it."""
        text = quote(self.name)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True, eq=False)
class Owned:
    """What a manager owns. `time` is a text in whole seconds, empty if there is none."""

    fields: FieldSet
    version: str
    time: str = ""


Managers: TypeAlias = dict[Manager, Owned]


class InvalidEntries(ValueError):
    """managedFields that cannot be read; the message is upstream's where it is ever seen."""


_OPERATIONS: Final = frozenset({"Apply", "Update"})


def decode(entries: Json) -> Managers:
    """managedFields as a dict. One entry that cannot be read makes all of them unreadable: InvalidEntries."""
    managers: Managers = {}
    if entries is None:
        return managers
    if type(entries) is not list:
        raise InvalidEntries("managedFields must be a list")
    for index, entry in enumerate(entries):
        if type(entry) is not dict:
            raise InvalidEntries(f"managed fields entry {index} must be an object")
        manager, owned = _decode_entry(entry, index)
        managers[manager] = owned
    return managers


def _decode_entry(entry: Object, index: int) -> tuple[Manager, Owned]:
    operation = entry.get("operation")
    version = _text(entry, "apiVersion")
    fields_type = _text(entry, "fieldsType")
    if operation not in _OPERATIONS:
        raise InvalidEntries("operation must be `Apply` or `Update`")
    if not version:
        raise InvalidEntries("apiVersion must not be empty")
    if fields_type != "FieldsV1":
        wrong = f"invalid fieldsType {quote(fields_type)}" if fields_type else "missing fieldsType"
        raise InvalidEntries(f"{wrong} in managed fields entry {index}")
    time = _text(entry, "time")
    try:
        fields = _interned(entry.get("fieldsV1"))
        if time and not (len(time) == len("2006-01-02T15:04:05Z") and time[-1] == "Z"):  # as decoding leaves them
            time = parse_time(time)
    except MalformedFields as error:
        raise InvalidEntries(f"error decoding versioned set: error decoding set: {error}") from None
    except ValueError as error:
        raise InvalidEntries(str(error)) from None
    known_by = version if operation == "Update" else ""
    return Manager(_text(entry, "manager"), operation, known_by, _text(entry, "subresource")), Owned(
        fields, version, time
    )


MAX_INTERNED: Final = 256
MAX_INTERNED_BYTES: Final = 8 * 1024
"""fieldsV1 that are remembered, and how long they may be: objects of a kind are owned alike, over and over."""

_sets: Final[dict[bytes, FieldSet]] = {}


def _interned(fields: Json) -> FieldSet:
    """fieldsV1 as a set, the same dict for all that are written alike. Raises MalformedFields."""
    try:
        written = orjson.dumps(fields)
    except TypeError:  # too deep
        return parse(fields)
    known = _sets.get(written)
    if known is None:
        known = parse(fields)
        if len(written) <= MAX_INTERNED_BYTES:
            if len(_sets) >= MAX_INTERNED:
                _sets.clear()
            _sets[written] = known
    return known


def _text(entry: Object, name: str) -> str:
    text = entry.get(name)
    if text is None:
        return ""
    if type(text) is not str:
        raise InvalidEntries(f"{name} of a managed fields entry must be a string")
    return text


def encode(managers: Managers, *, in_order: bool = False) -> list[Object]:
    """managedFields, sorted. `in_order`: the keys of fieldsV1 too, where objects are written as they are."""
    entries = []
    for manager in sorted(managers, key=lambda one: _rank(one, managers[one])):
        owned = managers[manager]
        entry: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.version}
        if not manager.name:
            del entry["manager"]
        if owned.time:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = ordered(owned.fields) if in_order else owned.fields
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def _rank(manager: Manager, owned: Owned) -> tuple[str, str, str, str, str]:
    return manager.operation, owned.time, manager.name, owned.version, manager.subresource
