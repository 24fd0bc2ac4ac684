"""The files that manifests are read from: a file that is named, or those in a directory.

Some files in a directory look like manifests, and are none: kustomizations and the files to which they refer besides
resources (patches, configurations, values), Helm charts, whose templates are no YAML, assertions of kuttl, and
archives. They are skipped, each with a note that says why and what to do instead. Kustomizations and archives are
refused if they are named themselves.
"""

from __future__ import annotations

import gzip
import io
import os.path
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from noxu.manifests import tool_files
from noxu.manifests.tool_files import KUSTOMIZATIONS as KUSTOMIZATIONS

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
COMPRESSED: Final = ".gz"
MAX_DECOMPRESSED: Final = 256 * 1024 * 1024
"""Bytes of a file after its decompression."""
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_VALUES: Final = re.compile(r"values([-_.].*)?\.ya?ml|.*[-_.]values\.ya?ml")  # of Helm, by convention
_ASSERTION: Final = re.compile(r"\d+-(assert|errors)([-_.].*)?\.ya?ml|chainsaw-(assert|error).*\.ya?ml")
"""Of kuttl and chainsaw, by convention."""
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
    below = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.parts[len(path.parts) :])
    )
    if (chart := tool_files.template_of(path)) is not None:
        return [], [Skipped(path, f"it has templates of a Helm chart: helm template {chart} --include-crds{to_stdin}")]
    installed, skipped = _of_charts(below, to_stdin)
    kustomizations = [file for file in below if file.name in KUSTOMIZATIONS and file not in skipped]
    named = _Named(kustomizations)
    for file in below:
        if file in skipped:
            continue
        if file.name in KUSTOMIZATIONS:
            skipped[file] = Skipped(file, _kustomization(file.parent, command))
        elif file.name.endswith(_ARCHIVES):
            skipped[file] = Skipped(file, _IS_ARCHIVE)
        elif _is_manifest(file) and (reason := named.reason(file) or _reason_by_name(file)):
            skipped[file] = Skipped(file, reason)
    read = [file for file in below if _is_manifest(file) and file not in skipped]
    return sorted([*read, *installed]), list(dict.fromkeys(notice for _, notice in sorted(skipped.items())))


class _Named:
    """What kustomizations name."""

    def __init__(self, kustomizations: list[Path]) -> None:
        parts = {file: tool_files.parts_of(file) for file in kustomizations}
        self._directories = {file.parent for file in kustomizations}
        self._resources = frozenset().union(*(references.resources for references in parts.values()))
        self._others: dict[str, Path] = {}
        for kustomization, references in parts.items():
            self._others.update(dict.fromkeys(references.others - self._others.keys(), kustomization))

    def reason(self, file: Path) -> str:
        """Why a file is no resource, "" if it may be one."""
        path = Path(os.path.abspath(file))  # noqa: PTH100 - links are not followed
        is_resource = str(path) in self._resources
        by = None if is_resource else self._others.get(str(path))
        by = by or next((self._others[str(parent)] for parent in path.parents if str(parent) in self._others), None)
        if by is not None:
            return f"{by} does not name it as a resource"
        if not is_resource and tool_files.is_patch_by_name(file, self._directories):
            return "it is a patch by its name, and no kustomization names it as a resource"
        return ""


def _reason_by_name(file: Path) -> str:
    if _VALUES.fullmatch(file.name):
        return "it has values for templates"
    return "it is an assertion of kuttl or chainsaw" if _ASSERTION.fullmatch(file.name) else ""


def _of_charts(below: list[Path], to_stdin: str) -> tuple[list[Path], dict[Path, Skipped]]:
    """The definitions that charts install, and a note for each other file of a chart."""
    installed: list[Path] = []
    skipped: dict[Path, Skipped] = {}
    for root, files in tool_files.outermost(below).items():
        note = Skipped(root, f"it is a Helm chart: helm template {root} --include-crds{to_stdin}")
        skipped |= dict.fromkeys(files.values(), note)
        for definition in tool_files.definitions(files):
            if isinstance(definition, tool_files.NotInstalled):
                skipped[definition.path] = Skipped(definition.path, definition.reason)
            else:
                installed.append(definition)
    return installed, skipped


def name_of(path: Path) -> str:
    """A path as it was written: of two slashes in a URL a Path keeps one."""
    url = _URL.fullmatch(str(path))
    return f"{url[1]}://{url[2]}" if url and not path.exists() else str(path)


def content(path: Path) -> bytes:
    """The bytes of a file, decompressed. Raises LoadError, which does not name it."""
    try:
        if path.suffix != COMPRESSED:
            return tool_files.content_in(path)
        body = _decompressed(path.read_bytes())
    except (OSError, EOFError, zlib.error, tool_files.ChartError) as error:
        raise LoadError(getattr(error, "strerror", None) or str(error)) from None
    if len(body) > MAX_DECOMPRESSED:
        raise LoadError(f"it has more than {MAX_DECOMPRESSED} bytes when it is decompressed")
    return body


def _decompressed(body: bytes) -> bytes:
    """At most MAX_DECOMPRESSED + 1 bytes. A file of one member takes zlib two thirds of gzip's time; gzip reads all others."""
    with suppress(zlib.error):
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        decompressed = member.decompress(body, MAX_DECOMPRESSED + 1)
        if member.eof and not member.unused_data:
            return decompressed
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
