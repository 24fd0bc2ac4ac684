"""The data of the built-in kinds (`apiserver/kinds/data`), made from published facts about them.

    python -m conformance.kinds --facts DIR            print what differs, exit with status 1 if anything does
    python -m conformance.kinds --facts DIR --write    write the data

DIR has `types.json`, `kinds.json`, `selectable.json`, `defaults.json` and `printcolumns.json`. The data is a rearrangement
of them that leaves out what the server does not use, one type, kind or rule a line:

    types/core.v1.json    {"ContainerPort": {"fields": [["name", "string", 1], …]}, …}
    kinds.json            names, verbs, subresources, strategies and field labels, in the order of discovery
    defaults.json         the rules of defaulting by type
    columns.json          the columns of tables by kind

`noxu.kinds.facts` describes the form of each.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

Json = Any
DATA: Final = Path(__file__).resolve().parent.parent / "apiserver" / "noxu" / "kinds" / "data"

_WRITE: Final = {"omitempty": "", "pointer": "pointer", "always": "always", "null": "null"}
_EXTRA: Final = {
    "patchStrategy": "patch", "patchMergeKey": "merge_key", "listType": "list_type", "listMapKeys": "list_keys",
    "mapType": "map_type", "structType": "struct_type", "default": "default", "unionDiscriminator": "discriminator",
}  # fmt: skip
_STORED: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def documents(facts: Path) -> Iterator[tuple[str, str]]:
    """(path below the data, content) of every file of the data."""
    types = _read(facts / "types.json")["types"]
    parts = sorted({key.rpartition(".")[0] for key in types} - {"types"})
    for part in parts:
        inside = {key.rpartition(".")[2]: _type(part, types[key]) for key in types if key.rpartition(".")[0] == part}
        yield f"types/{part.replace('/', '.')}.json", _lines(inside)
    selectable = _read(facts / "selectable.json")
    kinds = [kind for kind in _read(facts / "kinds.json")["kinds"] if "type" in kind]  # all but definitions
    yield "kinds.json", _lines([_kind(kind, selectable) for kind in kinds])
    defaults = _read(facts / "defaults.json")
    yield "defaults.json", _lines(defaults["types"])
    columns = _read(facts / "printcolumns.json")
    yield "columns.json", _lines({key: value for key, value in columns.items() if key != "source"}, depth=2)


def _read(path: Path) -> Json:
    return json.loads(path.read_text())


def _lines(value: Json, depth: int = 1) -> str:
    """JSON with one entry of the outer collections a line."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + ("\n" if depth == 1 else "")
    end = "\n" if depth == 1 or depth == 2 else ""
    if isinstance(value, dict):
        inner = (f"{json.dumps(key)}: {_lines(item, depth - 1).rstrip()}" for key, item in value.items())
        return "{\n" + ",\n".join(inner) + "\n}" + end
    return "[\n" + ",\n".join(_lines(item, depth - 1).rstrip() for item in value) + "\n]" + end


def _type(part: str, given: Json) -> Json:
    if "is" in given:
        found = {"is": _expression(part, given["is"])}
        if "values" in given:
            found["enum" if given.get("enum") else "values"] = given["values"]
        return found | ({"wrapped": True} if given.get("wrapped") else {})
    found = {"fields": [_field(part, field) for field in given["fields"]]}
    if given.get("structType") == "atomic":
        found["atomic"] = True
    if "unions" in given:
        found["unions"] = given["unions"]
    return found


def _field(part: str, given: Json) -> Json:
    """[name, type, number, when it is written, the rest]; an embedded struct is {embed, go, number}."""
    if "embed" in given:
        return {**given, "embed": _expression(part, given["embed"])}
    extra = {_EXTRA[key]: value for key, value in given.items() if key in _EXTRA}
    if given.get("required") or not (given.get("optional") or given.get("omitempty")):
        extra["required"] = True
    field = [given["name"], _expression(part, given["type"]), given.get("number", 0), _WRITE[given["write"]], extra]
    while not field[-1] and len(field) > 3:
        field.pop()
    return field


def _expression(part: str, given: Json) -> Json:
    """A scalar or a type; `[T]` is a list, `{"string": T}` a map. Types of the same part go without it."""
    if isinstance(given, str):
        return given.removeprefix(f"{part}.")
    if "list" in given:
        return [_expression(part, given["list"])]
    return {_expression(part, given.get("key", "string")): _expression(part, given["map"])}


def _kind(given: Json, selectable: Json) -> Json:
    dropped = ("apiVersion", "list", "listType", "introduced")
    found = {key: value for key, value in given.items() if key not in dropped and value not in ([], {})}
    if given["singular"] == given["kind"].lower():
        del found["singular"]
    if given["verbs"] == _STORED:
        del found["verbs"]
    labels = selectable["kinds"].get(f"{given['apiVersion']}/{given['kind']}")
    return found | ({"selectable": labels} if labels else {})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.kinds", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--facts", type=Path, required=True, metavar="DIR", help="the folder with the published facts")
    parser.add_argument("--write", action="store_true", help="write the data instead of comparing it")
    options = parser.parse_args(arguments)
    differing = 0
    for name, content in documents(options.facts):
        path = DATA / name
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            print(f"{name} differs: write it again with --write")
            differing += 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
