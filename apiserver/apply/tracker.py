"""What field ownership needs to know of a resource, and its objects at every version.

Fields are owned at the version at which they were written, so objects are compared there, too. The reference knows the
versions of a CRD's spec; an entry for another one makes it give up (see `manager`). Built-in kinds forget such entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from apiserver.api.types import Json, Object
from apiserver.apply.fieldset import FieldSet
from apiserver.apply.typed import told, validate
from apiserver.apply.types import Type


class MissingVersion(Exception):
    """Raised by `Tracker.convert` for a version that is not there: what is owned there is forgotten."""


class Failed(Exception):
    """Ownership cannot be worked out; the message is upstream's."""


def relabel(value: Object, version: str) -> Object:
    """The conversion of custom resources without a webhook: only the apiVersion changes."""
    return {**value, "apiVersion": version}


def as_it_is(value: Object) -> Object:
    """How custom resources are written."""
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Tracker:
    """One resource (or subresource) at the version that it is asked for.

    `types` and `resets` are by apiVersion, for every version there is; `resets` are the fields that writes through
    this endpoint do not change. `convert` gives an object at another version, or raises MissingVersion or, if it
    cannot, ApiError. `empty` is what a create starts from, for built-in kinds their zero. Objects of `custom` resources
    are written with sorted keys, others as they are; `written` gives an object without the empty fields that Go leaves
    out, for nobody owns them.
    """

    version: str
    kind: str
    types: Mapping[str, Type]
    convert: Callable[[Object, str], Object] = relabel
    subresource: str = ""
    resets: Mapping[str, FieldSet] = field(default_factory=dict)
    empty: Object = field(default_factory=dict)
    custom: bool = True
    written: Callable[[Object], Object] = as_it_is

    @property
    def type(self) -> Type:
        return self.types[self.version]

    @property
    def blank(self) -> Object:
        """What a create starts from, said to be what it will be."""
        return {"apiVersion": self.version, "kind": self.kind} | self.empty


class Conversions:
    """The objects of one write at all versions, each converted and checked once."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self._done: dict[tuple[int, str], tuple[Object, Object]] = {}  # the source too: it keeps its id

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
            raise Failed(told(wrong))
        return converted


def _not_convertible(value: Object, version: str) -> str:
    group, _, number = str(value.get("apiVersion", "")).rpartition("/")
    if version.rpartition("/")[0] == group:
        return f"request to convert CR to an invalid group/version: {version}"
    kind = f"{group}/{number}, Kind={value.get('kind', '')}"
    return f'{kind} is unstructured and is not suitable for converting to "{version}"'


def named(value: Json) -> str:
    """An object as messages name it: `default/w1; example.com/v1, Kind=Widget`."""
    return f"{_meta(value, 'namespace')}/{_meta(value, 'name')}; {group_version_kind(value)}"


def _meta(value: Json, name: str) -> str:
    metadata = value.get("metadata")
    text = metadata.get(name) if isinstance(metadata, dict) else ""
    return text if isinstance(text, str) else ""


def group_version_kind(value: Json) -> str:
    """Go's GroupVersionKind: `example.com/v1, Kind=Widget`; `/, Kind=` if the apiVersion makes no sense."""
    version, kind = value.get("apiVersion"), value.get("kind")
    version = version if isinstance(version, str) and version != "/" else ""
    if version.count("/") > 1:
        return "/, Kind="
    return f"{version if '/' in version else '/' + version}, Kind={kind if isinstance(kind, str) else ''}"
