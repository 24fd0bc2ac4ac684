"""The files that manifests are read from: a file that is named, or those in a directory.

In a directory are files that look like manifests, and are not: kustomizations and what they refer to besides resources
(patches, configurations, values), Helm charts, whose templates are no YAML, and archives. They are skipped, each with a
note that says why and what to do instead. The same files are refused if they are named themselves.
"""

from __future__ import annotations

import gzip
import io
import os.path
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from noxu.apiserver.api import codec
from noxu.apiserver.records import NamedTuple
from noxu.apiserver.values import Json, Object

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
COMPRESSED: Final = ".gz"
MAX_DECOMPRESSED: Final = 256 * 1024 * 1024
"""Bytes of a file after its decompression."""
KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
CHART: Final = "Chart.yaml"
CHART_CRDS: Final = "crds"
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_VALUES: Final = re.compile(r"values([-_.].*)?\.ya?ml|.*[-_.]values\.ya?ml")  # of Helm, by convention
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")  # a Path has one slash of the two
_IS_ARCHIVE: Final = "it is an archive: unpack it, and name the files"


class LoadError(Exception):
    """A file cannot be read or an object is refused; the message names the file. Several messages are several arguments."""

    __module__ = "noxu"  # where it is public: tracebacks show that name

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class Skipped(NamedTuple):
    """A file or a directory that is not read, and the reason."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: skipped: {self.reason}"


def files(path: Path, command: str = "") -> tuple[list[Path], list[Skipped]]:
    """The manifests in a directory, in the order of their names, or the file itself; and what is skipped. Raises LoadError.

    `command` is the command of `noxu` that reads them, which the notes name; "" for none, which does not read stdin.
    """
    to_stdin = f" | noxu {command} -" if command else ""
    if not path.exists():
        name = name_of(path)
        is_url = name != str(path)
        why = f"it is a URL, not a file: curl -fsSL {name}{to_stdin}" if is_url else "no such file or directory"
        raise LoadError(f"{name}: {why}")
    if not path.is_dir():
        if reason := _not_by_itself(path, command):
            raise LoadError(f"{path}: {reason}")
        return [path], []
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.parts[len(path.parts) :])
    )
    named = {os.path.abspath(file): file for file in found}  # noqa: PTH100 - links are not followed
    skipped: dict[Path, Skipped] = {}
    charts = [file.parent for file in found if file.name == CHART]
    for file in found:
        chart = next((each for each in charts if file.is_relative_to(each)), None)
        if chart is not None and not file.is_relative_to(chart / CHART_CRDS):
            skipped[file] = Skipped(chart, f"it is a Helm chart: helm template {chart}{to_stdin}")
        elif file.name in KUSTOMIZATIONS:
            skipped[file] = Skipped(file, _kustomization(file.parent, command))
            for part in filter(None, map(named.get, _parts(file))):
                skipped.setdefault(part, Skipped(part, f"{file} does not name it as a resource"))
        elif _is_manifest(file) and _VALUES.fullmatch(file.name):
            skipped.setdefault(file, Skipped(file, "it has values for templates"))
        elif file.name.endswith(_ARCHIVES):
            skipped[file] = Skipped(file, _IS_ARCHIVE)
    return (
        [file for file in found if _is_manifest(file) and file not in skipped],
        list(dict.fromkeys(each for _, each in sorted(skipped.items()))),
    )


def name_of(path: Path) -> str:
    """A path as it was written: of two slashes in a URL a Path keeps one."""
    url = _URL.fullmatch(str(path))
    return f"{url[1]}://{url[2]}" if url and not path.exists() else str(path)


def content(path: Path) -> bytes:
    """The bytes of a file, decompressed. Raises LoadError, which does not name it."""
    try:
        if path.suffix != COMPRESSED:
            return path.read_bytes()
        found = _decompressed(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise LoadError(getattr(error, "strerror", None) or str(error)) from None
    if len(found) > MAX_DECOMPRESSED:
        raise LoadError(f"it has more than {MAX_DECOMPRESSED} bytes when it is decompressed")
    return found


def _decompressed(body: bytes) -> bytes:
    """At most MAX_DECOMPRESSED + 1 bytes. A file of one member takes zlib two thirds of gzip's time; gzip reads all others."""
    with suppress(zlib.error):
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        found = member.decompress(body, MAX_DECOMPRESSED + 1)
        if member.eof and not member.unused_data:
            return found
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(MAX_DECOMPRESSED + 1)


def _is_manifest(file: Path) -> bool:
    return (Path(file.stem) if file.suffix == COMPRESSED else file).suffix in SUFFIXES


def _not_by_itself(path: Path, command: str) -> str:
    """Why a file that is named cannot be read as a manifest, "" if it can."""
    if path.name in KUSTOMIZATIONS:
        return _kustomization(path.parent, command)
    return _IS_ARCHIVE if path.name.endswith(_ARCHIVES) else ""


def _kustomization(directory: Path, command: str) -> str:
    if command == "serve":
        return f"it is a kustomization: noxu serve -k {directory}"
    return f"it is a kustomization: kubectl kustomize {directory}{f' | noxu {command} -' if command else ''}"


# -- kustomizations ---------------------------------------------------------------------------------------------------

_LISTS: Final = (
    "patchesStrategicMerge", "patchesJson6902", "patches", "configurations", "replacements", "transformers", "generators",
    "validators",
)  # fmt: skip


def _parts(kustomization: Path) -> Iterator[str]:
    """The absolute paths to which a kustomization refers, and not as resources (kustomize's types.Kustomization)."""
    try:
        value = codec.decode_yaml(kustomization.read_bytes()).value
    except (OSError, ValueError):
        return
    if not isinstance(value, dict):
        return
    resources = set(_texts(value.get("resources")))
    for text in [*_named(value), *_generated(value)]:
        if "\n" not in text and text not in resources:  # patches may be texts, too
            yield os.path.abspath(kustomization.parent / text)  # noqa: PTH100


def _named(value: Object) -> Iterator[str]:
    for field in _LISTS:
        yield from _texts(value.get(field))
        yield from (path for item in _objects(value.get(field)) for path in _texts([item.get("path")]))
    yield from _texts([path for item in _objects([value.get("openapi")]) for path in [item.get("path")]])


def _generated(value: Object) -> Iterator[str]:
    """Files that become parts of ConfigMaps and Secrets, `[KEY=]PATH`, and values of charts."""
    for item in [*_objects(value.get("configMapGenerator")), *_objects(value.get("secretGenerator"))]:
        for text in [*_texts(item.get("files")), *_texts(item.get("envs")), *_texts([item.get("env")])]:
            yield text.rpartition("=")[2]
    for item in _objects(value.get("helmCharts")):
        yield from [*_texts([item.get("valuesFile")]), *_texts(item.get("additionalValuesFiles"))]


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _objects(value: Json) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
