"""Where the schemas of a definition are in its stored bytes.

They are what remains of the spec between its other parts, which are encoded again: that is faster than to encode a schema and
to search for it, because schemas are nearly all of a definition.

    spec   {"group":…,"versions":[{"name":"v1",…{"openAPIV3Schema":{…}}},{"name":"v2",…{"openAPIV3Schema":{…}}}],…}
    parts  ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~     ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~     ~~~~~

A part between two schemas may occur inside of one, as a default or an example; then the schemas are not found.
"""

from __future__ import annotations

from typing import Final

from noxu.api import codec
from noxu.crd import types
from noxu.values import Object

_PLACE: Final[Object] = {"description": "the place of a schema"}
_ENCODED: Final = codec.encode(_PLACE, sort_keys=False)


def stored_schemas(stored: memoryview, spec: Object) -> dict[str, memoryview] | None:
    """The bytes of the schemas by version, of a spec whose stored bytes are its encoding; None if they are not found.

    None, too, if the schemas are served in another form than they have.
    """
    if spec.get("preserveUnknownFields"):
        return None
    names = [version["name"] for version in spec["versions"] if _has_schema(version)]
    without = {**spec, "versions": [_without_schema(version) for version in spec["versions"]]}
    first, *others = codec.encode(types.write(types.SPEC, without), sort_keys=False).split(_ENCODED)
    body = bytes(stored)
    if len(others) != len(names) or not body.startswith(first):
        return None
    found: dict[str, memoryview] = {}
    at = len(first)
    for n, name in enumerate(names):
        part = others[n]
        is_last = n == len(names) - 1
        end = len(body) - len(part) if is_last else body.find(part, at)
        if end < at or not body.startswith(part, end) or (not is_last and body.find(part, end + 1) >= 0):
            return None
        found[name] = stored[at:end]
        at = end + len(part)
    return found


def _has_schema(version: Object) -> bool:
    return (version.get("schema") or {}).get("openAPIV3Schema") is not None


def _without_schema(version: Object) -> Object:
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": _PLACE}} if _has_schema(version) else version
