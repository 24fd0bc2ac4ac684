"""`noxu skeleton`: print the skeletons of schemas, as the provisional pruning KEP defines them.

A skeleton is a schema without value validations. It is printed for each schema of each CRD, or for a bare OpenAPI schema.
Where a value would be a struct and a map at the same time, it is ambiguous what to prune: these violations of the KEP's
Restriction 1 are printed to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from noxu.apiserver.api import codec
from noxu.apiserver.api.field import Path as FieldPath
from noxu.apiserver.api.field import child
from noxu.apiserver.crd import types, v1beta1
from noxu.apiserver.go.structs import decode
from noxu.apiserver.manifests import STDIN, Part, flatten, is_crd, is_list, split
from noxu.apiserver.schema.skeleton import restriction_1_violations, skeleton
from noxu.apiserver.values import Json, Object

RESTRICTION_1: Final = "Forbidden: properties and additionalProperties or patternProperties in one skeleton"
_VERSION_SCHEMA: Final = "schema.openAPIV3Schema"
_SHARED_SCHEMA: Final = "spec.validation.openAPIV3Schema"


class InputError(Exception):
    """The input contains no schema, or cannot be read; the message says why."""


class Schema(NamedTuple):
    """A schema, the CRD and version that it belongs to, and its path in the CRD. All of them are "" for a bare schema."""

    value: Object
    crd: str = ""
    version: str = ""
    path: FieldPath = ""

    @property
    def title(self) -> str:
        return f"{self.crd} {self.version}".strip()


def run(options: argparse.Namespace) -> int:
    """Exit status 0: printed; 1: Restriction 1 is violated, or the input cannot be read."""
    printed: list[Json] = []
    valid = True
    try:
        for schema in _schemas(options.file):
            violations = restriction_1_violations(schema.value)
            for path in violations:
                where = f"{options.file}: {schema.title}".removesuffix(": ")
                print(f"{where}: {_join(schema.path, path) or 'the root'}: {RESTRICTION_1}", file=sys.stderr)
            valid = valid and not violations
            printed.append(_as_json(schema, violations) if options.output == "json" else _as_yaml(schema))
    except InputError as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 1
    if options.output == "json":
        print(codec.pretty(printed, sort_keys=False).decode())
    else:
        print("---\n".join(printed), end="")
    return 0 if valid else 1


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
    """Raises InputError."""
    try:
        body = sys.stdin.buffer.read() if str(path) == STDIN else path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error)) from None
    found = [schema for part in split(body) if part.is_document for schema in _schemas_of_part(part)]
    if not found:
        raise InputError("no schema found")
    yield from found


def _schemas_of_part(part: Part) -> Iterator[Schema]:
    if part.decoded is None:
        raise InputError(part.error)
    value = part.decoded.value
    if value is None:
        return
    if is_crd(value) or is_list(value):
        for document in flatten(part.decoded, ""):
            yield from _schemas_of_crd(document.value) if is_crd(document.value) else ()
        return
    if not isinstance(value, dict):
        raise InputError("a schema is a JSON object")
    if "apiVersion" in value and "kind" in value:
        return  # an object of another kind
    decoded = decode(types.SCHEMA, value)
    if decoded.error:
        raise InputError(decoded.error)
    yield Schema(decoded.value)


def _schemas_of_crd(crd: Object) -> Iterator[Schema]:
    decoded = v1beta1.decode(crd) if v1beta1.is_v1beta1(crd) else types.decode(crd)
    if decoded.error:
        raise InputError(decoded.error)
    spec, name = decoded.value["spec"], decoded.value["metadata"].get("name", "")
    if (schema := (spec.get("validation") or {}).get("openAPIV3Schema")) is not None:
        yield Schema(schema, name, "", _SHARED_SCHEMA)
    for n, version in enumerate(spec.get("versions") or []):
        if (schema := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
            yield Schema(schema, name, version["name"], f"spec.versions[{n}].{_VERSION_SCHEMA}")
