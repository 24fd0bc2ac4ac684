"""The fields of built-in kinds by release, from upstream's golden objects: what the tests judge the data by.

    python -m conformance.released_fields --api DIR > tests/releases/data/fields.json

DIR is a git directory of k8s.io/api, with its tags. Upstream keeps one object of each kind in which every field is set, for
its tests of compatibility (`testdata/HEAD`); the types of Go, which the data is made from, have no part in it. For some
releases and each kind: how many fields the golden object has, those of the newest release that it does not have, and those
that the newest one does not have. Of fields within others only the outermost is listed, and of pods in templates none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from conformance.released_types import NEWEST_COMMIT, show
from noxu.go.structs import Field, List, Map, Struct, Type
from noxu.kinds import scheme
from noxu.kinds.kind import Kind
from noxu.releases import NEWEST, named

Json = Any
RELEASES: Final = {release: f"v0.{release}.0" for release in (29, 31, 33, 35)} | {NEWEST: NEWEST_COMMIT}
SKIPPED: Final = "template.spec."


def of_struct(type_: Type, path: str = "", within: tuple[Struct, ...] = ()) -> Iterator[str]:
    """The paths of all fields below a type; `within`: the structs around it, so that recursion ends."""
    if isinstance(type_, (List, Map)):
        yield from of_struct(type_.element, path, within)
    elif isinstance(type_, Struct) and type_ not in within:
        for name, field in type_.fields.items():
            inner = f"{path}.{name}".lstrip(".")
            if _counts(name, field, inner):
                yield inner
                yield from of_struct(field.type, inner, (*within, type_))


def _counts(name: str, field: Field | None, path: str) -> bool:
    """Metadata is the same in each release; a claim in a StatefulSet has apiVersion and kind, and its golden object not."""
    return name != "metadata" and SKIPPED not in path and (field is None or field.inline != "TypeMeta")


def of_object(value: Json, type_: Type | None, path: str = "") -> Iterator[str]:
    """The paths of all fields of an object. `type_` says which members of objects are keys of maps, if it is known."""
    if isinstance(type_, List) or isinstance(value, list):
        for item in value if isinstance(value, list) else ():
            yield from of_object(item, type_.element if isinstance(type_, List) else None, path)
    elif isinstance(type_, Map):
        for item in value.values():
            yield from of_object(item, type_.element, path)
    elif isinstance(value, dict) and (type_ is None or isinstance(type_, Struct)):
        for name, item in value.items():
            inner = f"{path}.{name}".lstrip(".")
            known = type_.fields.get(name) if type_ else None
            if _counts(name, known, inner):
                yield inner
                yield from of_object(item, known.type if known else None, inner)


def outermost(paths: set[str], others: set[str]) -> list[str]:
    """The paths that others do not have, without those within another one."""
    return sorted(path for path in paths - others if path.rpartition(".")[0] not in paths - others)


def golden(directory: Path, commit: str, kind: Kind) -> set[str]:
    """The paths of a golden object, none if the release does not have the kind."""
    text = show(directory, f"{commit}:testdata/HEAD/{kind.group or 'core'}.{kind.version}.{kind.kind}.json")
    return set(of_object(json.loads(text), kind.struct)) if text else set()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.released_fields", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--api", type=Path, required=True, metavar="DIR", help="a git directory of k8s.io/api")
    options = parser.parse_args(arguments)
    newest = {kind: golden(options.api, NEWEST_COMMIT, kind) for kind in scheme.served()}
    found: dict[str, Json] = {}
    for release, commit in RELEASES.items():
        kinds = {}
        for kind, paths in newest.items():
            if its := golden(options.api, commit, kind):
                differences = {"absent": outermost(paths, its), "gone": outermost(its, paths)}
                kinds[f"{kind.api_version}/{kind.kind}"] = {"fields": len(its)} | {
                    name: listed for name, listed in differences.items() if listed
                }
        found[named(release)] = {"source": f"k8s.io/api {commit} testdata/HEAD", "kinds": kinds}
    print("{")
    for n, (version, entry) in enumerate(found.items()):
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(kind)}" for name, kind in entry["kinds"].items())
        end = "," if n < len(found) - 1 else ""
        print(f' {json.dumps(version)}: {{"source": {json.dumps(entry["source"])}, "kinds": {{\n{lines}\n }}}}{end}')
    print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
