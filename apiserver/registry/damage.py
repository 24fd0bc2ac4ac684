"""Stored objects that can no longer be read, because their bytes are not those that were stored.

Only they fail: others are read and written as ever. A list that would have to show one fails, for leaving it out would
tell clients that it is gone. What is damaged can be deleted, by clients who say that they mean it
(`ignoreStoreReadErrorWithClusterBreakingPotential`); as recorded from the reference, whose feature gate for that is off,
the option says nothing about objects that can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apiserver.api import errors
from apiserver.api.errors import ApiError
from apiserver.registry.resource import Resource
from storage.types import Key, Revision

MOST_TOLD: Final = 100  # upstream's maximum of errors of one list


def storage_key(resource: Resource, key: Key) -> str:
    """Where the reference keeps an object in etcd."""
    collection = (
        f"apiextensions.kubernetes.io/{resource.group}/{resource.plural}" if resource.group else resource.plural
    )
    return f"/registry/{collection}/{key.partition}{key.name}"


def storage_error(kind: str, code: int, resource: Resource, key: Key, why: str) -> str:
    """The storage layer's words, which upstream passes on."""
    where = storage_key(resource, key)
    return f"StorageError: {kind}, Code: {code}, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def unreadable(resource: Resource, key: Key, revision: Revision) -> ApiError:
    """What reading or writing a damaged object is answered with."""
    return errors.internal_error(_told(resource, key, revision))


def unlistable(resource: Resource, damaged: Mapping[Key, Revision]) -> ApiError:
    """What a list is answered with that would have to show damaged objects."""
    told = {key: _told(resource, key, revision) for key, revision in sorted(damaged.items())[:MOST_TOLD]}
    more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
    message = f"failed to read one or more {resource.what} from the storage: {next(iter(told.values()))}{more}"
    causes = [
        {"reason": "UnexpectedServerResponse", "message": text, "field": storage_key(resource, key)}
        for key, text in told.items()
    ]
    details = {"name": "list", "group": resource.group, "kind": resource.plural, "causes": causes}
    return ApiError(500, message, "StorageReadError", {name: value for name, value in details.items() if value})


def _told(resource: Resource, key: Key, revision: Revision) -> str:
    why = (
        f"object not decodable revision={revision}: its bytes do not match their checksum; all damage is listed by "
        "noxu check. Restore the data, or delete the object with ignoreStoreReadErrorWithClusterBreakingPotential=true"
    )
    return storage_error("corrupt object", 7, resource, key, why)
