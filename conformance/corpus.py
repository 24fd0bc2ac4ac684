"""CRDs of other projects with sample objects and the recorded answers of the reference.

They are in the folder `shared/crds` next to the checkout, which is not part of the repository. `MANIFEST.json` lists
them with origin and licence; `crd/` and `cr/` contain them as gzipped YAML, unchanged; `golden/` contains, for each
CRD, the answers of the reference.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "shared" / "crds"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads timestamps as strings, like kubectl: JSON has no type for dates."""


_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


class Sample:
    """A custom resource; `recorded` are the answers of the reference to requests with it."""

    def __init__(self, file: Path, recorded: dict[str, Any]) -> None:
        self.file = file
        self.name = file.name.removesuffix(".yaml.gz")
        self.recorded = recorded

    def value(self, *, namespaced: bool) -> dict[str, Any]:
        """The object as it was sent: without server-set fields; a namespaced one is in the namespace `default`."""
        value: dict[str, Any] = _read(self.file)
        metadata = value["metadata"]
        for name in ("resourceVersion", "uid", "creationTimestamp", "namespace"):
            metadata.pop(name, None)
        if namespaced:
            metadata["namespace"] = "default"
        return value


class Definition:
    """A CRD, its samples and its recorded answers."""

    def __init__(self, name: str, file: Path, golden: Path, samples: list[Path]) -> None:
        self.name = name
        self.file = file
        self._golden = golden
        self._samples = samples

    @cached_property
    def text(self) -> bytes:
        return gzip.decompress(self.file.read_bytes())

    @cached_property
    def value(self) -> dict[str, Any]:
        """The CRD without the status that some projects publish."""
        value: dict[str, Any] = _read(self.file)
        value.pop("status", None)
        return value

    @cached_property
    def recorded(self) -> dict[str, Any]:
        """The answers of the reference; `samples` has one entry for each sample file."""
        recorded: dict[str, Any] = json.loads(gzip.decompress(self._golden.read_bytes()))
        return recorded

    @property
    def samples(self) -> list[Sample]:
        answers = self.recorded.get("samples", {})
        return [Sample(file, answers[f"cr/{file.name}"]) for file in self._samples if f"cr/{file.name}" in answers]

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.value["spec"]
        return spec

    @property
    def namespaced(self) -> bool:
        return bool(self.spec["scope"] == "Namespaced")

    @property
    def has_conversion_webhook(self) -> bool:
        """Such a CRD was recorded without its webhook, which nothing here can run."""
        return bool((self.spec.get("conversion") or {}).get("strategy") == "Webhook")

    @property
    def served(self) -> list[str]:
        """The names of the served versions."""
        return [version["name"] for version in self.spec["versions"] if version.get("served")]


def definitions(folder: Path = FOLDER) -> Iterator[Definition]:
    """The CRDs for which answers were recorded, in the order of the manifest."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    samples: dict[str, list[Path]] = {}
    for sample in manifest["samples"]:
        samples.setdefault(sample["crd"], []).append(folder / sample["file"])
    for crd in manifest["crds"]:
        name, golden = crd["name"], folder / "golden" / f"{crd['name']}.json.gz"
        if golden.exists():
            yield Definition(name, folder / crd["file"], golden, samples.get(name, []))


def _read(file: Path) -> Any:
    return yaml.load(gzip.decompress(file.read_bytes()), _Loader)
