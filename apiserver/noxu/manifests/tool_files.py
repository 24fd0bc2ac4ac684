"""Files of other tools that look like manifests, and the reasons not to create their objects.

A file is judged by its content: every document in it has a reason, or the file is a manifest. Reasons are few and certain:
patches of kustomize, its transformers, and the configurations of tools and components, whose groups no server has.

Kustomizations also refer to files that are no resources (kustomize's types.Kustomization).

Scaffolds, such as those of kubebuilder, have entries in comments, to be uncommented when a feature is wanted. The patches
that they name are in the directory all the same:

    patches:
    - path: patches/webhook_in_widgets.yaml
    #- path: patches/cainjection_in_widgets.yaml

So a commented entry of such a list counts as one. A file with the name of a patch (`patches/…`, `…_patch.yaml`), in the
directory of a kustomization or below it, is one unless a kustomization names it as a resource.

Charts of Helm: the definitions that `helm install` creates before it renders templates.

They are the files in `crds/` of a chart and of its subcharts, directories or packed ones in `charts/` (helm's
Chart.CRDObjects). A subchart that `tags` or a `condition` disable in the values of the chart is not installed (helm's
ProcessDependencies). A file in a packed chart has the path as if the archive were unpacked into a directory of its
name: `charts/db-1.0.0.tgz/db/crds/a.yaml`.
"""

from __future__ import annotations

import io
import os.path
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.values import Json, Object

# -- files that look like manifests ------------------------------------------------------------------------------------


CRD: Final = "CustomResourceDefinition"
NO_OBJECT: Final = "it has neither an apiVersion nor a kind"
TEMPLATE: Final = "it is a template, and no YAML yet: it has {{ … }}"
_JSON_PATCH: Final = "it is a JSON patch"
_OF_EVERY_CRD: Final = ("group", "names", "scope", "versions")
_PATCH_OF_CRD: Final = f"it is a patch of a CRD: its spec has none of {', '.join(_OF_EVERY_CRD)}"
_CRD_WITHOUT_SPEC: Final = "it is a patch of a CRD: it has no spec"
_PATCH_OF_WORKLOAD: Final = "it is a patch of a {}: it has neither a selector nor an image"
_WORKLOADS: Final = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_DIRECTIVE: Final = "it is a patch of kustomize: it has $patch"
_CRD_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_TEMPLATED: Final = re.compile(rb"\{\{.*?\}\}")
_TOOLS: Final = {
    "apiserver.config.k8s.io": "kube-apiserver",
    "audit.k8s.io": "kube-apiserver",
    "backstage.io": "Backstage",
    "builtin": "kustomize",
    "chainsaw.kyverno.io": "chainsaw",
    "client.authentication.k8s.io": "kubectl",
    "controller-runtime.sigs.k8s.io": "a controller's flags",
    "ctlptl.dev": "ctlptl",
    "k3d.io": "k3d",
    "kind.sigs.k8s.io": "kind",
    "kind.x-k8s.io": "kind",
    "krew.googlecontainertools.github.com": "krew",
    "kubeadm.k8s.io": "kubeadm",
    "kubecontrollermanager.config.k8s.io": "kube-controller-manager",
    "kubelet.config.k8s.io": "the kubelet",
    "kubeproxy.config.k8s.io": "kube-proxy",
    "kubescheduler.config.k8s.io": "kube-scheduler",
    "kustomize.config.k8s.io": "kustomize",
    "kuttl.dev": "kuttl",
    "noxu.dev": "noxu itself, such as the cases of noxu test",
    "pod-security.admission.config.k8s.io": "kube-apiserver",
    "scorecard.operatorframework.io": "operator-sdk's scorecard",
    "skaffold": "skaffold",
    "test.gatekeeper.sh": "gator",
}
"""Groups of files that no server has a kind of, because nobody has a CRD of them, and what reads the files."""
_KUBECONFIG: Final = ("v1", "Config")


def reason(values: Iterable[Json]) -> str:
    """Why none of a file's documents is to be created: the reason of the first one; "" if one of them may be an object."""
    values = list(values)
    if values and all(not _may_be_object(value) and not _is_json_patch(value) for value in values):
        return NO_OBJECT
    reasons = [_reason(value) for value in values]
    return reasons[0] if reasons and all(reasons) else ""


def is_template(text: bytes) -> bool:
    """Whether a text that cannot be decoded is a template of Helm, or of the like."""
    return _TEMPLATED.search(text) is not None


def _may_be_object(value: Json) -> bool:
    return isinstance(value, dict) and ("apiVersion" in value or "kind" in value)


def _reason(value: Json) -> str:
    if _is_json_patch(value):
        return _JSON_PATCH
    if not isinstance(value, dict):
        return ""
    api_version = str(value.get("apiVersion") or "")
    if tool := _TOOLS.get(api_version.partition("/")[0]):
        return f"it is for {tool}"
    if (api_version, value.get("kind")) == _KUBECONFIG:
        return "it is a kubeconfig"
    if isinstance(value.get("$patch"), str):
        return _DIRECTIVE
    if api_version.startswith("apps/") and value.get("kind") in _WORKLOADS:
        return _PATCH_OF_WORKLOAD.format(value["kind"]) if _is_patch_of_workload(value) else ""
    return _patch_of_crd(value) if value.get("kind") == CRD else ""


def _is_patch_of_workload(value: Object) -> bool:
    """Whether a workload lacks everything that it must have. One that says nothing, or is malformed, is no patch."""
    spec = value.get("spec")
    if not isinstance(spec, dict) or "selector" in spec or not spec:
        return False
    node: Json = spec
    for name in ("template", "spec", "containers"):
        node = node.get(name, {}) if isinstance(node, dict) else None
    if not isinstance(node, (dict, list)):
        return False
    return not any(isinstance(item, dict) and "image" in item for item in node)


def _patch_of_crd(value: Object) -> str:
    """Why a CRD is a patch. One whose `spec` is misspelt, or that says nothing, is none."""
    spec, metadata = value.get("spec"), value.get("metadata")
    if isinstance(spec, dict):
        return "" if any(field in spec for field in _OF_EVERY_CRD) else _PATCH_OF_CRD
    if spec is not None or not value.keys() <= _CRD_FIELDS:
        return ""
    return _CRD_WITHOUT_SPEC if isinstance(metadata, dict) and metadata.keys() - {"name"} else ""


def _is_json_patch(value: Json) -> bool:
    """Whether a value is a list of operations (RFC 6902)."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(step, dict) and step.get("op") in _OPERATIONS and "path" in step for step in value)
    )


# -- kustomizations ----------------------------------------------------------------------------------------------------


KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_LISTS: Final = (
    "patchesStrategicMerge", "patchesJson6902", "patches", "configurations", "replacements", "transformers", "generators",
    "validators",
)  # fmt: skip
_RESOURCES: Final = ("resources", "bases", "components")
_PATCH_NAME: Final = re.compile(r"(.*[-_.]patch|patch([-_.].*)?)\.(ya?ml|json)")
_PATCH_DIRECTORY: Final = "patches"
_KEY: Final = re.compile(r"(?:#\s?)?([A-Za-z0-9]+):\s*$")
_COMMENTED: Final = re.compile(r"""\s*#[#\s]*(-\s*)?(path:\s*)?["']?([^\s"'#]+\.(?:ya?ml|json))["']?\s*(?:#.*)?$""")


class KustomizationParts(NamedTuple):
    """Absolute paths that a kustomization names: as `resources`, and as anything else."""

    resources: frozenset[str]
    others: frozenset[str]


def parts_of(kustomization: Path) -> KustomizationParts:
    """The paths in a kustomization, and in its comments; none if it cannot be read."""
    try:
        text = kustomization.read_text("utf-8")
        value = codec.decode_yaml(text.encode()).value
    except (OSError, ValueError):
        return KustomizationParts(frozenset(), frozenset())
    if not isinstance(value, dict):
        return KustomizationParts(frozenset(), frozenset())
    resources = {path for field in _RESOURCES for path in _texts(value.get(field))}
    # patches may be texts, too
    others = {path for path in [*_named(value), *_generated(value), *_commented(text)] if "\n" not in path}
    return KustomizationParts(_absolute(kustomization, resources), _absolute(kustomization, others - resources))


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
        if match := _KEY.match(line):
            key = match[1]
        elif (match := _COMMENTED.match(line)) and (match[2] or (match[1] and key in _LISTS)):
            yield match[3]


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _objects(value: Json) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# -- charts of Helm ----------------------------------------------------------------------------------------------------


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


def outermost(paths: list[Path]) -> dict[Path, Files]:
    """The charts among files that are in no other chart, with their files."""
    roots = {file.parent for file in paths if file.name == CHART}
    charts: dict[Path, dict[str, Path]] = {}
    for file in paths if roots else ():
        around = [parent for parent in file.parents if parent in roots]
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


def content_in(path: Path) -> bytes:
    """The bytes of a file in a packed chart. Raises ChartError, OSError."""
    archive = next((parent for parent in path.parents if parent.name.endswith(PACKED)), None)
    if archive is None:
        return path.read_bytes()
    body = content_in(archive)
    content = _members(body).get(path.relative_to(archive).as_posix())
    if content is None:
        raise ChartError("the archive has no such file")
    return content


def is_packed(path: Path) -> bool:
    """Whether a path is that of a file in an archive."""
    return any(parent.name.endswith(PACKED) and parent.is_file() for parent in path.parents)


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
        entries = [entry for entry in required if entry.get("name") == name]
        disabled = [why for entry in entries if (why := _disabled(entry, values, tags))]
        if entries and len(disabled) == len(entries):
            yield NotInstalled(path, f"helm does not install this subchart: {disabled[0]}")
        elif depth == MAX_NESTED:
            yield NotInstalled(path, f"it is a chart in more than {MAX_NESTED} charts")
        else:
            key = next((str(entry["alias"]) for entry in entries if entry.get("alias")), name)
            inner = _merged(_object(subchart, "values.yaml"), _member(values, key))
            yield from _definitions(subchart, inner, tags, depth + 1)


def _subcharts(files: Files) -> Iterator[tuple[Path, Files | str]]:
    """(a subchart, its files or why it cannot be read). Like helm, those are ignored whose names begin with `_` or `.`."""
    subcharts: dict[str, dict[str, Path]] = {}
    for name, path in sorted(files.items()):
        first, _, rest = name.removeprefix(_SUBCHARTS).partition("/")
        if not name.startswith(_SUBCHARTS) or first.startswith(("_", ".")):
            continue
        if rest:
            subcharts.setdefault(first, {})[rest] = path
        elif first.endswith(PACKED):
            try:
                subcharts[first] = {
                    inner.partition("/")[2]: path / inner for inner in _members(content_in(path)) if "/" in inner
                }
            except (ChartError, OSError) as error:
                yield path, str(getattr(error, "strerror", None) or error)
    for subchart in subcharts.values():
        if CHART in subchart:
            yield subchart[CHART].parent, subchart


def _required(files: Files) -> list[Object]:
    """The dependencies that a chart declares; those of apiVersion v1 are in a file of their own."""
    declared = _object(files, CHART).get("dependencies") or _object(files, "requirements.yaml").get("dependencies")
    return [entry for entry in declared if isinstance(entry, dict)] if isinstance(declared, list) else []


def _disabled(required: Object, values: Object, tags: Object) -> str:
    """Why a dependency is disabled, "" if it is not: the first condition that is a boolean decides, else the tags do."""
    for condition in str(required.get("condition") or "").split(","):
        value: Json = values
        for step in condition.strip().split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "" if value else f"{condition.strip()} is false in its values"
    names = required.get("tags")
    chosen = [tags.get(str(name)) for name in names] if isinstance(names, list) else []
    return "its tags are false in the values" if False in chosen and True not in chosen else ""


def _merged(values: Object, overrides: Object) -> Object:
    """The values of a subchart, and over them those that its parent has for it."""
    merged = dict(values)
    todo = [(merged, overrides)]
    while todo:
        target, source = todo.pop()
        for name, value in source.items():
            if isinstance(value, dict) and isinstance(target.get(name), dict):
                target[name] = dict(target[name])
                todo.append((target[name], value))
            else:
                target[name] = value
    return merged


def _object(files: Files, name: str) -> Object:
    """The object in a YAML file of a chart, empty if there is none."""
    try:
        value = codec.decode_yaml(content_in(files[name])).value
    except (KeyError, OSError, ValueError, ChartError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(value: Object, name: str) -> Object:
    member = value.get(name)
    return member if isinstance(member, dict) else {}


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
                member.name.removeprefix("./"): file.read()
                for member in archive
                if member.isreg() and member.size <= MAX_FILE and member.name.endswith(_READ)
                if (file := archive.extractfile(member)) is not None
            }
    except (tarfile.TarError, zlib.error):
        raise ChartError(_NO_CHART) from None
