"""The types of built-in kinds by release (`apiserver/noxu/kinds/data/older.json`), made from upstream's types.go files.

    python -m conformance.released_types --api DIR            print what differs, exit with status 1 if anything does
    python -m conformance.released_types --api DIR --write    write the table

DIR is a git directory of k8s.io/api, with its tags. A type of Go is read as the data of the newest release has it: that
the files of the newest tag give this data proves how they are read. The table says what an older release has instead:

    "core/v1.PodSpec": {"fields": {"resources": [[31, null]], …}}                     up to 1.31 there is no such field
    "core/v1.PodSpec": {"fields": {"imagePullSecrets": [[29, ["imagePullSecrets", …]]]}}   up to 1.29 it was this field
    "core/v1.TolerationOperator": {"enum": [[34, ["Exists", "Equal"]]]}               up to 1.34 these were its values
    "core/v1.ClaimSource": {"type": [[30, {"fields": [["resourceClaimName", …]]}]]}   up to 1.30 there was such a type

`noxu.kinds.facts` reads it for a server that answers as an older release, and only then.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance.kinds import DATA
from noxu.releases import NEWEST, OLDEST

Json = Any
TABLE: Final = DATA / "older.json"
NEWEST_COMMIT: Final = "10b39a39bcee995dfe7cd5e8e7b922be5e46f1e2"
"""The newest commit of k8s.io/api that the data was compared with: the newest release had no tag then."""
_TAGS: Final = {release: f"v0.{release}.0" for release in range(OLDEST, NEWEST)} | {NEWEST: NEWEST_COMMIT}
_ELSEWHERE: Final = ("meta/v1", "apiregistration/v1", "admission/v1", "apidiscovery/v2")
"""Parts whose types are in other repositories, or are not of objects that clients write."""
_SCALARS: Final = {
    "metav1.Time": "Time", "metav1.MicroTime": "MicroTime", "metav1.Duration": "Duration", "resource.Quantity": "Quantity",
    "intstr.IntOrString": "IntOrString", "runtime.RawExtension": "RawExtension", "types.UID": "types.UID",
    "types.NodeName": "types.NodeName", "[]byte": "[]byte", "float64": "float64", "string": "string", "bool": "bool",
    "int32": "int32", "int64": "int64", "int": "int64",
}  # fmt: skip
_STRUCTS: Final = ("Time", "MicroTime", "Quantity", "IntOrString", "RawExtension")
_TYPE: Final = re.compile(r"^type (\w+) (struct \{|.+)$")
_FIELD: Final = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`(.*)`")
_TAG: Final = re.compile(r'(\w+):"([^"]*)"')
_CONSTANT: Final = re.compile(r'^(?:const)?\s+(\w+)\s+(?:(\w+)\s*=\s*"([^"]*)"|=\s*(\w+)\("([^"]*)"\))')
_MARKERS: Final = {
    "listType": "list_type", "mapType": "map_type", "structType": "struct_type",
}  # fmt: skip


GoField = tuple[tuple[str, ...], str, str, str]
"""(markers, name in Go, type in Go, tags)."""


class GoType(NamedTuple):
    """A type as a file of Go has it. `markers` are the lines of comments that begin with `+`."""

    markers: tuple[str, ...]
    definition: str
    fields: tuple[GoField, ...] = ()
    """Of a struct."""


def parse(text: str) -> tuple[dict[str, GoType], dict[str, dict[str, str]], dict[str, str]]:
    """(types by name, constants and their values by type, packages by the names that they have in the file)."""
    found: dict[str, GoType] = {}
    constants: dict[str, dict[str, str]] = {}
    packages = {
        alias or path.rpartition("/")[2]: path
        for alias, path in re.findall(r'^\t(?:(\w+) )?"([^"]+)"$', text, re.MULTILINE)
    }
    markers: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("// "):
            markers += [line[3:].strip()] if line[3:].lstrip().startswith("+") else []
        elif match := _TYPE.match(line):
            fields = tuple(_fields(lines)) if match[2] == "struct {" else ()
            found[match[1]] = GoType(tuple(markers), match[2], fields)
            markers = []
        elif constant := _CONSTANT.match(line):
            constants.setdefault(constant[2] or constant[4], {})[constant[1]] = (
                constant[3] if constant[2] else constant[5]
            )
        elif line and not line.startswith("//"):
            markers = []
    return found, constants, packages


def _fields(lines: Iterator[str]) -> Iterator[GoField]:
    markers: list[str] = []
    for line in lines:
        if line.startswith("}"):
            return
        stripped = line.strip()
        if stripped.startswith("//"):
            comment = stripped.removeprefix("//").strip()
            markers += [comment] if comment.startswith("+") else []
        elif match := _FIELD.match(line):
            yield tuple(markers), match[1] or "", match[2], match[3]
            markers = []


class Release:
    """The types of a release, in the form of the data."""

    def __init__(self, directory: Path, tag: str, parts: tuple[str, ...]) -> None:
        self._parts = {part: parse(show(directory, f"{tag}:{part}/types.go")) for part in parts}

    def is_struct(self, part: str, expression: Json) -> bool:
        """Whether a type is a struct, which Go cannot leave out if a field has it by value."""
        if not isinstance(expression, str) or expression in _SCALARS.values():
            return expression in _STRUCTS
        inner, _, name = (expression if "." in expression else f"{part}.{expression}").rpartition(".")
        if inner == "meta/v1":
            return True
        given = self._parts[inner][0].get(name)
        return given is not None and given.definition == "struct {"

    def type(self, key: str) -> Json:
        """A type such as `core/v1.Pod`; None if the release does not have it."""
        part, _, name = key.rpartition(".")
        types, constants, packages = self._parts[part]
        if name not in types:
            return None
        given = types[name]
        if given.definition != "struct {":
            found: Json = {"is": _expression(part, given.definition, packages)}
            if name in constants:
                found["enum" if "+enum" in given.markers else "values"] = list(constants[name].values())
            return found
        return {"fields": [self._field(part, field, constants, packages) for field in given.fields]}

    def _field(self, part: str, field: GoField, constants: dict[str, dict[str, str]], packages: dict[str, str]) -> Json:
        markers, go_name, go, tags_text = field
        tags = dict(_TAG.findall(tags_text))
        name, *options = tags["json"].split(",")
        protobuf = tags.get("protobuf", "").split(",")
        number = int(protobuf[1]) if len(protobuf) > 1 else 0
        expression = _expression(part, go, packages)
        if not name:
            return {
                "embed": expression,
                "go": go_name or go.rpartition(".")[2],
                **({"number": number} if number else {}),
            }
        marked = dict(marker[1:].partition("=")[::2] for marker in markers)
        extra: Json = {}
        if "patchStrategy" in tags:
            extra["patch"] = tags["patchStrategy"]
        if "patchMergeKey" in tags:
            extra["merge_key"] = tags["patchMergeKey"]
        for marker, ours in _MARKERS.items():
            if marker in marked:
                extra[ours] = marked[marker]
        keys = [marker.partition("=")[2] for marker in markers if marker.startswith("+listMapKey=")]
        if keys:
            extra["list_keys"] = keys
        if "default" in marked:
            extra["default"] = _default(marked["default"], constants)
        if "unionDiscriminator" in marked:
            extra["discriminator"] = True
        omitted, is_pointer = "omitempty" in options or "omitzero" in options, go.startswith("*")
        if "required" in marked or "k8s:required" in marked or not ("optional" in marked or "omitempty" in options):
            extra["required"] = True
        if self.is_struct(part, expression) and not is_pointer and "omitzero" not in options:
            write = "always"
        else:
            write = ("pointer" if is_pointer else "") if omitted else ("null" if is_pointer else "always")
        entry = [name, expression, number, write, extra]
        while not entry[-1] and len(entry) > 3:
            entry.pop()
        return entry


def show(directory: Path, name: str) -> str:
    done = subprocess.run(["git", "-C", directory, "show", name], capture_output=True, text=True, check=False)
    return done.stdout  # nothing: the release has no such group version


def _default(marker: str, constants: dict[str, dict[str, str]]) -> Json:
    """The value of a marker `+default=`: JSON, or `ref(NAME)` of a constant."""
    named = {name: value for values in constants.values() for name, value in values.items()}
    return named[marker[4:-1].rpartition(".")[2]] if marker.startswith("ref(") else json.loads(marker)


def _expression(part: str, go: str, packages: dict[str, str]) -> Json:
    go = go.removeprefix("*")
    if go == "[]byte":
        return go
    if go.startswith("[]"):
        return [_expression(part, go[2:], packages)]
    if go.startswith("map["):
        key, _, value = go[4:].partition("]")
        return {_expression(part, key, packages): _expression(part, value, packages)}
    package, dot, name = go.rpartition(".")
    if not dot:
        return _SCALARS.get(go, go)
    path = packages[package]
    if path.startswith("k8s.io/api/"):
        return f"{path.removeprefix('k8s.io/api/')}.{name}"
    bare = f"{'metav1' if path.endswith('apis/meta/v1') else path.rpartition('/')[2]}.{name}"
    return _SCALARS.get(bare, f"meta/v1.{name}")


def differences(directory: Path) -> dict[str, Json]:
    """What older releases have instead, by type."""
    data = {part: json.loads((DATA / "types" / f"{part.replace('/', '.')}.json").read_text()) for part in _parts()}
    newest = {f"{part}.{name}": facts for part, types in data.items() for name, facts in types.items()}
    releases = {release: Release(directory, _TAGS[release], tuple(data)) for release in range(OLDEST, NEWEST)}
    found: dict[str, Json] = {}
    for key, facts in newest.items():
        history = {release: older for release in releases if (older := releases[release].type(key)) is not None}
        entry = _of_struct(facts, history) if "fields" in facts else _of_values(facts, history)
        if entry:
            found[key] = entry
    for key, until in _removed(found, newest):
        found[key] = {"type": [[until, releases[until].type(key)]]}
    return found


def _removed(found: dict[str, Json], newest: dict[str, Json]) -> Iterator[tuple[str, int]]:
    """(a type that only older fields have, the last release with such a field)."""
    for key, entry in list(found.items()):
        part = key.rpartition(".")[0]
        for until, facts in (step for steps in entry.get("fields", {}).values() for step in steps):
            expression: Json = facts[1] if facts else ""
            while isinstance(expression, (list, dict)) and expression:
                (expression,) = expression if isinstance(expression, list) else expression.values()
            name = str(expression if "." in expression else f"{part}.{expression}")
            if (
                expression
                and expression not in _SCALARS.values()
                and name not in newest
                and not name.startswith("meta/")
            ):
                yield name, until


def _parts() -> list[str]:
    names = [path.stem.rpartition(".") for path in sorted((DATA / "types").glob("*.json"))]
    return [f"{group}/{version}" for group, _, version in names if f"{group}/{version}" not in _ELSEWHERE]


def _of_struct(newest: Json, history: dict[int, Json]) -> Json:
    now = _by_name(newest)
    before = {release: _by_name(older) for release, older in history.items() if "fields" in older}
    names = dict.fromkeys([*now, *(name for older in before.values() for name in older)])
    fields = {
        name: _steps(now.get(name), {release: older.get(name) for release, older in before.items()}) for name in names
    }
    found: Json = {"fields": {name: steps for name, steps in fields.items() if steps}}
    return found if found["fields"] else {}


def _of_values(newest: Json, history: dict[int, Json]) -> Json:
    found = {}
    for name in ("enum", "values"):
        steps = _steps(newest.get(name), {release: older.get(name) for release, older in history.items()})
        if steps:
            found[name] = steps
    return found


def _by_name(facts: Json) -> dict[str, Json]:
    return {field["embed"] if isinstance(field, dict) else field[0]: field for field in facts["fields"]}


def _steps(newest: Json, history: dict[int, Json]) -> list[Json]:
    """[[the last release with these facts, the facts]], the oldest first; [] if they never were others."""
    steps: list[Json] = []
    later = newest
    for release in sorted(history, reverse=True):
        if history[release] != later:
            steps.insert(0, [release, history[release]])
            later = history[release]
    return steps


def written(table: dict[str, Json]) -> str:
    lines = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in sorted(table.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def unread(directory: Path) -> list[str]:
    """What the files of the newest tag have in another way than the data: it shows whether types are read right."""
    parts = _parts()
    newest = Release(directory, _TAGS[NEWEST], tuple(parts))
    wrong = []
    for part in parts:
        for name, facts in json.loads((DATA / "types" / f"{part.replace('/', '.')}.json").read_text()).items():
            of_go = newest.type(f"{part}.{name}")
            if of_go is None or "fields" not in facts or "fields" not in of_go:
                continue
            now = _by_name(facts)
            wrong += [f"{part}.{name}.{field}" for field, read in _by_name(of_go).items() if now.get(field) != read]
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.released_types", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--api", type=Path, required=True, metavar="DIR", help="a git directory of k8s.io/api")
    parser.add_argument("--write", action="store_true", help="write the table instead of comparing it")
    options = parser.parse_args(arguments)
    if wrong := unread(options.api):
        print(f"not as in the data: {', '.join(wrong)}")
        return 1
    content = written(differences(options.api))
    if options.write:
        TABLE.write_text(content)
    elif TABLE.read_text() != content:
        print(f"{TABLE.name} differs: write it again with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
