"""Updates as clients send them: what becomes of an object that exists when a file with its name is written.

`kubectl apply` changes what the file has, and removes what only the file before had; what admission and the server have added
stays: addresses, generated names, the volumes of service accounts (see `apply.patch`). The file before is the former
document of `--old`, or the one that was written last in this run. An exported object is none: what was applied last is in
its annotation, if it has one, and else nothing is known to be removed. An exported object that updates an exported one was
edited: its client would send it as a whole, by `kubectl replace`.
"""

from __future__ import annotations

from typing import Final

from noxu.api import codec
from noxu.apply.merging import ANNOTATION
from noxu.apply.patch import three_way
from noxu.commands.findings import Verb
from noxu.go.structs import Struct
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from noxu_storage.types import Key

_OF_THE_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class Configurations:
    """The configurations from which the objects of a store were written last."""

    def __init__(self) -> None:
        self._last: dict[Key, Object] = {}

    def add(self, resource: Resource, namespace: str, name: str, sent: Object) -> None:
        """An object was written from a document. A name that the server has generated is not looked at: "" """
        if name:
            self._last[key_of(resource, namespace, name)] = sent

    def last(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._last.get(key_of(resource, namespace, name), {})


class Update:
    """Makes the update of an object from the document that is sent (a `loading.Replacement`). `verb`: how it was made."""

    def __init__(self, last: Object) -> None:
        self.last = last
        self.verb: Verb = ""

    def __call__(self, sent: Object, live: Object, resource: Resource) -> Object:
        self.verb = verb(self.last, sent)
        last = self.last if self.verb == "replace" else applied(self.last)
        return updated(last, sent, live, None if resource.table is None else resource.table.struct)


def updated(last: Object, sent: Object, live: Object, kind: Struct | None) -> Object:
    """The live object after an update from what was applied last to what is sent, with the same resourceVersion."""
    found = three_way(_configuration(last), _configuration(sent), live, kind)
    return {**found, "metadata": {**found["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}


def verb(last: Object, sent: Object) -> Verb:
    return "replace" if is_exported(last) and is_exported(sent) else "apply"


def is_exported(value: Object) -> bool:
    """Whether an object was read from a server."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("uid"), str) and metadata["uid"] != ""


def applied(last: Object) -> Object:
    """What was applied last to the object that a document is, or that it is exported from."""
    if not is_exported(last):
        return last
    annotations = last["metadata"].get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return {}
    try:
        found = codec.decode_json(text.encode()).value
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("metadata", {}), dict) else {}


def _configuration(value: Object) -> Object:
    """The object without what only servers set."""
    metadata: Json = value.get("metadata")
    if not isinstance(metadata, dict):
        return value
    return {**value, "metadata": {name: item for name, item in metadata.items() if name not in _OF_THE_SERVER}}
