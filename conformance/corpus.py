"""Real-life CRDs with sample objects, and what the reference answered: a folder beside the repository.

`MANIFEST.json` lists them with origin and licence; `crd/` and `cr/` have them as gzipped YAML, as their projects
publish them; `golden/` has, for each CRD, the answers of the reference.
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
    """JSON knows no dates: what looks like one is a string, as it is for kubectl."""


_Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


class Sample:
    """An object of a CRD. `recorded`: what the reference answered to it."""

    def __init__(self, file: Path, recorded: dict[str, Any]) -> None:
        self.file = file
        self.name = file.name.removesuffix(".yaml.gz")
        self.recorded = recorded

    def value(self, *, namespaced: bool) -> dict[str, Any]:
        """The object as it was sent: in the namespace `default` if it has one, without what the server sets."""
        value: dict[str, Any] = _read(self.file)
        metadata = value["metadata"]
        for name in ("resourceVersion", "uid", "creationTimestamp", "namespace"):
            metadata.pop(name, None)
        if namespaced:
            metadata["namespace"] = "default"
        return value


class Definition:
    """A CRD as its project publishes it."""

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
        """Without the status that some projects publish."""
        value: dict[str, Any] = _read(self.file)
        value.pop("status", None)
        return value

    @cached_property
    def recorded(self) -> dict[str, Any]:
        """What the reference answered; `samples` is by file."""
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
    def converts(self) -> bool:
        """Does it name a conversion webhook? The reference was asked without."""
        return bool((self.spec.get("conversion") or {}).get("strategy") == "Webhook")

    @property
    def served(self) -> list[str]:
        return [version["name"] for version in self.spec["versions"] if version.get("served")]


def definitions(folder: Path = FOLDER) -> Iterator[Definition]:
    """Those of which answers were recorded, in the manifest's order."""
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
