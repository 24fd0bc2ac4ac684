"""Objects that are stored as they are: without admission, and without the rules that they may be older than.

On a server such an object was written before its definition, or a policy, was what it is now. It gets what every stored
object has: a uid, the time of its creation, a generation, and its namespace. Defaults are filled in when it is read, as those
of all stored objects are.

    {"kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": -1}}    stored, though a size is at least 0
"""

from __future__ import annotations

from noxu.clock import rfc3339_now
from noxu.control_plane import ControlPlane
from noxu.kinds.kind import Context, prepare
from noxu.manifests import loading
from noxu.registry.offload import offload
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, key_of, new_entry
from noxu.values import Object, copy


async def store(plane: ControlPlane, value: Object, weight: int = 0) -> StoredObject | None:
    """Store an object of a kind that is served, with its name. Returns its entry; None if it has no such kind, or no name.

    Its namespace is created if it does not exist. `weight`: the size of the object in bytes, where a large one must not
    block the loop. Raises ApiError, storage.types.Conflict if the object exists, and
    ValueError, TypeError, AttributeError, KeyError for an object that has not the form of its kind.
    """
    resource, name = loading.resource_of(plane, value), loading.name_of(value)
    if resource is None or not name:
        return None
    namespace = loading.namespace_of(resource, value)
    await loading.ensure_namespace(plane, namespace)
    storage, environment = resource.versions.storage, plane.writer.environment
    value = await offload(weight, _as_stored, resource, value)
    metadata = value["metadata"]
    metadata["uid"] = environment.identifiers.new_uid()
    metadata["creationTimestamp"] = rfc3339_now(environment.clock)
    if resource.table is None:
        metadata.setdefault("generation", 1)
    else:
        prepare(resource.table, value, None, Context(now=metadata["creationTimestamp"]))
    if namespace:
        metadata["namespace"] = namespace
    key = key_of(resource, namespace, name)
    await environment.persistence.create(new_entry(key, storage, value, served_as_stored=False))
    return (await plane.reader.collection(resource)).entries.get(key)


def _as_stored(resource: Resource, value: Object) -> Object:
    """The object at the version that is stored."""
    decoded, _ = resource.codec.decode(resource, copy(value))  # decoding changes it in place
    storage = resource.versions.storage
    return decoded if storage is resource else storage.codec.convert(storage, decoded)
