"""The software bill of materials: CycloneDX 1.6 JSON about the pins, deterministic.

It has what the specification calls a component for each package: version, package URL, licence, and the hashes of all
its files, in a reference of type "distribution" (a component's own `hashes` are those of one file: the libraries of
JavaScript in the console's page are one file each). It has neither
a time nor a random serial number: the serial number is derived from the contents.

https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements.licences import licence
from requirements.pins import Pin
from requirements.vendored import LIBRARIES, component

# What markers are evaluated for: the environments that Noxu supports.
_ENVIRONMENTS: Final = tuple(
    {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": platform, "extra": ""}
    for version in ("3.11", "3.12", "3.13", "3.14")
    for platform in ("linux", "darwin", "win32")
)


def sbom(project: Mapping[str, Any], pins: Iterable[Pin], packages: Mapping[str, Distribution]) -> dict[str, Any]:
    """The document for a project (its table in pyproject.toml) whose pinned packages are all in `packages`."""
    pins = sorted(pins)
    references = {pin.name: _purl(pin.name, pin.version) for pin in pins}
    root = _purl(project["name"], project["version"])
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "pre-build"}],  # what will be installed, not what was found
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"], "acknowledgement": "declared"}],
                "purl": root,
            },
        },
        "components": [*(_component(pin, packages[pin.name]) for pin in pins), *map(component, LIBRARIES)],
        "dependencies": [
            {
                "ref": root,
                "dependsOn": [*(each.purl for each in LIBRARIES), *_required(_of_the_image(project), references)],
            },
            *(
                {"ref": references[pin.name], "dependsOn": _required(packages[pin.name].requires or (), references)}
                for pin in pins
            ),
            *({"ref": each.purl, "dependsOn": []} for each in LIBRARIES),
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{root}\n{json.dumps(document)}")
    return {"serialNumber": f"urn:uuid:{serial}", **document}


def _of_the_image(project: Mapping[str, Any]) -> list[str]:
    """The requirements of what the image installs: the project with the extra `etcd`."""
    return [*project["dependencies"], *project["optional-dependencies"]["etcd"]]


def _component(pin: Pin, package: Distribution) -> dict[str, Any]:
    expression, concluded, _ = licence(pin.name, package)
    purl = _purl(pin.name, pin.version)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "licenses": [{"expression": expression, "acknowledgement": "concluded" if concluded else "declared"}],
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{pin.name}/{pin.version}/#files",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in sorted(pin.hashes)],
            }
        ],
    }
    if pin.marker:
        component["properties"] = [{"name": "noxu:environment-marker", "value": pin.marker}]
    return component


def _required(requirements: Iterable[str], references: Mapping[str, str]) -> list[str]:
    """The references of what is required, without extras, in any supported environment."""
    found = set()
    for requirement in map(Requirement, requirements):
        if not requirement.marker or any(map(requirement.marker.evaluate, _ENVIRONMENTS)):
            found.add(references[canonicalize_name(requirement.name)])
    return sorted(found)


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"
