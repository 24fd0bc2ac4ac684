"""metadata.managedFields: which manager owns which fields, in which version, since when; and these fields in an object.

An entry is identified by manager, operation, subresource and, for updates only, apiVersion: a manager that applies is the
same at every version. Entries are sorted by operation, time (in whole seconds, none first), manager, apiVersion and
subresource. (apimachinery's managedfields/internal/managedfields.go.)

Sets of fields recur: objects of a kind have the same owners, again and again. Equal JSON is read as one dict, because copies
would take more memory. When it recurs, its JSON is kept, too, so that it is not encoded again for each object. Only canonical
sets are kept: those that their own JSON is read as. Sets are immutable by convention (see `fieldset`).

The fields of a set in an object: where they are, and the part of the object that they are.

A path that leads to no field, because the object has changed since, has no value. Nothing recurses: clients choose the depth
of sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import orjson

from noxu.api import codec
from noxu.apply.fieldset import SELF, Element, FieldSet, MalformedFields, Path, of, ordered, parse
from noxu.go.text import compact_json, quote
from noxu.go.time import parse_time
from noxu.values import Json, Object, equal

Operation = Literal["Apply", "Update"]

_SYSTEM_FIELDS: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
NEVER_OWNED: Final = of(
    (SELF,), ("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SYSTEM_FIELDS)
)


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


def entries_of(value: Object | None) -> Json:
    """The managedFields of an object, None if it has none."""
    metadata = (value or {}).get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def with_entries(value: Object, entries: Json) -> Object:
    """The object with these managedFields, without the key if there are none."""
    metadata = value.get("metadata")
    if not entries and not (isinstance(metadata, dict) and "managedFields" in metadata):
        return value
    metadata = dict(metadata or {})
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries
    return {**value, "metadata": metadata}


def decode(entries: Json, recurring: RecurringSets | None = None) -> Managers:
    """managedFields as a dict, with the sets of a resource that recur. Raises InvalidEntries if one entry cannot be decoded."""
    managers: Managers = {}
    if entries is None:
        return managers
    if type(entries) is not list:
        raise InvalidEntries("managedFields must be a list")
    for index, entry in enumerate(entries):
        if type(entry) is not dict:
            raise InvalidEntries(f"managed fields entry {index} must be an object")
        manager, owned = _decode_entry(entry, index, recurring)
        managers[manager] = owned
    return managers


def _decode_entry(entry: Object, index: int, recurring: RecurringSets | None) -> tuple[Manager, Owned]:
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
        content = entry.get("fieldsV1")
        fields = parse(content) if recurring is None else recurring.read(content)
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


def _text(entry: Object, name: str) -> str:
    text = entry.get(name)
    if text is None:
        return ""
    if type(text) is not str:
        raise InvalidEntries(f"{name} of a managed fields entry must be a string")
    return text


def encode(managers: Managers, recurring: RecurringSets | None = None, *, in_order: bool = False) -> list[Object]:
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
        if in_order:
            entry["fieldsV1"] = ordered(owned.fields)
        else:
            entry["fieldsV1"] = owned.fields if recurring is None else recurring.written(owned.fields)
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return entries


def _rank(manager: Manager, owned: Owned) -> tuple[str, str, str, str, str]:
    return manager.operation, owned.time, manager.name, owned.version, manager.subresource


# -- sets that recur --------------------------------------------------------------------------------------------------


MAX_KEPT: Final = 256
MAX_KEPT_BYTES: Final = 8 * 1024
"""The number of sets that are kept of one resource, and the length of their JSON."""


class RecurringSets:
    """The sets of one resource, in all its versions. Threads may use it at the same time: at worst a set is not kept."""

    __slots__ = ("_sets", "_texts")

    def __init__(self) -> None:
        self._sets: dict[bytes, FieldSet] = {}
        """By their JSON, with its keys in any order."""
        self._texts: dict[int, tuple[FieldSet, bytes]] = {}
        """The JSON, with sorted keys, of those that have recurred; by the set's id, which the set itself keeps in use."""

    def read(self, fields: Json) -> FieldSet:
        """fieldsV1 as a set, the same dict for equal JSON of canonical sets. Raises MalformedFields."""
        recurring = self._known(fields)
        return parse(fields) if recurring is None else recurring

    def written(self, fields: FieldSet) -> FieldSet:
        """The same for a set that a write has made. If it is not canonical (`v:-0`), it is read as another one (`v:0`)."""
        recurring = self._known(fields)
        return fields if recurring is None else recurring

    def _known(self, fields: Json) -> FieldSet | None:
        """The set with the JSON of `fields`, which is kept as that set if it is new. None if it is not kept."""
        if self.json_of(fields) is not None:
            return fields  # type: ignore[no-any-return]
        try:
            written = orjson.dumps(fields)
        except TypeError:  # too deep
            return None
        recurring = self._sets.get(written)
        if recurring is None:
            if len(written) > MAX_KEPT_BYTES or not _is_canonical(fields):
                return None
            if len(self._sets) >= MAX_KEPT:
                self._sets.clear()
                self._texts.clear()
            recurring = self._sets[written] = fields  # from now on many objects share this dict
        elif id(recurring) not in self._texts:
            self._texts[id(recurring)] = recurring, codec.encode(recurring, sort_keys=True)
        return recurring

    def json_of(self, fields: Json) -> bytes | None:
        """The JSON of fieldsV1 with sorted keys, as `codec.encode` writes it; None if it is not known."""
        entry = self._texts.get(id(fields))
        return entry[1] if entry is not None and entry[0] is fields else None

    def set_of(self, text: bytes) -> FieldSet | None:
        """The set with that JSON, if its JSON is known; else None."""
        recurring = self._sets.get(text)
        return recurring if recurring is not None and self.json_of(recurring) == text else None

    def kept(self) -> dict[bytes, FieldSet]:
        """The sets that are kept, by the JSON that each is read from and, unless it was changed in place, is."""
        return dict(self._sets)


def _is_canonical(fields: FieldSet) -> bool:
    try:
        return parse(fields) is fields
    except MalformedFields:
        return False


# -- owned fields -----------------------------------------------------------------------------------------------------


def leaves(fields: FieldSet) -> Iterator[Path]:
    """The paths of a set below which it has no others."""
    todo: list[tuple[Path, FieldSet]] = [((), fields)]
    while todo:
        path, node = todo.pop()
        below = [(element, child) for element, child in node.items() if element != SELF]
        if path and not below:
            yield path
        todo += [((*path, element), child) for element, child in reversed(below)]


def value_at(value: Json, path: Path) -> list[Json]:
    """The value at a path, alone in a list; an empty list if there is none."""
    for element in path:
        values = _step(value, element)
        if not values:
            return []
        value = values[0]
    return [value]


def owned_part(value: Object, fields: FieldSet) -> Object:
    """The part of an object that a set has. Of lists it has all items with their keys, so that a merge finds them.

    {a: 1, b: {c: 2, d: 3}}, .b.c    →    {b: {c: 2}}
    """
    top: Object = {}
    todo: list[tuple[Any, Any, FieldSet]] = [(value, top, fields)]
    while todo:
        source, target, node = todo.pop()
        for element, child in node.items():
            name = element[2:]
            if not element.startswith("f:") or name not in source:
                continue
            inner = source[name]
            if isinstance(inner, dict) and any(step.startswith("f:") for step in child):
                target[name] = {}
                todo.append((inner, target[name], child))
            else:
                target[name] = inner
    return top


def _step(value: Json, element: Element) -> list[Json]:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return [value[rest]] if isinstance(value, dict) and rest in value else []
    if not isinstance(value, list):
        return []
    if kind == "i":
        return value[int(rest) : int(rest) + 1]
    wanted = orjson.loads(rest)
    if kind == "v":
        return [item for item in value if equal(item, wanted)][:1]
    return [
        item
        for item in value
        if isinstance(item, dict) and all(name in item and equal(item[name], scalar) for name, scalar in wanted.items())
    ][:1]
