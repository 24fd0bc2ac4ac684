"""The files to which kustomizations refer otherwise than as resources (kustomize's types.Kustomization).

Scaffolds, such as those of kubebuilder, have entries in comments, to be uncommented when a feature is wanted. The patches
that they name are in the directory all the same:

    patches:
    - path: patches/webhook_in_widgets.yaml
    #- path: patches/cainjection_in_widgets.yaml

So a commented entry of such a list counts as one. A file that its name calls a patch (`patches/…`, `…_patch.yaml`) and
that is in the directory of a kustomization or below it, is one, unless a kustomization names it as a resource.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.values import Json, Object

NAMES: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_LISTS: Final = (
    "patchesStrategicMerge", "patchesJson6902", "patches", "configurations", "replacements", "transformers", "generators",
    "validators",
)  # fmt: skip
_RESOURCES: Final = ("resources", "bases", "components")
_PATCH_NAME: Final = re.compile(r"(.*[-_.]patch|patch([-_.].*)?)\.(ya?ml|json)")
_PATCH_DIRECTORY: Final = "patches"
_KEY: Final = re.compile(r"(?:#\s?)?([A-Za-z0-9]+):\s*$")
_COMMENTED: Final = re.compile(r"""\s*#[#\s]*(-\s*)?(path:\s*)?["']?([^\s"'#]+\.(?:ya?ml|json))["']?\s*(?:#.*)?$""")


class Parts(NamedTuple):
    """Absolute paths that a kustomization names: as `resources`, and as anything else."""

    resources: frozenset[str]
    others: frozenset[str]


def parts(kustomization: Path) -> Parts:
    """The paths in a kustomization, and in its comments; none if it cannot be read."""
    try:
        text = kustomization.read_text("utf-8")
        value = codec.decode_yaml(text.encode()).value
    except (OSError, ValueError):
        return Parts(frozenset(), frozenset())
    if not isinstance(value, dict):
        return Parts(frozenset(), frozenset())
    resources = {path for field in _RESOURCES for path in _texts(value.get(field))}
    # patches may be texts, too
    others = {path for path in [*_named(value), *_generated(value), *_commented(text)] if "\n" not in path}
    return Parts(_absolute(kustomization, resources), _absolute(kustomization, others - resources))


def is_patch_by_name(file: Path, directories: set[Path]) -> bool:
    """Whether a file is a patch by its name, and in one of these directories of kustomizations or below it."""
    if not _PATCH_NAME.fullmatch(file.name) and file.parent.name != _PATCH_DIRECTORY:
        return False
    return not directories.isdisjoint(file.parents)


def _absolute(kustomization: Path, paths: Iterable[str]) -> frozenset[str]:
    return frozenset(os.path.abspath(kustomization.parent / path) for path in paths)  # noqa: PTH100 - links are not followed


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


def _commented(text: str) -> Iterator[str]:
    """The paths of commented entries of `_LISTS`, whose keys may be commented as well."""
    key = ""
    for line in text.splitlines():
        if found := _KEY.match(line):
            key = found[1]
        elif (found := _COMMENTED.match(line)) and (found[2] or (found[1] and key in _LISTS)):
            yield found[3]


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _objects(value: Json) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
