"""metadata.managedFields: which manager owns which fields, in which version, since when.

An entry is identified by manager, operation, subresource and, for updates only, apiVersion: a manager that applies is the
same at every version. Entries are sorted by operation, time (in whole seconds, none first), manager, apiVersion and
subresource. (apimachinery's managedfields/internal/managedfields.go.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from noxu.apply.fieldset import FieldSet, MalformedFields, ordered, parse
from noxu.apply.recurring import recurring, recurring_set
from noxu.go.text import compact_json, quote
from noxu.go.time import parse_time
from noxu.values import Json, Object

Operation = Literal["Apply", "Update"]


class Manager(NamedTuple):
    """An owner of fields. `version` is an apiVersion, "" for the operation Apply."""

    name: str
    operation: Operation
    version: str = ""
    subresource: str = ""

    @property
    def identifier(self) -> str:
        """Upstream's identifier, by which conflicts are sorted: an entry with only these members, as JSON."""
        members = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.version,
            "subresource": self.subresource,
        }
        return compact_json({name: text for name, text in members.items() if text}, sort_keys=False)

    def __str__(self) -> str:
        """The manager in the messages of conflicts."""
        text = quote(self.name)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True, eq=False)
class Owned:
    """The fields of a manager. `time` is an RFC 3339 text in whole seconds, "" if there is none."""

    fields: FieldSet
    version: str
    time: str = ""


Managers: TypeAlias = dict[Manager, Owned]


class InvalidEntries(ValueError):
    """managedFields that cannot be decoded; the message is upstream's if clients can see it."""


_OPERATIONS: Final = frozenset({"Apply", "Update"})


def decode(entries: Json) -> Managers:
    """managedFields as a dict. Raises InvalidEntries if one entry cannot be decoded."""
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
        fields = recurring(entry.get("fieldsV1"), parse)
        if time and not (len(time) == len("2006-01-02T15:04:05Z") and time[-1] == "Z"):  # the form of decoded times
            time = parse_time(time)
    except MalformedFields as error:
        raise InvalidEntries(f"error decoding versioned set: error decoding set: {error}") from None
    except ValueError as error:
        raise InvalidEntries(str(error)) from None
    identity = version if operation == "Update" else ""
    return Manager(_text(entry, "manager"), operation, identity, _text(entry, "subresource")), Owned(
        fields, version, time
    )


def _is_canonical(fields: FieldSet) -> bool:
    try:
        return parse(fields) is fields
    except MalformedFields:
        return False


def _text(entry: Object, name: str) -> str:
    text = entry.get(name)
    if text is None:
        return ""
    if type(text) is not str:
        raise InvalidEntries(f"{name} of a managed fields entry must be a string")
    return text


def encode(managers: Managers, *, in_order: bool = False) -> list[Object]:
    """managedFields, sorted. `in_order` sorts the keys of fieldsV1, too, for objects that are not written with sorted keys."""
    entries = []
    ranked = sorted(managers, key=lambda manager: _rank(manager, managers[manager])) if len(managers) > 1 else managers
    for manager in ranked:
        owned = managers[manager]
        entry: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.version}
        if not manager.name:
            del entry["manager"]
        if owned.time:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = ordered(owned.fields) if in_order else recurring_set(owned.fields, _is_canonical)
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def _rank(manager: Manager, owned: Owned) -> tuple[str, str, str, str, str]:
    return manager.operation, owned.time, manager.name, owned.version, manager.subresource
