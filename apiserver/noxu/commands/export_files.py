"""The files of `noxu export`: one for all objects, or a folder with one for each object.

A folder has what others depend on first, in the order in which `kubectl apply -R -f DIR` and `noxu serve DIR` read it:

    DIR/1-definitions/widgets.example.com.yaml
    DIR/2-namespaces/attic.yaml
    DIR/3-prerequisites/clusterroles.rbac.authorization.k8s.io_reader.yaml      kinds that others refer to
    DIR/4-objects/attic/widgets.example.com_small.yaml
    DIR/5-admission/…                                                           what has a say in the writes of others

Each file begins with MARK. A file without it is somebody else's, and never overwritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.commands.exported import FIRST_OF_OTHERS, rank
from noxu.files import write_whole
from noxu.values import Object

MARK: Final = b"# Written by noxu export, which overwrites it.\n"
SUFFIXES: Final = (".yaml", ".yml")
DEFINITIONS: Final = "1-definitions"
NAMESPACES: Final = "2-namespaces"
PREREQUISITES: Final = "3-prerequisites"
OBJECTS: Final = "4-objects"
ADMISSION: Final = "5-admission"
FOLDERS: Final = (DEFINITIONS, NAMESPACES, PREREQUISITES, OBJECTS, ADMISSION)
_MAX_NAME: Final = 180  # characters of a file's name
_UNSAFE: Final = re.compile(r"[^a-z0-9.-]|^\.|values")  # `NAME-values.yaml` are values of Helm, where files are read


class Exported(NamedTuple):
    """An object, cleaned, and the names of its resource. `namespace` is "" for cluster scope."""

    group: str
    plural: str
    kind: str
    namespace: str
    name: str
    value: Object


class ForeignFile(Exception):
    """A file would be overwritten that this command has not written; the message names it."""


def document(value: Object) -> bytes:
    """An object as YAML."""
    return codec.to_yaml(value)


def stream(objects: Iterable[Exported]) -> Iterator[bytes]:
    """The parts of one YAML text with all objects."""
    for n, each in enumerate(objects):
        if n:
            yield b"---\n"
        yield document(each.value)


def write_file(path: Path, objects: Iterable[Exported]) -> None:
    """Raises ForeignFile, OSError."""
    check([path])
    write_whole(path, MARK + b"".join(stream(objects)))


def write_folder(folder: Path, objects: Iterable[Exported]) -> list[Path]:
    """Write a file for each object. Returns files of earlier exports that have other objects. Raises ForeignFile, OSError."""
    files = {folder / path_of(each): each for each in objects}
    check(files)
    former = set(_own_files(folder))
    for path, each in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, MARK + document(each.value))
    return sorted(former - files.keys())


def check(paths: Iterable[Path] | Mapping[Path, Exported]) -> None:
    """Raises ForeignFile for the first file that exists and is not one of this command."""
    for path in paths:
        if path.exists() and not is_own(path):
            raise ForeignFile(f"{path} exists and was not written by noxu export, so it is not overwritten")


def is_own(path: Path) -> bool:
    """Whether a file was written by this command."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _own_files(folder: Path) -> Iterator[Path]:
    for part in FOLDERS:
        yield from (path for path in (folder / part).rglob("*.yaml") if is_own(path))


def path_of(exported: Exported) -> Path:
    """The file of an object in a folder."""
    place = rank(exported.group, exported.kind)
    if place < len(FOLDERS[:2]):  # definitions, namespaces
        return Path(FOLDERS[place], _file(exported.name))
    folder = PREREQUISITES if place < FIRST_OF_OTHERS else OBJECTS if place == FIRST_OF_OTHERS else ADMISSION
    plural = f"{exported.plural}.{exported.group}" if exported.group else exported.plural
    return Path(folder, safe(exported.namespace), _file(f"{plural}_", exported.name))


def _file(*parts: str) -> str:
    *prefix, name = parts
    found = "".join(prefix) + safe(name)
    if len(found) > _MAX_NAME:
        found = f"{found[:_MAX_NAME]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{found}.yaml"


def safe(name: str) -> str:
    """A name as part of a path: other characters than of DNS names are percent-encoded, capitals too (`A` and `a` may be one)."""
    return _UNSAFE.sub(lambda match: match[0][:-1] + "".join(f"%{byte:02x}" for byte in match[0][-1].encode()), name)
