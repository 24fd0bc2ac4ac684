"""A resource as field ownership sees it, and its objects at every version.

Fields are owned at the version at which they were written, so objects are compared at that version. The upstream server
knows the versions in a CRD's spec; with an entry for another version it gives up (see `manager`). Built-in kinds drop
such entries.

`to_scale` and `to_parent` translate the owners of a custom resource's replicas in its /scale subresource: in a Scale, a
manager owns `.spec.replicas` of an autoscaling/v1 Scale; in the custom resource that is the field at specReplicasPath
(apimachinery's managedfields/scalehandler.go). As there, an updater that owns the replicas in the custom resource is a
different manager in the Scale, because the apiVersion is part of its identity: any write to /scale removes the field
from its entry and, if it is still the owner, puts it into a new one without a time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from noxu.apply.comparison import Comparison, compare
from noxu.apply.fieldset import (
    EMPTY,
    FieldSet,
    Path,
    contains,
    difference,
    field,
    is_member,
    matching,
    of,
    recursive_difference,
)
from noxu.apply.managed_fields import (
    NEVER_OWNED,
    Manager,
    Managers,
    Owned,
    RecurringSets,
    decode,
    encode,
    entries_of,
    with_entries,
)
from noxu.apply.typed import Unsure, accept, join_errors, owned_fields, to_set, validate
from noxu.apply.types import SCALE, Type
from noxu.values import Json, Object

UNKNOWN: Final = "unknown"
"""The manager of a write that names none."""


class MissingVersion(Exception):
    """Raised by `Tracker.convert` for a version that does not exist: the entries of that version are dropped."""


class Failed(Exception):
    """Ownership cannot be determined; the message is upstream's."""


def relabel(value: Object, version: str) -> Object:
    """The conversion of custom resources without a webhook: only the apiVersion changes."""
    return {**value, "apiVersion": version}


class _WholeFields(NamedTuple):
    """Fields of the object that a write does not change, with all that is below them."""

    ignored: frozenset[str]
    is_all: bool
    """The write can change everything else."""
    owned: Callable[[Object], FieldSet]
    """What the creator of an object that is certainly of its type owns besides."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tracker:
    """One resource (or subresource) at the version of the request.

    `types` and `resets` are by apiVersion, for every version; `resets` are the fields that writes through this endpoint
    do not change. `only`, if it is set, is the pattern of those that they can change instead. `convert` gives an object
    at another version; it raises MissingVersion for one that does not exist, and ApiError if it fails. `empty` is the
    object that a create starts from, the zero value of built-in kinds. Objects of `custom` resources are written with
    sorted keys. `implied`: whatever satisfies the schema is certainly of the type, apart from metadata. `written` gives
    an object without the empty fields that Go leaves out, which have no owner; None: custom resources keep them.
    `created` does so for an object that is created, of which whole atomic lists are owned; None: `written`. `recurring`
    are the sets of fields that objects of the resource share.
    """

    version: str
    kind: str
    types: Mapping[str, Type]
    convert: Callable[[Object, str], Object] = relabel
    subresource: str = ""
    resets: Mapping[str, FieldSet] = dataclasses.field(default_factory=dict)
    only: FieldSet | None = None
    empty: Object = dataclasses.field(default_factory=dict)
    custom: bool = True
    implied: bool = False
    written: Callable[[Object], Object] | None = None
    created: Callable[[Object], Object] | None = None
    recurring: RecurringSets = dataclasses.field(default_factory=RecurringSets, repr=False)
    _known_whole: dict[str, _WholeFields] = dataclasses.field(init=False, default_factory=dict, repr=False)

    @property
    def type(self) -> Type:
        return self.types[self.version]

    def changeable(self, fields: FieldSet, version: str) -> FieldSet:
        """Those of the fields that writes through this endpoint can change."""
        if self.only is not None:
            return matching(fields, self.only)
        return recursive_difference(fields, self.resets.get(version, EMPTY))

    def with_creator(self, new: Object, manager: str, now: str, *, is_valid: bool) -> Object | None:
        """The new object with managedFields: its manager owns all that this write sets. None if that is not certain.

        `is_valid`: the object satisfies the schema (see `manager.Valid`). The thorough way is `manager.update`.
        """
        if not self.custom or entries_of(new) is not None:
            return None
        managers = self.creator(new, manager or UNKNOWN, now, is_valid=is_valid)
        return None if managers is None else with_entries(new, encode(managers, self.recurring))

    def creator(self, new: Object, name: str, now: str, *, is_valid: bool = False) -> Managers | None:
        """The manager of a new object that has none, as its only one. None if the object may not be of its type.

        What is certainly of its type is not checked, and fields that its manager does not own are not looked at.
        """
        whole = self._whole(self.version)
        try:
            if is_valid and self.implied:
                fields = whole.owned(new)
                if not whole.is_all:
                    fields = self.changeable(fields, self.version)
            else:
                fields = difference(self.changeable(accept(new, self.type), self.version), NEVER_OWNED)
        except Unsure:
            return None
        if not fields:
            return {}
        return {Manager(name, "Update", self.version, self.subresource): Owned(fields, self.version, now)}

    def compared(self, old: Object, new: Object, version: str, *, exact: bool = False) -> Comparison:
        """The changes of a write through this endpoint, at a version. `exact`: as in `compare`.

        Whole fields of the object that it does not change, such as its status, are not compared.
        """
        whole = self._whole(version)
        change = compare(_without(old, whole.ignored), _without(new, whole.ignored), self.types[version], exact=exact)
        return change if whole.is_all else change.filtered(lambda fields: self.changeable(fields, version))

    def claimed(self, config: Object) -> FieldSet:
        """The fields that an applied configuration claims through this endpoint. It is of the type."""
        whole = self._whole(self.version)
        fields = to_set(_without(config, whole.ignored), self.type)
        return fields if whole.is_all else self.changeable(fields, self.version)

    def _whole(self, version: str) -> _WholeFields:
        """What writes through this endpoint do not change, as far as that is whole fields of the object."""
        whole = self._known_whole.get(version)
        if whole is None:
            whole = self._known_whole[version] = self._found_whole(version)
        return whole

    def _found_whole(self, version: str) -> _WholeFields:
        kind, resets = self.types[version], self.resets.get(version, EMPTY)
        if self.only is not None or kind.map is None or kind.map.atomic:
            names, is_all = frozenset[str](), False
        else:
            names = frozenset(_whole_fields(resets))
            is_all = len(names) == len(resets)
        return _WholeFields(names, is_all, owned_fields(kind, NEVER_OWNED, names))

    @property
    def blank(self) -> Object:
        """The object that a create starts from, with apiVersion and kind."""
        return {"apiVersion": self.version, "kind": self.kind} | self.empty


def _whole_fields(reset: FieldSet) -> list[str]:
    """The names of fields of the object that are reset with everything below them: `status` for {f:status: {}}."""
    return [element[2:] for element, node in reset.items() if element[:2] == "f:" and is_member(node)]


def _without(value: Object, names: frozenset[str]) -> Object:
    """The object without some of its fields; the same object if it has none of them."""
    if names.isdisjoint(value):
        return value
    return {name: item for name, item in value.items() if name not in names}


@dataclasses.dataclass(slots=True, eq=False)
class ObjectVersions:
    """The objects of one write at all versions, each converted and checked once."""

    tracker: Tracker
    _done: dict[tuple[int, str], tuple[Object, Object]] = dataclasses.field(init=False, default_factory=dict)
    """With the source, which keeps its id in use."""

    def at(self, value: Object, version: str) -> Object:
        """The object at that version. Raises MissingVersion, ApiError or Failed."""
        if value.get("apiVersion") == version:
            return value
        key = (id(value), version)
        if key not in self._done:
            self._done[key] = value, self._convert(value, version)
        return self._done[key][1]

    def _convert(self, value: Object, version: str) -> Object:
        if version not in self.tracker.types:
            if not self.tracker.custom:
                raise MissingVersion(version)
            raise Failed(_not_convertible(value, version))
        converted = self.tracker.convert(value, version)
        if wrong := validate(converted, self.tracker.types[version]):
            raise Failed(join_errors(wrong))
        return converted


def _not_convertible(value: Object, version: str) -> str:
    group, _, number = str(value.get("apiVersion", "")).rpartition("/")
    if version.rpartition("/")[0] == group:
        return f"request to convert CR to an invalid group/version: {version}"
    kind = f"{group}/{number}, Kind={value.get('kind', '')}"
    return f'{kind} is unstructured and is not suitable for converting to "{version}"'


def named(value: Json) -> str:
    """An object in messages: `default/w1; example.com/v1, Kind=Widget`."""
    return f"{_meta(value, 'namespace')}/{_meta(value, 'name')}; {group_version_kind(value)}"


def _meta(value: Json, name: str) -> str:
    metadata = value.get("metadata")
    text = metadata.get(name) if isinstance(metadata, dict) else ""
    return text if isinstance(text, str) else ""


def group_version_kind(value: Json) -> str:
    """Go's GroupVersionKind: `example.com/v1, Kind=Widget`; `/, Kind=` for a malformed apiVersion."""
    version, kind = value.get("apiVersion"), value.get("kind")
    version = version if isinstance(version, str) and version != "/" else ""
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else '/' + version}, Kind={kind if isinstance(kind, str) else ''}"


# -- scale ------------------------------------------------------------------------------------------------------------


VERSION: Final = "autoscaling/v1"
REPLICAS: Final[Path] = ("f:spec", "f:replicas")

TRACKER: Final = Tracker(VERSION, "Scale", {VERSION: SCALE}, subresource="scale")
"""For `update` and `apply` of a Scale."""


def path_of(json_path: str) -> Path:
    """A specReplicasPath, `.spec.replicas`, as a path of elements."""
    return tuple(map(field, json_path.removeprefix(".").split(".")))


def to_scale(entries: Json, replicas: Mapping[str, Path | None]) -> list[Object]:
    """The managedFields of a Scale. `replicas` are the paths by apiVersion, None at a version without /scale."""
    managers: Managers = {}
    for manager, owned in decode(entries).items():
        path = replicas.get(owned.version)
        if path and contains(owned.fields, path):
            managers[manager] = Owned(of(REPLICAS), VERSION, owned.time)
    return encode(managers)


def to_parent(
    entries: Json,
    scale_entries: Json,
    version: str,
    replicas: Mapping[str, Path | None],
    recurring: RecurringSets | None = None,
) -> list[Object]:
    """The managedFields of a custom resource, formerly `entries`, after its Scale was written at that apiVersion.

    `recurring` are the sets of fields that the custom resources share.
    """
    parents = decode(entries, recurring)
    scales = decode(scale_entries)
    managers: Managers = {}
    for manager, owned in parents.items():
        if owned.version not in replicas:
            continue  # the version does not exist any more
        path = replicas[owned.version]
        if not path or not contains(owned.fields, path):
            managers[manager] = owned
        elif manager in scales:
            managers[manager] = owned
            del scales[manager]
        elif fields := difference(owned.fields, of(path)):
            managers[manager] = Owned(fields, owned.version, owned.time)
    written = replicas[version]
    for manager, owned in scales.items():
        if written and contains(owned.fields, REPLICAS):
            before = parents.get(manager)
            managers[manager] = Owned(of(written), version, before.time if before else "")
    return encode(managers, recurring)
