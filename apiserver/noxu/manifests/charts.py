"""Charts of Helm: the definitions that `helm install` creates before it renders templates.

They are the files in `crds/` of a chart and of its subcharts, directories or packed ones in `charts/` (helm's
Chart.CRDObjects). A subchart that `tags` or a `condition` disable in the values of the chart is not installed (helm's
ProcessDependencies). A file in a packed chart has the path that it has when the archive is unpacked into a directory of its
name: `charts/db-1.0.0.tgz/db/crds/a.yaml`.
"""

from __future__ import annotations

import io
import os.path
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.values import Json, Object

CHART: Final = "Chart.yaml"
PACKED: Final = ".tgz"
MAX_UNPACKED: Final = 100 * 1024 * 1024
"""Bytes of a packed chart after its decompression (helm's MaxDecompressedChartSize)."""
MAX_FILE: Final = 5 * 1024 * 1024
"""Bytes of a file in a packed chart (helm's MaxDecompressedFileSize)."""
MAX_NESTED: Final = 10
"""Charts in charts."""
_NO_CHART: Final = "it is no packed chart, or an incomplete one"
_CRDS: Final = "crds/"
_SUBCHARTS: Final = "charts/"
_TEMPLATES: Final = "templates"
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_READ: Final = (*_MANIFESTS, PACKED)


class ChartError(Exception):
    """A packed chart cannot be read."""


class NotInstalled(NamedTuple):
    """A subchart whose definitions are not installed, and why."""

    path: Path
    reason: str


Files = Mapping[str, Path]
"""The files of a chart by their names in it: `crds/a.yaml`."""


def outermost(found: list[Path]) -> dict[Path, Files]:
    """The charts among files that are in no other chart, with their files."""
    roots = {file.parent for file in found if file.name == CHART}
    charts: dict[Path, dict[str, Path]] = {}
    for file in found if roots else ():
        around = [each for each in file.parents if each in roots]
        if around:
            charts.setdefault(around[-1], {})[file.relative_to(around[-1]).as_posix()] = file
    return dict(charts)


def definitions(files: Files) -> Iterator[Path | NotInstalled]:
    """The files with the definitions of a chart and then of its subcharts, in the order in which helm installs them."""
    values = _object(files, "values.yaml")
    yield from _definitions(files, values, _member(values, "tags"), 0)


def template_of(path: Path) -> Path | None:
    """The chart whose templates are in a directory, None if there are none."""
    whole = path.absolute()
    for inner in (whole, *whole.parents):
        if inner.name == _TEMPLATES and (inner.parent / CHART).is_file():
            return inner.parent if path.is_absolute() else Path(os.path.relpath(inner.parent))
    return None


def content(path: Path) -> bytes:
    """The bytes of a file in a packed chart. Raises ChartError, OSError."""
    archive = next((each for each in path.parents if each.name.endswith(PACKED)), None)
    if archive is None:
        return path.read_bytes()
    body = content(archive)
    found = _members(body).get(path.relative_to(archive).as_posix())
    if found is None:
        raise ChartError("the archive has no such file")
    return found


def is_packed(path: Path) -> bool:
    """Whether a path is that of a file in an archive."""
    return any(each.name.endswith(PACKED) and each.is_file() for each in path.parents)


def _definitions(files: Files, values: Object, tags: Object, depth: int) -> Iterator[Path | NotInstalled]:
    for name in sorted(files):
        if name.startswith(_CRDS) and name.endswith(_MANIFESTS):
            yield files[name]
    required = _required(files)
    for path, subchart in _subcharts(files):
        if isinstance(subchart, str):
            yield NotInstalled(path, subchart)
            continue
        name = str(_object(subchart, CHART).get("name") or path.name)
        entries = [each for each in required if each.get("name") == name]
        disabled = [why for each in entries if (why := _disabled(each, values, tags))]
        if entries and len(disabled) == len(entries):
            yield NotInstalled(path, f"helm does not install this subchart: {disabled[0]}")
        elif depth == MAX_NESTED:
            yield NotInstalled(path, f"it is a chart in more than {MAX_NESTED} charts")
        else:
            key = next((str(each["alias"]) for each in entries if each.get("alias")), name)
            inner = _merged(_object(subchart, "values.yaml"), _member(values, key))
            yield from _definitions(subchart, inner, tags, depth + 1)


def _subcharts(files: Files) -> Iterator[tuple[Path, Files | str]]:
    """(a subchart, its files or why it cannot be read). Like helm, those are ignored whose names begin with `_` or `.`."""
    found: dict[str, dict[str, Path]] = {}
    for name, path in sorted(files.items()):
        first, _, rest = name.removeprefix(_SUBCHARTS).partition("/")
        if not name.startswith(_SUBCHARTS) or first.startswith(("_", ".")):
            continue
        if rest:
            found.setdefault(first, {})[rest] = path
        elif first.endswith(PACKED):
            try:
                found[first] = {
                    inner.partition("/")[2]: path / inner for inner in _members(content(path)) if "/" in inner
                }
            except (ChartError, OSError) as error:
                yield path, str(getattr(error, "strerror", None) or error)
    for subchart in found.values():
        if CHART in subchart:
            yield subchart[CHART].parent, subchart


def _required(files: Files) -> list[Object]:
    """The dependencies that a chart declares; those of apiVersion v1 are in a file of their own."""
    declared = _object(files, CHART).get("dependencies") or _object(files, "requirements.yaml").get("dependencies")
    return [each for each in declared if isinstance(each, dict)] if isinstance(declared, list) else []


def _disabled(required: Object, values: Object, tags: Object) -> str:
    """Why a dependency is disabled, "" if it is not: the first condition that is a boolean decides, else the tags do."""
    for condition in str(required.get("condition") or "").split(","):
        found: Json = values
        for step in condition.strip().split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, bool):
            return "" if found else f"{condition.strip()} is false in its values"
    names = required.get("tags")
    chosen = [tags.get(str(name)) for name in names] if isinstance(names, list) else []
    return "its tags are false in the values" if False in chosen and True not in chosen else ""


def _merged(values: Object, overrides: Object) -> Object:
    """The values of a subchart, and over them those that its parent has for it."""
    found = dict(values)
    todo = [(found, overrides)]
    while todo:
        target, source = todo.pop()
        for name, value in source.items():
            if isinstance(value, dict) and isinstance(target.get(name), dict):
                target[name] = dict(target[name])
                todo.append((target[name], value))
            else:
                target[name] = value
    return found


def _object(files: Files, name: str) -> Object:
    """The object in a YAML file of a chart, empty if there is none."""
    try:
        value = codec.decode_yaml(content(files[name])).value
    except (KeyError, OSError, ValueError, ChartError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(value: Object, name: str) -> Object:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=4)
def _members(body: bytes) -> dict[str, bytes]:
    """The files of a packed chart that may be read, by their names in it. Raises ChartError."""
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        unpacked = unpacking.decompress(body, MAX_UNPACKED + 1)
        if len(unpacked) > MAX_UNPACKED:
            raise ChartError(f"it has more than {MAX_UNPACKED} bytes when it is decompressed")
        if not unpacking.eof:
            raise ChartError(_NO_CHART)
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            return {
                each.name.removeprefix("./"): file.read()
                for each in archive
                if each.isreg() and each.size <= MAX_FILE and each.name.endswith(_READ)
                if (file := archive.extractfile(each)) is not None
            }
    except (tarfile.TarError, zlib.error):
        raise ChartError(_NO_CHART) from None
