"""Older versions of built-in kinds by name, as kubectl spells it: `PodDisruptionBudget.v1beta1.policy`.

Programs that are older than this server ask for versions that Kubernetes has no more. `noxu serve --kinds` serves them with the
fields of the built-in version, see registry/further_versions.py: such a document is made of the name here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import orjson

from noxu.features import meant
from noxu.kinds import scheme
from noxu.values import Object

_NAME: Final = re.compile(r"([A-Z][A-Za-z]*)\.(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\.([a-z0-9.-]+)")
_MISSED: Final = re.compile(r'no matches for kind \\?"([A-Za-z]+)\\?" in version \\?"([a-z0-9.-]+)/(v[a-z0-9]+)\\?"')
"""How client-go says it, also within a line of JSON."""


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def document(name: str) -> Object:
    """The OpenAPI document of a name. Raises ValueError if there is no such built-in kind in another version."""
    match = _NAME.fullmatch(name)
    assert match is not None
    kind, version, group = match.groups()
    built_in = {(each.group, each.kind): each for each in scheme.served()}
    found = built_in.get((group, kind))
    if found is None:
        like = meant(name, [f"{each.kind}.{version}.{each.group}" for each in built_in.values()])
        raise ValueError(f"{name} is no version of a built-in kind{like}; a document of OpenAPI describes others")
    if found.version == version:
        raise ValueError(f"{name} is built in: only older versions are named")
    namespace = "namespaces/{namespace}/" if found.namespaced else ""
    path = f"/apis/{group}/{version}/{namespace}{found.plural}"
    of_kind = {"group": group, "version": version, "kind": kind}
    listed = {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": of_kind}
    status: Object = (
        {f"{path}/{{name}}/status": {}} if any(each.name == "status" for each in found.subresources) else {}
    )
    return {
        "openapi": "3.0.0",
        "info": {"title": name, "version": version},
        "paths": {path: {"get": listed}, **status},
        "components": {"schemas": {name: {"type": "object", "x-kubernetes-group-version-kind": [of_kind]}}},
    }


def advice(name: str) -> str:
    """How a kind is served that is not."""
    try:
        document(name)
    except ValueError:
        return "it is if the manifests have its CRD"
    return f"it is with `kinds: [{name}]`"


def write(name: str, directory: Path) -> Path:
    """Write the document of a name into a directory, and return its path."""
    path = directory / f"{name}.json"
    path.write_bytes(orjson.dumps(document(name)))
    return path


def missed(output: str) -> list[str]:
    """The names of kinds of which a program has said that they are not served."""
    found = (f"{kind}.{version}.{group}" for kind, group, version in _MISSED.findall(output))
    return list(dict.fromkeys(found))
