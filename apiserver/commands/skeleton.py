"""`noxu skeleton`: what is left of a schema without value validations, as the provisional pruning KEP defines it.

It is printed for each schema of each CRD, or for a bare OpenAPI schema. Where a value would be a struct and a map at
once nobody could tell what to prune: these violations of the KEP's Restriction 1 are told on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from apiserver.api import codec
from apiserver.api.field import Path as FieldPath
from apiserver.api.field import child
from apiserver.api.structs import decode
from apiserver.api.types import Json, Object
from apiserver.crd import types, v1beta1
from apiserver.manifests import STDIN, Part, flatten, is_crd, is_list, split
from apiserver.schema.skeleton import restriction_1_violations, skeleton

RESTRICTION_1: Final = "Forbidden: properties and additionalProperties or patternProperties in one skeleton"
_IN_VERSION: Final = "schema.openAPIV3Schema"
_FOR_ALL: Final = "spec.validation.openAPIV3Schema"


class Refused(Exception):
    """There is nothing to make a skeleton of; the message says why."""


class Schema(NamedTuple):
    """A schema and where it stands: in which version of which CRD, and at which path. A bare schema is at ""."""

    value: Object
    crd: str = ""
    version: str = ""
    path: FieldPath = ""

    @property
    def title(self) -> str:
        return f"{self.crd} {self.version}".strip()


def run(given: argparse.Namespace) -> int:
    """0: printed; 1: there are violations of Restriction 1, or something cannot be read."""
    printed: list[Json] = []
    fine = True
    try:
        for schema in _schemas(given.file):
            violations = restriction_1_violations(schema.value)
            for path in violations:
                where = f"{given.file}: {schema.title}".removesuffix(": ")
                print(f"{where}: {_join(schema.path, path) or 'the root'}: {RESTRICTION_1}", file=sys.stderr)
            fine = fine and not violations
            printed.append(_as_json(schema, violations) if given.output == "json" else _as_yaml(schema))
    except Refused as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    if given.output == "json":
        print(codec.pretty(printed, sort_keys=False).decode())
    else:
        print("---\n".join(printed), end="")
    return 0 if fine else 1


def _as_yaml(schema: Schema) -> str:
    title = f"# {schema.title}\n" if schema.title else ""
    return title + codec.to_yaml(skeleton(schema.value)).decode()


def _as_json(schema: Schema, violations: list[FieldPath]) -> Object:
    return {
        "crd": schema.crd,
        "version": schema.version,
        "skeleton": skeleton(schema.value),
        "violations": [_join(schema.path, path) for path in violations],
    }


def _join(path: FieldPath, below: FieldPath) -> FieldPath:
    return child(path, below) if path and below else path or below


def _schemas(path: Path) -> Iterator[Schema]:
    """Raises Refused."""
    try:
        body = sys.stdin.buffer.read() if str(path) == STDIN else path.read_bytes()
    except OSError as error:
        raise Refused(error.strerror or str(error)) from None
    found = [schema for part in split(body) if part.is_document for schema in _in_part(part)]
    if not found:
        raise Refused("no schema in there")
    yield from found


def _in_part(part: Part) -> Iterator[Schema]:
    if part.decoded is None:
        raise Refused(part.error)
    value = part.decoded.value
    if value is None:
        return
    if is_crd(value) or is_list(value):
        for document in flatten(part.decoded, ""):
            yield from _of_crd(document.value) if is_crd(document.value) else ()
        return
    if not isinstance(value, dict):
        raise Refused("a schema is a JSON object")
    if "apiVersion" in value and "kind" in value:
        return  # an object of another kind
    decoded = decode(types.SCHEMA, value)
    if decoded.error:
        raise Refused(decoded.error)
    yield Schema(decoded.value)


def _of_crd(crd: Object) -> Iterator[Schema]:
    decoded = v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)
    if decoded.error:
        raise Refused(decoded.error)
    spec, name = decoded.value["spec"], decoded.value["metadata"].get("name", "")
    if (schema := (spec.get("validation") or {}).get("openAPIV3Schema")) is not None:
        yield Schema(schema, name, "", _FOR_ALL)
    for n, version in enumerate(spec.get("versions") or []):
        if (schema := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
            yield Schema(schema, name, version["name"], f"spec.versions[{n}].{_IN_VERSION}")
