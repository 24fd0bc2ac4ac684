"""Compares the CRDs of releases of other projects as `noxu diff` does, and prints what it finds in a table.

    python -m conformance.upgrades --checkouts FOLDER [--list] [TEXT…]

FOLDER has a clone of each project with its tags, in a directory NAME or OWNER+NAME/repo. Nothing is checked out: files are
read from git. TEXT selects pairs whose names contain it.

A second, much simpler comparison stands beside that: it walks both schemas, and knows only what nearly always breaks, a field
that is gone, another type, a new required field, a member of an enum that is gone, a bound that is tighter, a version that is
not served any more. What it finds and `noxu diff` does not call breaking is `missed`. The breaking changes that no object
shows are `unshown`: --list prints them, with what was missed, for a reader to judge.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from noxu.crd import lint
from noxu.manifests.documents import Document, contents_of, is_crd
from noxu.upgrades.changes import ChangedDefinition, DefinitionChange, compared
from noxu.values import Json, Object


class Pair(NamedTuple):
    """Two releases of a project, and the folder of its CRDs in each."""

    project: str
    old: str
    new: str
    folder: str

    @property
    def name(self) -> str:
        channel = " experimental" if self.folder.endswith("experimental") else ""
        return f"{self.project} {self.old} → {self.new}{channel}"


_ESO, _CERT = "external-secrets/external-secrets", "cert-manager/cert-manager"
_GATEWAY, _PROMETHEUS = "kubernetes-sigs/gateway-api", "prometheus-operator/prometheus-operator"
PAIRS: Final = (
    Pair(_CERT, "v1.19.0", "v1.20.0", "deploy/crds"),
    Pair(_CERT, "v1.20.0", "v1.21.0", "deploy/crds"),
    Pair(_ESO, "v0.14.4", "v0.15.0", "config/crds/bases"),
    Pair(_ESO, "v0.15.1", "v0.16.0", "config/crds/bases"),
    Pair(_ESO, "v0.16.2", "v0.17.0", "config/crds/bases"),
    Pair(_ESO, "v0.20.4", "v1.0.0", "config/crds/bases"),
    Pair(_ESO, "v1.3.2", "v2.0.0", "config/crds/bases"),
    Pair(_GATEWAY, "v1.0.0", "v1.1.0", "config/crd/standard"),
    Pair(_GATEWAY, "v1.1.0", "v1.2.0", "config/crd/standard"),
    Pair(_GATEWAY, "v1.2.0", "v1.3.0", "config/crd/standard"),
    Pair(_GATEWAY, "v1.3.0", "v1.4.0", "config/crd/standard"),
    Pair(_GATEWAY, "v1.3.0", "v1.4.0", "config/crd/experimental"),
    Pair(_PROMETHEUS, "v0.74.0", "v0.75.0", "example/prometheus-operator-crd"),
    Pair(_PROMETHEUS, "v0.80.0", "v0.81.0", "example/prometheus-operator-crd"),
    Pair(_PROMETHEUS, "v0.92.1", "v0.93.0", "example/prometheus-operator-crd"),
    Pair("crossplane/crossplane", "v1.20.0", "v2.0.0", "cluster/crds"),
    Pair("argoproj/argo-cd", "v2.14.0", "v3.0.0", "manifests/crds"),
    Pair("argoproj/argo-cd", "v3.4.0", "v3.5.0", "manifests/crds"),
    Pair("envoyproxy/gateway", "v1.3.0", "v1.4.0", "charts/gateway-helm/crds/generated"),
    Pair("envoyproxy/gateway", "v1.8.0", "v1.9.0", "charts/gateway-helm/charts/crds/crds/generated"),
)


def definitions(pair: Pair, tag: str, checkouts: Path) -> list[Document]:
    """The CRDs of a release. Raises CalledProcessError, FileNotFoundError."""
    owner, _, name = pair.project.partition("/")
    repository = next(path for path in (checkouts / f"{owner}+{name}" / "repo", checkouts / name) if path.exists())

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True).stdout

    found = []
    for file in git("ls-tree", "-r", "--name-only", tag, pair.folder).decode().splitlines():
        if file.endswith((".yaml", ".yml")):
            documents = contents_of(git("show", f"{tag}:{file}"), file).documents
            found += [document for document in documents if is_crd(document.value)]
    return found


# -- the simple comparison -------------------------------------------------------------------------------------------


def simply_broken(old: Document, new: Document) -> Iterator[tuple[str, str]]:
    """(version, field) of what nearly always breaks."""
    before, now = lint.as_v1(old.value), lint.as_v1(new.value)
    assert before is not None
    assert now is not None
    versions = {version["name"]: version for version in now["spec"]["versions"]}
    for version in before["spec"]["versions"]:
        later = versions.get(version["name"])
        if version["served"] and not (later and later["served"]):
            yield version["name"], ""
        if later is not None and (version["served"] or version["storage"] or later["served"]):
            schemas = [each["schema"]["openAPIV3Schema"] for each in (version, later)]
            for field in _broken(schemas[0], schemas[1], ""):
                yield version["name"], field


def _broken(old: Object, new: Object, field: str) -> Iterator[str]:
    if old.get("type") and new.get("type") and old["type"] != new["type"]:
        yield field
        return
    if set(new.get("required") or ()) - set(old.get("required") or ()) - _with_defaults(new) - {"spec", "metadata"}:
        yield field
    if [value for value in old.get("enum") or () if new.get("enum") and value not in new["enum"]]:
        yield field
    if any(_tighter(old.get(name), new.get(name), sign) for name, sign in _BOUNDS):
        yield field
    properties = new.get("properties") or {}
    is_open = new.get("x-kubernetes-preserve-unknown-fields") or new.get("additionalProperties")
    for name, schema in (old.get("properties") or {}).items():
        below = f"{field}.{name}" if field else name
        if name in properties:
            yield from _broken(schema, properties[name], below)
        elif not is_open:
            yield below
    for keyword in ("items", "additionalProperties"):
        if isinstance(old.get(keyword), dict) and isinstance(new.get(keyword), dict):
            yield from _broken(old[keyword], new[keyword], f"{field}[*]")


def _with_defaults(schema: Object) -> set[str]:
    return {name for name, inner in (schema.get("properties") or {}).items() if "default" in inner}


_BOUNDS: Final = (
    ("minimum", 1), ("maximum", -1), ("minLength", 1), ("maxLength", -1), ("minItems", 1), ("maxItems", -1),
    ("minProperties", 1), ("maxProperties", -1),
)  # fmt: skip


def _tighter(old: Json, new: Json, sign: int) -> bool:
    return new is not None and (old is None or sign * new > sign * old) and not (sign > 0 and new == 0)


# -- the table -------------------------------------------------------------------------------------------------------


class Figures(NamedTuple):
    """What is found for a pair. `missed` and `unshown` are lines for a reader."""

    definitions: int
    breaking: int
    shown: int
    unknown: int
    compatible: int
    missed: Sequence[str]
    unshown: Sequence[str]
    seconds: float


def measured(old: Sequence[Document], new: Sequence[Document]) -> Figures:
    began = time.process_time()
    changed = compared(old, new)
    seconds = time.process_time() - began
    breaking = [(each, change) for each in changed for change in each.changes if change.effect == "breaking"]
    unshown = [_line(each, change) for each, change in breaking if change.example is None]
    return Figures(
        len(changed),
        len(breaking),
        len(breaking) - len(unshown),
        sum(each.count("unknown") for each in changed),
        sum(each.count("compatible") for each in changed),
        list(_missed(changed)),
        unshown,
        seconds,
    )


def _missed(changed: Sequence[ChangedDefinition]) -> Iterator[str]:
    for each in changed:
        if each.former is not None and each.document is not None:
            found = {(change.version, change.field) for change in each.changes if change.effect == "breaking"}
            for version, field in simply_broken(each.former, each.document):
                if not {(version, field), (version, field.rpartition(".")[0])} & found and not _is_gone(each, version):
                    yield f"{each.name} {version} {field}"


def _is_gone(each: ChangedDefinition, version: str) -> bool:
    return any(change.message.startswith(f"version {version} is removed") for change in each.changes)


def _line(each: ChangedDefinition, change: DefinitionChange) -> str:
    return f"{each.name} {change.where}: {change.message}".replace("\n", " ")[:240]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the CRDs of releases of other projects.")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--list", action="store_true", help="print what was missed, and what no object shows")
    parser.add_argument("only", nargs="*", metavar="TEXT", help="only pairs whose names contain TEXT")
    options = parser.parse_args()
    row = "{:56} {:>5} {:>9} {:>6} {:>8} {:>8} {:>11} {:>7} {:>6}"
    print(row.format("releases", "CRDs", "breaking", "shown", "unshown", "unknown", "compatible", "missed", "s"))
    missed = 0
    for pair in PAIRS:
        if not all(text in pair.name for text in options.only):
            continue
        found = measured(*(definitions(pair, tag, options.checkouts) for tag in (pair.old, pair.new)))
        missed += len(found.missed)
        counts = (found.definitions, found.breaking, found.shown, len(found.unshown), found.unknown, found.compatible)
        print(row.format(pair.name, *counts, len(found.missed), f"{found.seconds:.1f}"))
        for line in [*found.missed, *found.unshown] if options.list else ():
            print(f"    {'missed' if line in found.missed else 'unshown'}: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
