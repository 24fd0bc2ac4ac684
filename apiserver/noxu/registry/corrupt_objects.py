"""Errors for stored objects that cannot be read because their bytes do not match their checksum.

All other objects are read and written as usual. A list that contains a corrupt object fails, because a list without it
would mean that it does not exist. A corrupt object can be deleted with the option
`ignoreStoreReadErrorWithClusterBreakingPotential`. For readable objects the option has no effect, as in the recordings of
the reference, whose feature gate for it is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.registry.resource import BUILT_IN, Resource
from noxu_storage.types import Key, Revision

MAX_ERRORS: Final = 100  # upstream's maximum of errors of one list


BUILT_IN_PATHS: Final = {
    "/replicationcontrollers": "controllers",
    "/endpoints": "services/endpoints",
    "/nodes": "minions",
    "/services": "services/specs",
    "networking.k8s.io/ingresses": "ingress",
}
"""Upstream's SpecialDefaultResourcePrefixes, by collection. The other built-in resources have their name."""


def storage_key(resource: Resource, key: Key, *, dry_run: bool = False) -> str:
    """The key of an object in etcd, for error messages. A dry run does not know the prefix of all keys."""
    built_in = resource.type is BUILT_IN
    name = (
        BUILT_IN_PATHS.get(resource.collection, resource.plural) if built_in else f"{resource.group}/{resource.plural}"
    )
    collection, prefix = f"/{name}", "/registry" if built_in else "/registry/apiextensions.kubernetes.io"
    return f"{'' if dry_run else prefix}{collection}/{key.partition}{key.name}"


def storage_error(kind: str, code: int, resource: Resource, key: Key, why: str, *, dry_run: bool = False) -> str:
    """The message of an error of the storage layer, which upstream passes on."""
    where = storage_key(resource, key, dry_run=dry_run)
    return f"StorageError: {kind}, Code: {code}, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def unreadable(resource: Resource, key: Key, revision: Revision) -> ApiError:
    """The error for a request that reads or writes a corrupt object."""
    return errors.internal_error(_text(resource, key, revision))


def unlistable(resource: Resource, corrupt: Mapping[Key, Revision]) -> ApiError:
    """The error for a list that contains corrupt objects."""
    texts = {key: _text(resource, key, revision) for key, revision in sorted(corrupt.items())[:MAX_ERRORS]}
    more = f" (and {len(corrupt) - 1} more)" if len(corrupt) > 1 else ""
    message = (
        f"failed to read one or more {resource.group_resource} from the storage: {next(iter(texts.values()))}{more}"
    )
    causes = [
        {"reason": "UnexpectedServerResponse", "message": text, "field": storage_key(resource, key)}
        for key, text in texts.items()
    ]
    details = {"name": "list", "group": resource.group, "kind": resource.plural, "causes": causes}
    return ApiError(500, message, "StorageReadError", {name: value for name, value in details.items() if value})


def _text(resource: Resource, key: Key, revision: Revision) -> str:
    why = (
        f"object not decodable revision={revision}: its bytes do not match their checksum; all corrupt values are "
        "listed by noxu check. Restore the data, or delete the object with ignoreStoreReadErrorWithClusterBreakingPotential=true"
    )
    return storage_error("corrupt object", 7, resource, key, why)
